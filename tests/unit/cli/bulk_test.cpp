#include "cli/bulk.h"

#include <algorithm>

#include "client/change.h"
#include "harness.h"
#include "model_consul.h"

namespace lictor::cli::test {
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
  Scene scene{{}};
  CHECK(print_bulk(scene.client, result, "cancelled", {}) == kUnreachable);
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

TEST_CASE("purge --all says how many dead letters it purged; without any it asks nothing") {
  ModelConsul consul;
  CHECK(printed(consul, "dead purge --all").err == "no dead letters in queue \"q\"\n");
  CHECK(contains(printed(consul, "dead list --type Mail").err,
                 "no such dead letters in queue \"q\"\n"));
  consul.put("lictor/q/dead/a~1", R"({"task":{"type":"T"},"reason":"failed"})");
  CHECK(printed(consul, "dead purge --all --yes").out == "purged 1 dead letter\n");
}

TEST_CASE("an unreachable Consul decides the exit code; JSON says which results are in doubt") {
  BulkResult result;
  refuse(result, "expired", ErrorCode::kConflict);
  CHECK(print_bulk(Scene{{}}.client, result, "retried", {}) == kFailed);
  refuse(result, "no reply", ErrorCode::kTimeout);
  refuse(result, "no Consul");
  Scene scene{{}, true};
  CHECK(print_bulk(scene.client, result, "cancelled", {}) == kUnreachable);
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
  const BulkResult result = client::change_each({"a", "b", "c", "d"}, change);
  CHECK(result.tasks.size() == 1);
  REQUIRE(result.refused.size() == 3);
  CHECK(result.refused[0].error.code == ErrorCode::kTimeout);
  CHECK(result.refused[1].id == "c");
  CHECK(result.refused[1].error.code == ErrorCode::kUnavailable);
  CHECK(result.refused[2].error.message == "not tried: no answer came for b");
}

TEST_CASE("a waiter learns that its task was cancelled, and by whom; a history keeps that") {
  ModelConsul consul;
  const std::string session = consul.session();
  consul.put("lictor/q/leader", R"({"node":"a"})", session);
  consul.put("lictor/q/members/a", R"({"node":"a","history":["other","q"]})", session);
  Stage other{consul};
  consul.on_wait = [&] { CHECK(other.run("cancel x") == kDone); };
  Stage waiting{consul, true};
  CHECK(waiting.run("submit T --id x --wait") == kCancelled);
  const auto told = nlohmann::json::parse(waiting.out());
  CHECK(told.at("state") == "cancelled");
  CHECK(told.at("cancelled_by").get<std::string>().find('@') != std::string::npos);
  CHECK(contains(waiting.err(), "task x was cancelled by "));
  CHECK(contains(printed(consul, "list --state done").out, "cancelled"));
  // Without a history nothing stays.
  consul.put("lictor/q/members/a", R"({"node":"a","history":["other"]})", session);
  consul.put("lictor/q/tasks/y", R"({"taskType":"T"})");
  CHECK(other.run("cancel y") == kDone);
  const auto tasks = document_of(consul, "list --state done").at("tasks");
  REQUIRE(tasks.size() == 1);
  check_members(tasks[0], {{"id", "x"}, {"state", "cancelled"}});
}

TEST_CASE("list finds tasks that wait for another attempt") {
  ModelConsul consul;
  consul.put("lictor/q/tasks/new", R"({"taskType":"T","executeAt":"2999-01-01T00:00:00Z"})");
  consul.put("lictor/q/tasks/again",
             R"({"taskType":"T","taskAttempt":1,"taskRetryAt":"2999-01-01T00:00:00Z",)"
             R"("taskError":"exit status 1"})");
  const Printed stage = printed(consul, "list --state retrying");
  CHECK(contains(stage.out, "again"));
  CHECK_FALSE(contains(stage.out, "new"));
}

}  // namespace
}  // namespace lictor::cli::test
