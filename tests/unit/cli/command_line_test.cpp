#include "app/command_line.h"

#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

namespace lictor::app {
namespace {

Invocation accept(const std::vector<std::string>& arguments) {
  const auto parsed = parse_command_line(arguments);
  const auto* answer = std::get_if<Answer>(&parsed);
  REQUIRE_MESSAGE(answer == nullptr, (answer ? answer->text : ""));
  return std::get<Invocation>(parsed);
}

std::string refuse(const std::vector<std::string>& arguments) {
  const auto parsed = parse_command_line(arguments);
  REQUIRE(std::holds_alternative<Answer>(parsed));
  const auto& answer = std::get<Answer>(parsed);
  CHECK(answer.exit_code == 2);
  CHECK(answer.text.ends_with('\n'));
  return answer.text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("flags that say where may stand before the command and after it") {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"--queue", "q", "--json", "--consul=h:1", "list"},
           {"list", "--queue", "q", "--json", "--consul", "h:1"}}) {
    const Invocation invocation = accept(arguments);
    CHECK(invocation.queue == "q");
    CHECK(invocation.json);
    CHECK(invocation.overrides.consul_addresses == "h:1");
    CHECK(std::holds_alternative<cli::ListOptions>(invocation.command));
  }
}

TEST_CASE("submit takes its parameters as they are") {
  const auto invocation = accept({"submit", "T", "--para", "a=1", "--para", "b=-2", "--id", "-x",
                                  "--max-attempts", "5", "--wait", "--wait-timeout", "90s"});
  const auto& submit = std::get<cli::SubmitOptions>(invocation.command);
  CHECK(submit.task.type == "T");
  CHECK(submit.task.paras == std::vector<std::string>{"a=1", "b=-2"});
  CHECK(submit.task.id == "-x");
  CHECK(submit.task.max_attempts == 5);
  CHECK(submit.wait);
  CHECK(submit.wait_timeout == std::chrono::seconds{90});
}

TEST_CASE("logs takes which attempt, and of which member") {
  const auto invocation = accept({"logs", "a/b", "-f", "--attempt", "2", "--node", "n"});
  const auto& logs = std::get<cli::LogsOptions>(invocation.command);
  CHECK(logs.id == "a/b");
  CHECK(logs.follow);
  CHECK(logs.attempt == 2);
  CHECK(logs.node == "n");
}

TEST_CASE("--ndjson needs no type and goes with no flag of a single task") {
  const auto invocation = accept({"submit", "--ndjson", "-"});
  CHECK(std::get<cli::SubmitManyOptions>(invocation.command).file == "-");
  CHECK(contains(refuse({"submit", "--ndjson", "-", "--id", "4"}), "excludes"));
}

TEST_CASE("bad usage is one line that names the way out") {
  CHECK(refuse({"sbmit"}) ==
        "lictor: no command \"sbmit\"; did you mean submit?; see \"lictor --help\"\n");
  CHECK(refuse({"submit", "T", "--pra", "a=b"}) ==
        "lictor: no option \"--pra\"; did you mean --para?; see \"lictor submit --help\"\n");
  CHECK(contains(refuse({"submit"}), "TYPE is required"));
  CHECK(contains(refuse({"submit", "T", "--max-attempts", "0"}), "from 1 on"));
  CHECK(contains(refuse({"submit", "T", "--id"}), "--id: expected a value"));
  CHECK(contains(refuse({"submit", "T", "--at", "1", "--in", "1s"}), "excludes"));
  CHECK(contains(refuse({"submit", "T", "--wait", "--wait-timeout", "x"}), "duration"));
  CHECK(contains(refuse({"list", "--limit", "x"}), "whole number"));
  CHECK(contains(refuse({"show"}), "ID is required"));
  CHECK(contains(refuse({"logs"}), "ID is required"));
  CHECK(contains(refuse({"logs", "1", "--attempt", "0"}), "from 1 on"));
  CHECK(contains(refuse({"leader", "--no-wait"}), "requires"));
  CHECK(contains(refuse({}), "expected a command"));
}

TEST_CASE("every command has a help with examples") {
  for (const char* command :
       {"run", "submit", "list", "show", "logs", "leader", "members", "check", "version"}) {
    CAPTURE(command);
    const auto parsed = parse_command_line({command, "--help"});
    const auto* answer = std::get_if<Answer>(&parsed);
    REQUIRE(answer != nullptr);
    CHECK(answer->exit_code == 0);
    CHECK(contains(answer->text, std::string{"Usage: lictor "} + command));
    CHECK(contains(answer->text, "Examples:"));
  }
}

}  // namespace
}  // namespace lictor::app
