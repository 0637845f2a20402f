#include "cli/bulk.h"

#include <algorithm>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "harness.h"

namespace lictor::cli {
namespace {

void refuse(BulkResult& result, const std::string& message,
            ErrorCode code = ErrorCode::kUnavailable) {
  result.refused.push_back({"id", {code, message}});
}

TEST_CASE("refusals with the same message share a line with their number, at most twenty lines") {
  BulkResult result;
  refuse(result, "one alone");
  for (int i = 0; i < 300; ++i) refuse(result, "no Consul");
  for (int i = 0; i < 200; ++i) {
    refuse(result, "in doubt " + std::to_string(i), ErrorCode::kTimeout);
  }
  for (int i = 0; i < 30; ++i) refuse(result, std::to_string(i), ErrorCode::kInvalid);
  for (int i = 0; i < 4700; ++i) refuse(result, "no Consul");
  test::Scene scene{{}};
  CHECK(tell_bulk(scene.client, result, "cancelled", {}) == kUnreachable);
  CHECK(scene.out() == "cancelled 0 tasks, 30 refused, 200 in doubt, 5001 not tried\n");
  const std::string told = scene.err();
  CHECK(
      told.starts_with("lictor: no Consul (5000 tasks)\n"
                       "lictor: in doubt 0 (and the same of 199 others)\n"
                       "lictor: one alone\nlictor: 0\n"));
  CHECK(
      told.ends_with("lictor: 16\nlictor: 13 more\n"
                     "lictor: --json names each of them\n"));
  CHECK(std::count(told.begin(), told.end(), '\n') == 22);
}

TEST_CASE("an unreachable Consul decides the exit code over other refusals") {
  BulkResult result;
  result.refused.push_back({"id", {ErrorCode::kConflict, "expired"}});
  test::Scene scene{{}};
  CHECK(tell_bulk(scene.client, result, "retried", {}) == kFailed);
  refuse(result, "no Consul");
  CHECK(tell_bulk(scene.client, result, "retried", {}) == kUnreachable);
}

TEST_CASE("the JSON says for each refusal whether the result is in doubt") {
  BulkResult result;
  refuse(result, "expired", ErrorCode::kInvalid);
  refuse(result, "no reply", ErrorCode::kTimeout);
  refuse(result, "no Consul");
  test::Scene scene{{}, true};
  CHECK(tell_bulk(scene.client, result, "cancelled", {}) == kUnreachable);
  const auto refused = nlohmann::json::parse(scene.out()).at("refused");
  REQUIRE(refused.size() == 3);
  CHECK_FALSE(refused[0].at("in_doubt"));
  CHECK(refused[1].at("in_doubt"));
  CHECK_FALSE(refused[2].at("in_doubt"));
}

TEST_CASE("ids after Consul stopped answering are named as not tried") {
  const auto change = [](const std::string& id) -> Result<TaskInfo> {
    if (id == "a") return TaskInfo{};
    REQUIRE(id == "b");
    return fail(ErrorCode::kTimeout, "no reply");
  };
  const BulkResult result = each_of({"a", "b", "c", "d"}, change);
  CHECK(result.tasks.size() == 1);
  REQUIRE(result.refused.size() == 3);
  CHECK(result.refused[0].error.code == ErrorCode::kTimeout);
  CHECK(result.refused[1].id == "c");
  CHECK(result.refused[1].error.code == ErrorCode::kUnavailable);
  CHECK(result.refused[2].error.message == "not tried: no answer came for b");
}

TEST_CASE("without refusals nothing is printed to standard error") {
  test::Scene scene{{}};
  CHECK(tell_bulk(scene.client, {}, "cancelled", {}) == kDone);
  CHECK(scene.err().empty());
}

}  // namespace
}  // namespace lictor::cli
