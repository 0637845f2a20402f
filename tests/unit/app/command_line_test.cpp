#include "app/command_line.h"

#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "unit/contains.h"

namespace lictor::app {
namespace {

using unit::contains;

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

TEST_CASE("global flags may stand before the command or after it") {
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

TEST_CASE("submit takes its parameters unchanged") {
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

TEST_CASE("logs takes an attempt and a member") {
  const auto invocation = accept({"logs", "a/b", "-f", "--attempt", "2", "--node", "n"});
  const auto& logs = std::get<cli::LogsOptions>(invocation.command);
  CHECK(logs.id == "a/b");
  CHECK(logs.follow);
  CHECK(logs.attempt == 2);
  CHECK(logs.node == "n");
}

TEST_CASE("--ndjson needs no type and excludes the flags of a single task") {
  const auto invocation = accept({"submit", "--ndjson", "-"});
  const auto& many = std::get<cli::SubmitManyOptions>(invocation.command);
  CHECK(many.file == "-");
  CHECK(many.order == SubmitOrder::kAsGiven);
  const auto faster = accept({"submit", "--ndjson", "-", "--any-order"});
  CHECK(std::get<cli::SubmitManyOptions>(faster.command).order == SubmitOrder::kAny);
  CHECK(contains(refuse({"submit", "T", "--any-order"}), "--ndjson"));
  CHECK(contains(refuse({"submit", "--ndjson", "-", "--id", "4"}), "excludes"));
}

TEST_CASE("a command on many tasks takes ids or --all, and only --all takes filters") {
  const auto cancel = accept({"cancel", "a", "b"});
  CHECK(std::get<cli::CancelOptions>(cancel.command).ids == std::vector<std::string>{"a", "b"});
  const auto retry = accept({"retry", "--all", "--type", "T", "--reason", "expired"});
  const auto& options = std::get<cli::RetryOptions>(retry.command);
  CHECK(options.all);
  CHECK(options.type == "T");
  CHECK(options.reason == "expired");
  CHECK(contains(refuse({"cancel"}), "ID or --all is required"));
  CHECK(contains(refuse({"cancel", "a", "--all"}), "excludes"));
  CHECK(contains(refuse({"retry", "a", "--type", "T"}), "requires --all"));
}

TEST_CASE("--version and help do as in other programs") {
  CHECK(std::holds_alternative<VersionCommand>(accept({"--version"}).command));
  const auto help = parse_command_line({"help", "dead", "purge"});
  CHECK(std::get<Answer>(help).text ==
        std::get<Answer>(parse_command_line({"dead", "purge", "--help"})).text);
  CHECK(std::get<Answer>(parse_command_line({"help"})).exit_code == 0);
}

TEST_CASE("dead has subcommands") {
  const auto purge = accept({"--queue", "q", "dead", "purge", "--all", "--older-than", "24h"});
  CHECK(purge.queue == "q");
  CHECK(std::get<cli::DeadPurgeOptions>(purge.command).older_than == std::chrono::hours{24});
  const auto show = accept({"dead", "show", "x~2", "--json"});
  CHECK(std::get<cli::DeadShowOptions>(show.command).id == "x~2");
  CHECK(show.json);
  CHECK(contains(refuse({"dead"}), "lictor dead"));
  CHECK(contains(refuse({"dead", "lst"}), "did you mean list?"));
  CHECK(contains(refuse({"dead", "list", "--older-than", "long"}), "expected a duration"));
}

TEST_CASE("schedule takes a rule and a task, or a whole record") {
  const auto invocation = accept({"schedule", "add", "n", "--at", "2026-12-24T18:00:00Z", "--at",
                                  "1800000000", "--type", "T", "--para", "a=b", "--missed", "all",
                                  "--missed-limit", "0", "--replace"});
  const auto& add = std::get<cli::ScheduleAddOptions>(invocation.command);
  CHECK(add.name == "n");
  CHECK(add.rule.at == std::vector<std::string>{"2026-12-24T18:00:00Z", "1800000000"});
  CHECK(add.task.type == "T");
  CHECK(add.task.paras == std::vector<std::string>{"a=b"});
  CHECK(add.missed_limit == 0);
  CHECK(add.replace);
  const auto whole = accept({"schedule", "add", "n", "-f", "-", "--replace"});
  CHECK(std::get<cli::ScheduleAddOptions>(whole.command).file == "-");
  CHECK(contains(refuse({"schedule", "add", "n", "-f", "x", "--cron", "@daily"}), "excludes"));
  CHECK(contains(refuse({"schedule", "add", "n", "-f", "x", "--backoff", "1s"}), "excludes"));
  CHECK(contains(refuse({"schedule", "add"}), "NAME is required"));

  const auto next = accept({"schedule", "next", "--cron", "@daily", "-n", "3"});
  CHECK(std::get<cli::ScheduleNextOptions>(next.command).rule.cron == "@daily");
  CHECK(std::get<cli::ScheduleNextOptions>(next.command).count == 3);
  CHECK(std::get<cli::ScheduleNextOptions>(accept({"schedule", "next", "n"}).command).name == "n");
  CHECK(contains(refuse({"schedule", "next"}), "NAME or --cron"));
  CHECK(contains(refuse({"schedule", "next", "n", "--cron", "@daily"}), "excludes"));
  CHECK(contains(refuse({"schedule", "next", "n", "-n", "0"}), "from 1 on"));
  CHECK(contains(refuse({"schedule", "lst"}), "did you mean list?"));
}

TEST_CASE("bad usage is one line that names the help") {
  CHECK(refuse({"sbmit"}) ==
        "lictor: no command \"sbmit\"; did you mean submit?; see \"lictor --help\"\n");
  CHECK(refuse({"wait", "--help"}) == "lictor: no command \"wait\"; see \"lictor --help\"\n");
  CHECK(contains(refuse({"dead", "lst", "--help"}), "no command \"lst\"; did you mean list?"));
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
  CHECK(contains(refuse({"drain"}), "HOST is required"));
  CHECK(contains(refuse({"drain", "a", "--wait-timeout", "1m"}), "requires"));
  CHECK(contains(refuse({"undrain"}), "HOST is required"));
  CHECK(contains(refuse({"bench", "--tasks", "0"}), "from 1 on"));
  CHECK(contains(refuse({}), "expected a command"));
}

TEST_CASE("every command has a help with examples") {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"run"},
                                                  {"submit"},
                                                  {"list"},
                                                  {"show"},
                                                  {"why"},
                                                  {"logs"},
                                                  {"members"},
                                                  {"drain"},
                                                  {"undrain"},
                                                  {"cancel"},
                                                  {"retry"},
                                                  {"dead"},
                                                  {"dead", "list"},
                                                  {"dead", "show"},
                                                  {"dead", "purge"},
                                                  {"schedule"},
                                                  {"schedule", "list"},
                                                  {"schedule", "show"},
                                                  {"schedule", "add"},
                                                  {"schedule", "next"},
                                                  {"schedule", "run"},
                                                  {"schedule", "pause"},
                                                  {"schedule", "resume"},
                                                  {"schedule", "remove"},
                                                  {"pause"},
                                                  {"resume"},
                                                  {"leader"},
                                                  {"check"},
                                                  {"dev"},
                                                  {"bench"},
                                                  {"version"}}) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--help");
    std::string usage = "Usage: lictor";
    for (const std::string& word : command) usage += ' ' + word;
    CAPTURE(usage);
    const auto parsed = parse_command_line(arguments);
    const auto* answer = std::get_if<Answer>(&parsed);
    REQUIRE(answer != nullptr);
    CHECK(answer->exit_code == 0);
    CHECK(contains(answer->text, usage + ' '));
    CHECK(contains(answer->text, "Examples:"));
  }
}

}  // namespace

TEST_CASE("help prints a topic of the manual, and names commands and topics to whoever errs") {
  const auto concepts = std::get<Answer>(parse_command_line({"help", "concepts"}));
  CHECK(concepts.exit_code == 0);
  CHECK(concepts.text.starts_with("concepts - "));
  const auto all = std::get<Answer>(parse_command_line({"help"}));
  CHECK(contains(all.text, "Topics of the manual:\n  concepts "));
  CHECK(contains(all.text, "  submit "));
  const std::string refusal = refuse({"help", "concept"});
  CHECK(
      refusal.starts_with("lictor: no command and no topic \"concept\"; did you mean concepts?; "
                          "commands: run, submit, "));
  CHECK(contains(refusal, "; topics: concepts, producers, "));
}

}  // namespace lictor::app
