#include "exec/environment.h"

#include <algorithm>
#include <chrono>
#include <string>

#include <doctest/doctest.h>

namespace lictor::exec {
namespace {

using Environment = std::vector<std::string>;

Environment with_record(std::string record) {
  Attempt attempt{.record = std::make_shared<const std::string>(std::move(record))};
  return job_environment({}, {}, attempt, std::nullopt);
}

bool has(const Environment& environment, const std::string& variable) {
  return std::count(environment.begin(), environment.end(), variable) == 1;
}

bool names(const Environment& environment, const std::string& name) {
  return std::any_of(environment.begin(), environment.end(),
                     [&](const auto& variable) { return variable.starts_with(name + "="); });
}

}  // namespace

TEST_CASE("of the daemon's environment a job gets only place, language and user") {
  const char* const daemon[] = {"PATH=/bin",      "LC_TIME=C",
                                "TZ=UTC",         "HOME=/root",
                                "USER=root",      "CONSUL_HTTP_TOKEN=s",
                                "LICTOR_ROOT=x/", "LD_PRELOAD=x",
                                "no variable",    "NOTIFY_SOCKET=/run/n",
                                nullptr};
  const Variables passed_on{
      {"PATH", "/bin"}, {"LC_TIME", "C"}, {"TZ", "UTC"}, {"HOME", "/root"}, {"USER", "root"}};
  CHECK(base_environment(daemon, nullptr) == passed_on);

  const User user{"oracle", "/home/oracle", "/bin/sh", {}};
  const Variables other = base_environment(daemon, &user);
  CHECK(other.at("HOME") == "/home/oracle");
  CHECK(other.at("USER") == "oracle");
  CHECK(other.at("LOGNAME") == "oracle");
  CHECK(other.at("SHELL") == "/bin/sh");
  const char* const nothing[] = {nullptr};
  CHECK(base_environment(nothing, nullptr).contains("PATH"));
}

TEST_CASE("a job's variables name its task, and the configuration cannot override them") {
  Attempt attempt{.queue = "oracle",
                  .task_id = "a/7",
                  .task_key = "oracleTask/a/7",
                  .task_type = "Create",
                  .number = 2,
                  .fencing_token = 18446744073709551615U};
  const WallTime deadline{std::chrono::milliseconds{1'445'599'887'250}};
  const Environment told = job_environment(
      {{"PATH", "/bin"}}, {{"PATH", "/opt/bin"}, {"SID", "a=b"}, {"LICTOR_TASK_ID", "x"}}, attempt,
      deadline);
  CHECK(told == Environment{"LICTOR_ATTEMPT=2", "LICTOR_DEADLINE=2015-10-23T11:31:27.250Z",
                            "LICTOR_FENCING_TOKEN=18446744073709551615", "LICTOR_QUEUE=oracle",
                            "LICTOR_TASK_ID=a/7", "LICTOR_TASK_KEY=oracleTask/a/7",
                            "LICTOR_TASK_TYPE=Create", "PATH=/opt/bin", "SID=a=b"});
  CHECK(has(job_environment({}, {}, attempt, std::nullopt), "LICTOR_DEADLINE="));
}

TEST_CASE("each scalar of taskPara becomes a variable, numbers as they are written") {
  const Environment told = with_record(R"({
    "taskId": "7", "other": {"x": 1},
    "taskPara": {"text": "a b\nc", "whole": 18446744073709551615, "negative": -5,
                 "huge": 123456789012345678901234567890, "real": 1.50e3, "yes": true, "no": false,
                 "nothing": null, "list": [1, 2], "object": {"inner": 1}, "after": "x",
                 "instance-id.ä": "db7", "": "nameless"},
    "last": 5})");
  for (const char* variable : {"text=a b\nc", "whole=18446744073709551615", "negative=-5",
                               "huge=123456789012345678901234567890", "real=1.50e3", "yes=true",
                               "no=false", "nothing=", "after=x", "instance_id___=db7"}) {
    CAPTURE(variable);
    CHECK(has(told, std::string{"LICTOR_PARA_"} + variable));
  }
  for (const char* name : {"list", "object", "inner", "x", "last", "taskId", ""}) {
    CAPTURE(name);
    CHECK_FALSE(names(told, std::string{"LICTOR_PARA_"} + name));
  }
}

TEST_CASE("a parameter that no variable can hold is left out") {
  CHECK_FALSE(names(with_record(R"({"taskPara": {"nul": "a\u0000b"}})"), "LICTOR_PARA_nul"));
  const std::string longest(kMaxVariableBytes - 15, 'x');
  CHECK(names(with_record(R"({"taskPara": {"big": ")" + longest + "\"}}"), "LICTOR_PARA_big"));
  CHECK_FALSE(
      names(with_record(R"({"taskPara": {"big": ")" + longest + "x\"}}"), "LICTOR_PARA_big"));
  CHECK(has(with_record(R"({"taskPara": {"a-b": 1, "a_b": 2}})"), "LICTOR_PARA_a_b=2"));
  for (const char* para : {"\"text\"", "[{\"a\": 1}]", "7", "null"}) {
    CHECK(with_record(std::string{R"({"taskPara": )"} + para + "}").size() == 7);
  }
  CHECK(with_record("no JSON").size() == 7);
}

// As many as a value of Consul's holds. Searching each among all took 24 s, longer than a lease.
TEST_CASE("a record full of parameters takes no longer than as many in small records") {
  using std::chrono::steady_clock;
  constexpr int kParameters = 60'000, kRecords = 60;
  const auto record = [](int parameters) {
    std::string text = R"({"taskPara":{)";
    for (int i = 0; i < parameters; ++i) text += "\"n" + std::to_string(i) + "\":1,";
    return text + R"("last":1}})";
  };
  const std::string small = record(kParameters / kRecords), large = record(kParameters);
  const auto begun = steady_clock::now();
  for (int i = 0; i < kRecords; ++i) CHECK(has(with_record(small), "LICTOR_PARA_last=1"));
  const auto between = steady_clock::now();
  const Environment told = with_record(large);
  CHECK(steady_clock::now() - between < 12 * (between - begun));  // sixty times, if each searched
  CHECK(told.size() == 7 + kParameters + 1);
  CHECK(has(told, "LICTOR_PARA_last=1"));
}

}  // namespace lictor::exec
