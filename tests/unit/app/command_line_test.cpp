#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "app/program.h"
#include "unit/contains.h"

namespace lictor::app {
namespace {

// The result of reading arguments.
struct Reading {
  explicit Reading(const std::vector<std::string>& words) {
    add_commands(line, program);
    read = read_arguments(line, words);
  }
  [[nodiscard]] const cli::ParseOutcome* answer() const {
    return std::get_if<cli::ParseOutcome>(&read);
  }

  const Registry registry;
  cli::Console console = cli::Console::standard();
  Program program{registry, console};
  cli::CommandLine line;
  std::variant<cli::Command, cli::ParseOutcome> read;
};

std::string refuse(const std::vector<std::string>& arguments) {
  const Reading reading{arguments};
  REQUIRE(reading.answer());
  CHECK(reading.answer()->exit_code == 2);
  CHECK(reading.answer()->text.ends_with('\n'));
  return reading.answer()->text;
}

std::string help(const std::vector<std::string>& arguments) {
  const Reading reading{arguments};
  REQUIRE(reading.answer());
  CHECK(reading.answer()->exit_code == 0);
  return reading.answer()->text;
}

TEST_CASE("global flags may stand before the command or after it") {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"--queue", "q", "--json", "--consul=h:1", "dead", "list"},
           {"dead", "list", "--queue", "q", "--json", "--consul", "h:1"}}) {
    const Reading reading{arguments};
    REQUIRE_FALSE(reading.answer());
    CHECK(reading.program.queue == "q");
    CHECK(reading.program.json);
    CHECK(reading.program.overrides.consul_addresses == "h:1");
    CHECK(std::get<cli::Command>(reading.read).on_queue);
  }
}

TEST_CASE("flags that exclude each other are refused, and missing ones are named") {
  struct Refused {
    std::vector<std::string> arguments;
    const char* why;
  };
  for (const auto& [arguments, why] :
       std::vector<Refused>{{{"submit", "T", "--any-order"}, "--ndjson"},
                            {{"submit", "--ndjson", "-", "--id", "4"}, "excludes"},
                            {{"submit", "T", "--at", "1", "--in", "1s"}, "excludes"},
                            {{"submit", "T", "--wait", "--wait-timeout", "x"}, "duration"},
                            {{"submit", "T", "--in", "soon"}, "--in: expected a duration"},
                            {{"submit", "T", "--timeout", "90"}, "--timeout: expected a duration"},
                            {{"submit", "T", "--max-attempts", "0"}, "from 1 on"},
                            {{"submit", "T", "--id"}, "--id: expected a value"},
                            {{"submit"}, "TYPE is required"},
                            {{"cancel"}, "ID or --all is required"},
                            {{"retry", ""}, "expected a task's id, got nothing"},
                            {{"cancel", "a", "--all"}, "excludes"},
                            {{"retry", "a", "--type", "T"}, "requires --all"},
                            {{"dead"}, "lictor dead"},
                            {{"dead", "lst"}, "did you mean list?"},
                            {{"dead", "lst", "--help"}, "no command \"lst\"; did you mean list?"},
                            {{"dead", "list", "--older-than", "long"}, "expected a duration"},
                            {{"schedule", "add", "n", "-f", "x", "--cron", "@daily"}, "excludes"},
                            {{"schedule", "add", "n", "-f", "x", "--backoff", "1s"}, "excludes"},
                            {{"schedule", "add"}, "NAME is required"},
                            {{"schedule", "next"}, "NAME or --cron"},
                            {{"schedule", "next", "n", "--cron", "@daily"}, "excludes"},
                            {{"schedule", "next", "n", "-n", "0"}, "from 1 on"},
                            {{"schedule", "lst"}, "did you mean list?"},
                            {{"list", "--limit", "x"}, "whole number"},
                            {{"show"}, "ID is required"},
                            {{"logs"}, "ID is required"},
                            {{"logs", "1", "--attempt", "0"}, "from 1 on"},
                            {{"leader", "--no-wait"}, "requires"},
                            {{"drain"}, "HOST is required"},
                            {{"drain", "a", "--wait-timeout", "1m"}, "requires"},
                            {{"undrain"}, "HOST is required"},
                            {{"bench", "--tasks", "0"}, "from 1 on"},
                            {{}, "expected a command"}}) {
    CAPTURE(arguments);
    CHECK(contains(refuse(arguments), why));
  }
}

TEST_CASE("--version and help do as in other programs") {
  CHECK_FALSE(Reading{{"--version"}}.answer());
  CHECK(help({"help", "dead", "purge"}) == help({"dead", "purge", "--help"}));
}

TEST_CASE("bad usage is one line that names the help") {
  CHECK(refuse({"sbmit"}) ==
        "lictor: no command \"sbmit\"; did you mean submit?; see \"lictor --help\"\n");
  CHECK(refuse({"wait", "--help"}) == "lictor: no command \"wait\"; see \"lictor --help\"\n");
  CHECK(refuse({"submit", "T", "--pra", "a=b"}) ==
        "lictor: no option \"--pra\"; did you mean --para?; see \"lictor submit --help\"\n");
}

TEST_CASE("every command has a help with examples") {
  std::vector<std::vector<std::string>> commands;
  for (const std::string& name : Reading{{"version"}}.line.names()) commands.push_back({name});
  CHECK(commands.size() == 24);
  for (const char* name : {"list", "show", "purge"}) commands.push_back({"dead", name});
  for (const char* name : {"list", "show", "add", "next", "run", "pause", "resume", "remove"}) {
    commands.push_back({"schedule", name});
  }
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--help");
    std::string usage = "Usage: lictor";
    for (const std::string& word : command) usage += ' ' + word;
    CAPTURE(usage);
    const std::string text = help(arguments);
    CHECK(contains(text, usage + ' '));
    CHECK(contains(text, "Examples:"));
  }
}

}  // namespace

TEST_CASE("help prints a topic of the manual, and names commands and topics after a mistake") {
  CHECK(help({"help", "concepts"}).starts_with("# Concepts\n\n"));
  const std::string all = help({"help"});
  CHECK(contains(all, "Topics of the manual:\n  concepts "));
  CHECK(contains(all, "  submit "));
  const std::string refusal = refuse({"help", "concept"});
  CHECK(
      refusal.starts_with("lictor: no command and no topic \"concept\"; did you mean concepts?; "
                          "commands: run, submit, "));
  CHECK(contains(refusal, "; topics: concepts, producers, "));
}

}  // namespace lictor::app
