#include "app/executors.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/program.h"
#include "config_text.h"
#include "lictor/worker.h"
#include "temporary_folder.h"
#include "unit/refusal.h"

namespace lictor::app {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

}  // namespace

TEST_CASE("no executor is refused where it is added") {
  CHECK_THROWS_AS(Worker{}.add("Mail", std::shared_ptr<Executor>{}), std::invalid_argument);
}

TEST_CASE("an earlier daemon's files are removed; only jobs of other users open state_dir") {
  const unit::TemporaryFolder folder;
  const std::string& dir = folder.path();
  Config config;
  config.queues.emplace_back();
  config.state_dir = dir;
  std::filesystem::create_directories(dir + "/scratch/0");
  std::ofstream{dir + "/scratch/0/1-1.commit"} << "[]";
  std::ofstream{dir + "/precious"} << "x";
  std::filesystem::create_symlink(dir + "/precious", dir + "/scratch/0/link");

  config.queues.front().executors["A"] = ExecConfig{};
  prepare_scratch(config);
  CHECK_FALSE(std::filesystem::exists(dir + "/scratch/0"));
  CHECK(std::filesystem::exists(dir + "/precious"));
  CHECK(mode_of(dir) == 0700);

  ExecConfig other;
  other.user = exec::User{"daemon", "/", "/bin/sh", {1, 1, {}}};
  config.queues.front().executors["B"] = other;
  prepare_scratch(config);
  CHECK(mode_of(dir) == 0701);
}

TEST_CASE("a fault of a plug-in is reported before the daemon is restarted") {
  const Error error = refusal_of(
      load_plugins(parsed(R"({"queues": [{"executors": {"A": {"plugin": "/bin/true"}}}]})")));
  CHECK(contains(error.message, R"(A.plugin: plug-in "/bin/true": cannot be loaded)"));
}

TEST_CASE("a worker is started once, and its fault is reported") {
  const unit::TemporaryFolder folder;
  const std::string text = R"({"state_dir": ")" + folder.path() + R"(", "queues": [{"executors": {
    "Bad": {"worker": ["/bin/sh", "-c", "echo no database; exit 3"]},
    "Good": {"worker": ["/bin/sh", "-c", "echo '{\"ready\":{\"protocol\":1}}' >&3; cat"],
             "processes": 4},
    "None": {"noop": {}},
    "Silent": {"worker": ["/bin/sleep", "1000"], "start_timeout": "100ms"}}}]})";
  const auto tried = try_workers(parsed(text));
  REQUIRE(tried.size() == 3);
  CHECK(tried[0].queue == "default");
  CHECK(tried[0].type == "Bad");
  CHECK(contains(tried[0].error, "exit status 3: no database"));
  CHECK(tried[1].type == "Good");
  CHECK(tried[1].error == "");
  CHECK(tried[2].type == "Silent");
  CHECK(contains(tried[2].error, "within start_timeout (100ms)"));
}

namespace {

// One attempt by a function.
class Run {
 public:
  template <class Function>
  explicit Run(Function function, const std::string& record = R"({"taskPara": {"a": 1}})",
               bool stopped = false) {
    if (stopped) stop.request_stop();
    exec::Attempt attempt;
    attempt.id = AttemptId{5};
    attempt.task_id = "7";
    attempt.number = 2;
    attempt.fencing_token = 99;
    attempt.record = std::make_shared<const std::string>(record);
    const exec::JobTools tools{stop.get_token(), Instant::max(),
                               [this](std::string text) { progress.push_back(std::move(text)); }};
    exit = run_in_process(*make_executor(std::move(function)), attempt, tools);
  }

  std::stop_source stop;
  std::vector<std::string> progress;
  exec::Exit exit;
};

}  // namespace

TEST_CASE("too deeply nested parameters never reach an executor") {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const std::string record = R"({"taskPara": )" + deep + "}";
  const auto asks = [](const Context& context) { static_cast<void>(context.task()); };
  CHECK_THROWS(Run(asks, record));
  // A repeated request fails again; a job that does not ask is not affected.
  const Run stubborn{[](const Context& context) {
                       CHECK_THROWS(static_cast<void>(context.task()));
                       CHECK_THROWS(static_cast<void>(context.task()));
                     },
                     record};
  CHECK(stubborn.exit.ending == exec::Ending::kDone);
  CHECK(Run{[](const Context&) {}, record}.exit.ending == exec::Ending::kDone);
}

TEST_CASE("parameters have the depth that an executor can bear") {
  // Levels in arrays and in objects, the parameters' own and those within; one more is refused.
  constexpr std::size_t kDeepest = 512;
  const auto record_of = [](const std::string& open, const std::string& close, std::size_t levels) {
    std::string text = R"({"taskPara": )";
    for (std::size_t i = 0; i < levels; ++i) text += open;
    text += "1";
    for (std::size_t i = 0; i < levels; ++i) text += close;
    return text + "}";
  };
  const auto use = [](const Context& context) {
    const json& parameters = context.task().parameters;
    const json copy = parameters;
    CHECK(copy == parameters);
    CHECK(json::parse(copy.dump()) == copy);
    context.put("app/x", copy.dump());
    return JobResult::done(copy);
  };
  for (const auto& [open, close] : {std::pair{"[", "]"}, std::pair{R"({"a":)", "}"}}) {
    const Run run{use, record_of(open, close, kDeepest)};
    CHECK(run.exit.ending == exec::Ending::kDone);
    CHECK(run.exit.result);
    CHECK_THROWS_WITH(Run(use, record_of(open, close, kDeepest + 1)),
                      "taskPara is nested deeper than 512 levels, too deep for an executor in C++");
  }
}

TEST_CASE("all threads of a job get the same task") {
  const Run run{[](const Context& context) {
    std::vector<const Task*> seen(4);
    std::vector<std::jthread> threads;
    for (const Task*& each : seen) threads.emplace_back([&] { each = &context.task(); });
    threads.clear();
    for (const Task* each : seen) CHECK(each == &context.task());
    CHECK(context.task().parameters == json{{"a", 1}});
  }};
  CHECK(run.exit.ending == exec::Ending::kDone);
}

TEST_CASE("an executor gets its task, and its answer is the exit") {
  const Run run{[](const Context& context) {
    CHECK(context.task().id == "7");
    CHECK(context.task().parameters == json{{"a", 1}});
    CHECK(context.attempt() == 2);
    CHECK(context.fencing_token() == 99);
    return JobResult::permanent("no");
  }};
  CHECK(run.exit.attempt == AttemptId{5});
  CHECK(run.exit.ending == exec::Ending::kPermanent);
  CHECK(run.exit.error == "no");

  const auto ask = [](const Context& context) {
    CHECK(context.task().parameters.value("name", "world") == "world");
  };
  const Run nothing{ask, "{}"};
  CHECK(nothing.exit.ending == exec::Ending::kDone);
  CHECK(Run{ask, R"({"taskPara":null})"}.exit.ending == exec::Ending::kDone);
  CHECK_FALSE(nothing.exit.commit);
  CHECK_FALSE(nothing.exit.result);

  const Run later{[](const Context&) { return JobResult::retry("busy", 1500ms); }};
  CHECK(later.exit.ending == exec::Ending::kRetry);
  CHECK(later.exit.retry_after == 1500ms);
  const Run soon{[](const Context&) { return JobResult::retry("busy"); }};
  CHECK_FALSE(soon.exit.retry_after);
}

TEST_CASE("writes and result of a finished attempt have the form of a program's") {
  const auto writer = [](JobResult result) {
    return [result](const Context& context) {
      context.put("app/x", "text");
      context.put("app/b", std::string{"\xff\0", 2}, 0);
      context.erase("app/y");
      context.erase("app/z", 18'000'000'000'000'000'000U);
      return result;
    };
  };
  const Run done{writer(JobResult::done({{"size", 5}}))};
  CHECK(done.exit.ending == exec::Ending::kDone);
  CHECK(done.exit.result == R"({"size":5})");
  REQUIRE(done.exit.commit);
  CHECK(json::parse(*done.exit.commit) == json::parse(R"([
      {"key": "app/x", "value": "text"}, {"key": "app/b", "value_base64": "/wA=", "cas": 0},
      {"key": "app/y", "delete": true},
      {"key": "app/z", "delete": true, "cas": 18000000000000000000}])"));
  CHECK_FALSE(Run{writer(JobResult::retry("busy"))}.exit.commit);
  CHECK_FALSE(Run{writer(JobResult::permanent("no"))}.exit.commit);
  CHECK(Run{[](const Context&) { return JobResult::done(nullptr); }}.exit.result == "null");
}

TEST_CASE("writes and results that Consul cannot take fail the attempt") {
  const auto check = [](const exec::Exit& exit, const std::string& error) {
    CHECK(exit.ending == exec::Ending::kRetry);
    CHECK(exit.error == error);
    CHECK_FALSE(exit.commit);
    CHECK_FALSE(exit.result);
  };
  check(Run{[](const Context& context) { context.put("", "x"); }}.exit,
        "KV writes: key \"\": expected a key that is not empty, in UTF-8");
  check(Run{[](const Context& context) { context.erase("a\xff"); }}.exit,
        "KV writes: key \"a\xef\xbf\xbd\": expected a key that is not empty, in UTF-8");
  check(Run{[](const Context& context) {
          context.put("app/x", "y");
          return JobResult::done("\xff");
        }}.exit,
        "result: expected strings and names in UTF-8, got other bytes");
  check(Run{[](const Context&) {
          return JobResult::done({{"ratio", std::nan("")}});
        }}.exit,
        "result: expected JSON, got NaN or infinity");
  for (const std::size_t levels : {513, 200'000}) {
    check(Run{[&](const Context&) {
            return JobResult::done(
                nlohmann::json::parse(std::string(levels, '[') + std::string(levels, ']')));
          }}.exit,
          "result: expected at most 512 levels of arrays and objects, got more");
  }
  const Run deep{[](const Context&) {
    return JobResult::done(nlohmann::json::parse(std::string(512, '[') + std::string(512, ']')));
  }};
  CHECK(deep.exit.ending == exec::Ending::kDone);
}

TEST_CASE("writes may come from many threads") {
  const Run run{[](const Context& context) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 100; ++n) context.put("app/x", "y");
      });
    }
  }};
  REQUIRE(run.exit.commit);
  CHECK(json::parse(*run.exit.commit).size() == 400);
}

TEST_CASE("progress is kept as JSON, within its bounds") {
  const Run run{[](const Context& context) {
    context.progress(0.5, "half");
    context.progress(-1);
    context.progress(7, std::string(1000, 'x') + "\xff");
    context.progress(std::numeric_limits<double>::quiet_NaN(), "\xff");
  }};
  REQUIRE(run.progress.size() == 4);
  CHECK(json::parse(run.progress[0]) == json{{"fraction", 0.5}, {"note", "half"}});
  CHECK(json::parse(run.progress[1]) == json{{"fraction", 0.0}, {"note", ""}});
  CHECK(json::parse(run.progress[2])["fraction"] == 1.0);
  CHECK(run.progress[2].size() < 300);
  CHECK(json::parse(run.progress[3])["fraction"] == 0.0);
}

TEST_CASE("a stopped attempt that gives up was stopped, one that is done was done") {
  const auto ending = [](const JobResult& result) {
    const auto ask = [&](const Context& context) {
      CHECK(context.stop_requested());
      return result;
    };
    return Run{ask, "{}", true}.exit.ending;
  };
  CHECK(ending(JobResult::retry("stopped")) == exec::Ending::kStopped);
  CHECK(ending(JobResult::done()) == exec::Ending::kDone);
}

}  // namespace lictor::app
