#include "cli/bulk.h"

#include <algorithm>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "cli/exit_code.h"
#include "harness.h"

namespace lictor::cli {
namespace {

void refuse(BulkResult& result, const std::string& message) {
  result.refused.push_back({"id", {ErrorCode::kUnavailable, message}});
}

TEST_CASE("what many are refused for alike is a line with their number, and a hundred lines do") {
  BulkResult result;
  refuse(result, "one alone");
  for (int i = 0; i < 5000; ++i) refuse(result, "no Consul");
  for (int i = 0; i < 200; ++i) refuse(result, "in doubt " + std::to_string(i));
  test::Scene scene{{}};
  CHECK(tell_bulk(scene.client, result, "cancelled", {}) == kUnreachable);
  CHECK(scene.out() == "cancelled 0 tasks, 5201 refused\n");
  const std::string told = scene.err();
  CHECK(
      told.starts_with("lictor: one alone\nlictor: no Consul (5000 tasks)\nlictor: in doubt 0\n"));
  CHECK(told.ends_with("lictor: in doubt 97\nlictor: 102 more refused\n"));
  CHECK(std::count(told.begin(), told.end(), '\n') == 101);
}

TEST_CASE("that Consul went is the exit code, whatever else was refused before") {
  BulkResult result;
  result.refused.push_back({"id", {ErrorCode::kConflict, "expired"}});
  test::Scene scene{{}};
  CHECK(tell_bulk(scene.client, result, "retried", {}) == kFailed);
  refuse(result, "no Consul");
  CHECK(tell_bulk(scene.client, result, "retried", {}) == kUnreachable);
}

TEST_CASE("nothing refused is nothing told of") {
  test::Scene scene{{}};
  CHECK(tell_bulk(scene.client, {}, "cancelled", {}) == kDone);
  CHECK(scene.err().empty());
}

}  // namespace
}  // namespace lictor::cli
