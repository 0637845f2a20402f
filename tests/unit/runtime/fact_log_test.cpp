#include "runtime/fact_log.h"

#include <doctest/doctest.h>

namespace lictor::runtime {
namespace {

using namespace std::chrono_literals;
using Kind = core::Fact::Kind;

TEST_CASE("a request that fails again and again gets a line a minute, another one its own") {
  TroubleLog troubles;
  const Instant now{1h};
  CHECK(troubles.is_news(now, {Kind::kStoreTrouble, {}, "listing the tasks: answered 429"}));
  CHECK_FALSE(troubles.is_news(now + 1s, {Kind::kStoreTrouble, {}, "listing the tasks: 503"}));
  CHECK_FALSE(troubles.is_news(now + 59s, {Kind::kStoreTrouble, {}, "listing the tasks: 429"}));
  CHECK(troubles.is_news(now + 1s, {Kind::kStoreTrouble, {}, "renewing the session: 429"}));
  const std::string refused = "listing the tasks: answered 403 (Permission denied)";
  CHECK(troubles.is_news(now + 2s, {Kind::kStoreTrouble, {}, refused}));
  CHECK_FALSE(troubles.is_news(now + 3s, {Kind::kStoreTrouble, {}, refused}));
  CHECK(troubles.is_news(now + 60s, {Kind::kStoreTrouble, {}, "listing the tasks: 429"}));
}

TEST_CASE("a fact about a task, or about no failed request, is always logged") {
  TroubleLog troubles;
  const Instant now{1h};
  for (int i = 0; i < 2; ++i) {
    CHECK(troubles.is_news(now, {Kind::kStoreTrouble, "tasks/a", "refused: too large"}));
    CHECK(troubles.is_news(now, {Kind::kLeaseLost, {}, "the same"}));
  }
}

}  // namespace
}  // namespace lictor::runtime
