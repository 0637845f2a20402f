#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/host_name.h"
#include "cluster/member.h"
#include "exec/output_log.h"
#include "harness.h"
#include "model_consul.h"
#include "temporary_folder.h"
#include "unit/refusal.h"

namespace lictor::cli::test {
namespace {

using nlohmann::json;

// A state folder with the logs of a daemon that is down.
class State {
 public:
  void write(std::uint32_t attempt, std::uint64_t token, const std::string& bytes) const {
    const std::filesystem::path file =
        exec::output_log_path(folder_ / "logs", "q", "7", attempt, token);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream{file} << bytes;
  }
  // Asks for the logs of task 7, on the host of the member "a".
  Result<int> logs(Stage& stage, const std::string& options = {}) const {
    stage.client.node = "a";
    stage.client.state_dir = folder_.path();
    return stage.run("logs 7 " + options);
  }

 private:
  const lictor::unit::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("without a daemon this host's logs are read from its state folder, the newest first") {
  const State state;
  state.write(1, 10, "first\n");
  state.write(2, 20, std::string{"second \x1b[2J\n\0", 13});
  ModelConsul consul;  // knows nothing of the task
  Stage scene{consul};
  CHECK(state.logs(scene) == 0);
  CHECK(scene.out() == std::string{"second \x1b[2J\n\0", 13});  // no terminal: as cat does
  Stage older{consul};
  CHECK(state.logs(older, "--attempt 1") == 0);
  CHECK(older.out() == "first\n");
}

TEST_CASE("an attempt without output is reported on standard error") {
  const State state;
  state.write(2, 20, "");
  ModelConsul consul;
  Stage scene{consul};
  CHECK(state.logs(scene) == 0);
  CHECK(scene.out().empty());
  CHECK(scene.err() == "lictor: attempt 2 on a has printed nothing\n");
}

TEST_CASE("an attempt whose output was lost on its host says so, and not that it printed nothing") {
  const FakeAdminApi api{[](const httpd::Request& request) {
    if (request.target.find("attempt=") != std::string::npos) {
      return httpd::Response{200, "text/plain", "", {}};
    }
    const json log{{"attempt", 1},        {"token", 5},
                   {"size", 0},           {"running", false},
                   {"modified", nullptr}, {"error", "cannot write it: No space left on device"}};
    return json_answer(json{{"logs", {log}}}.dump());
  }};
  ModelConsul consul;
  consul.join(api.url());
  const Printed stage = printed(consul, "logs 7");
  CHECK(contains(stage.err, "the output of attempt 1 was lost on a: cannot write it: No space"));
  CHECK(contains(stage.err, "\"lictor show 7\" has the end of it"));
}

TEST_CASE("a daemon that refuses the admin token is named; an empty folder proves nothing then") {
  const FakeAdminApi api{[](const httpd::Request&) {
    return httpd::Response{401, "application/json", R"({"error":"expected a token"})", {}};
  }};
  ModelConsul consul;
  consul.join(api.url());
  consul.put("lictor/q/dead/7", R"({"node":"a","reason":"failed","record":{}})");
  const State state;
  Stage stage{consul};
  const std::string& told = refusal_of(state.logs(stage)).message;
  const std::string why = "asks for the admin token; --config must name a file";
  REQUIRE(contains(told, why));
  CHECK_FALSE(contains(told.substr(told.find(why) + 1), why));  // once is enough
  CHECK_FALSE(contains(told, "has none in"));
  state.write(1, 10, "on disk\n");
  Stage readable{consul};
  REQUIRE(state.logs(readable) == 0);
  CHECK(readable.out() == "on disk\n");
}

TEST_CASE("--json lists the logs") {
  const State state;
  state.write(1, 10, "first\n");
  ModelConsul consul;
  Stage scene{consul, true};
  CHECK(state.logs(scene) == 0);
  const json told = json::parse(scene.out());
  CHECK(told["id"] == "7");
  REQUIRE(told["logs"].size() == 1);
  check_members(told["logs"][0], {{"node", "a"}, {"attempt", 1}, {"size", 6}});
}

TEST_CASE("without a log the error names what was tried, and the state of the task") {
  const State state;
  ModelConsul consul;
  const auto error_of = [&](const std::string& options = {}) {
    Stage stage{consul};
    return refusal_of(state.logs(stage, options), ErrorCode::kNotFound);
  };
  CHECK(contains(error_of("--node b"), "b: no member now"));
  const std::string unknown = error_of();
  CHECK(contains(unknown, "queue \"q\" has no task 7, and no output of one was found"));
  CHECK(contains(unknown, "a: has none in "));
  // Dead, so it was begun.
  consul.put("lictor/q/dead/7", R"({"attempts":2,"node":"a"})");
  const std::string dead = error_of();
  CHECK(contains(dead, "it has printed nothing, its log was removed"));
  CHECK_FALSE(contains(dead, "has not begun"));
  consul.remove("lictor/q/dead/7");
  consul.put("lictor/q/done/7", R"({"cancelled_by":"root@vm"})");
  CHECK_FALSE(contains(error_of(), "root@vm: no member"));
  consul.remove("lictor/q/done/7");
  consul.put("lictor/q/tasks/7", R"({"taskType":"T"})");
  CHECK(contains(error_of(), "was never started; \"lictor why 7\""));
  consul.put("lictor/q/tasks/7", R"({"taskType":"T","taskAttempt":1})");
  CHECK(contains(error_of(),
                 "the attempt has not begun, it has printed nothing, its log was removed"));
}

TEST_CASE("the error names a silent member that ran the task as the probable cause") {
  const State state;
  const std::string record = R"({"taskType":"T","taskTaken":true,"taskAttempt":1,)"
                             R"("taskClaim":{"node":"b","session":"s1","nonce":"n"}})";
  const std::string value =
      R"({"node":"b","host":")" + host_name() + R"(","admin":["http://127.0.0.1:1"]})";
  for (const bool member : {true, false}) {
    ModelConsul consul;
    consul.put("lictor/q/tasks/7", record);
    if (member) consul.put("lictor/q/members/b", value, consul.session());
    Stage stage{consul};
    const std::string told = state.logs(stage).error().message;
    CAPTURE(told);
    CHECK(contains(told, "it is probably where nobody could be asked: b: "));
    CHECK(contains(told, member ? "127.0.0.1:1" : "b: no member now"));
    CHECK_FALSE(contains(told, "has not begun"));
  }
}

}  // namespace lictor::cli::test
