#include "cli/control.h"

#include <doctest/doctest.h>

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kAt{1'795'228'350'949ms};

TEST_CASE("a request to step down leaves the other switches as they are") {
  CHECK(*with_step_down(R"({"paused": {"by":"x"},"step_down":{"id":"old"},"n":1.50})", "id", "me@h",
                        kAt) ==
        R"({"paused":{"by":"x"},"n":1.50,)"
        R"("step_down":{"id":"id","by":"me@h","at":"2026-11-21T02:32:30.949Z"}})");
  CHECK(*with_step_down("", "id", "me@h", kAt) ==
        R"({"step_down":{"id":"id","by":"me@h","at":"2026-11-21T02:32:30.949Z"}})");
  CHECK(*with_step_down("{}", "id", "me@h", kAt) == *with_step_down("", "id", "me@h", kAt));
}

TEST_CASE("a control key that somebody has spoilt is not overwritten") {
  CHECK(with_step_down("[]", "id", "me@h", kAt).error().code == ErrorCode::kInvalid);
}

}  // namespace
}  // namespace lictor::cli
