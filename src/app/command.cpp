// The whole of the lictor command: reads the arguments, does what they say, and returns the
// process's exit code (commands.md).

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "app/program.h"
#include "base/assert.h"
#include "base/descriptors.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/process.h"
#include "lictor/worker.h"
#include "manual/manual.h"
#include "runtime/log.h"

namespace lictor::app {

void add_commands(cli::CommandLine& line, Program& program) {
  cli::Arguments everywhere = line.everywhere();
  Overrides& overrides = program.overrides;
  everywhere.text("--config", overrides.config,
                  "The configuration (default: /etc/lictor/lictor.json, if it is there)", "FILE");
  everywhere.text("-q,--queue", program.queue,
                  "The queue (default: the only one of the configuration, or \"default\")", "NAME");
  everywhere.text("--root", overrides.root, "The prefix of all keys of lictor (default: lictor/)",
                  "PREFIX");
  everywhere.text("--consul", overrides.consul_addresses,
                  "Consul's HTTP addresses, separated by commas (default: http://127.0.0.1:8500)",
                  "ADDRESS");
  everywhere.text("--token-file", overrides.token_file, "A file with the ACL token", "FILE");
  everywhere.flag("--json", program.json, "Print one JSON document instead of text");
  cli::Commands to = line.commands();
#define LICTOR_ADD(name) add_##name(to, program);
#define LICTOR_ADD_CLI(name) cli::add_##name(to);
  LICTOR_COMMANDS(LICTOR_ADD, LICTOR_ADD_CLI)
#undef LICTOR_ADD_CLI
#undef LICTOR_ADD
}

namespace {

std::string topics_help() {
  std::string text = "\nTopics of the manual:\n";
  for (const manual::Page& page : manual::pages()) {
    const std::string topic{page.topic};
    text += "  " + topic + std::string(30 - std::min<std::size_t>(topic.size(), 29), ' ');
    text += page.summary();
    text += '\n';
  }
  return text;
}

// "help", "help TOPIC", "help COMMAND"
std::variant<cli::Command, cli::ParseOutcome> help(cli::CommandLine& line,
                                                   std::vector<std::string> words) {
  if (words.empty()) return cli::ParseOutcome{cli::kDone, line.help() + topics_help()};
  const std::string& word = words.front();
  std::vector<std::string> topics;
  for (const manual::Page& page : manual::pages()) {
    topics.emplace_back(page.topic);
    if (word == page.topic && words.size() == 1) {
      return cli::ParseOutcome{cli::kDone, std::string{page.text}};
    }
  }
  const std::vector<std::string> commands = line.names();
  if (word.starts_with('-') ||
      std::find(commands.begin(), commands.end(), word) != commands.end()) {
    words.emplace_back("--help");
    return line.parse(std::move(words));
  }
  std::vector<std::string_view> known{commands.begin(), commands.end()};
  known.insert(known.end(), topics.begin(), topics.end());
  const std::string near = nearest(word, known);
  return cli::ParseOutcome{
      cli::kUsage, fmt::format("{}: no command and no topic \"{}\"{}; commands: {}; topics: {}\n",
                               cli::program_name(), printable(excerpt(word)),
                               near.empty() ? "" : "; did you mean " + near + '?',
                               fmt::join(commands, ", "), fmt::join(topics, ", "))};
}

}  // namespace

std::variant<cli::Command, cli::ParseOutcome> read_arguments(cli::CommandLine& line,
                                                             std::vector<std::string> words) {
  // Accepts the forms that other programs have: "--version", "help", "help COMMAND".
  if (words == std::vector<std::string>{"--version"}) words = {"version"};
  const std::string first = words.empty() ? "" : words.front();
  if (first != "help" && first != "__complete") return line.parse(std::move(words));
  words.erase(words.begin());
  if (first == "help") return help(line, std::move(words));
  std::vector<std::pair<std::string_view, std::string_view>> topics;  // for the shells
  for (const manual::Page& page : manual::pages()) topics.emplace_back(page.topic, page.summary());
  return cli::ParseOutcome{cli::kDone, line.completions(words, topics)};
}

namespace {

// The options that name a file, a root or a Consul, as given: " --config ./lictor.json".
std::string given_options(const Overrides& given) {
  std::string options;
  const auto add = [&](const char* flag, const std::optional<std::string>& value) {
    if (value) options += fmt::format(" {} {}", flag, shell_word(*value));
  };
  add("--config", given.config);
  add("--root", given.root);
  add("--consul", given.consul_addresses);
  add("--token-file", given.token_file);
  return options;
}

int run_arguments(const std::vector<std::string>& arguments, const Registry& registry) {
  // In "lictor list | head" the write then fails, which Console handles, instead of killing us.
  signal(SIGPIPE, SIG_IGN);
  cli::Console console = cli::Console::standard();
  cli::CommandLine line;
  Program program{registry, console};
  add_commands(line, program);
  const auto read = read_arguments(line, arguments);
  int code = cli::kDone;
  if (const auto* answer = std::get_if<cli::ParseOutcome>(&read)) {
    code = answer->exit_code;
    if (code == cli::kDone) {
      console.print(answer->text);
    } else {
      console.note_lines(answer->text);
    }
  } else {
    const auto& command = std::get<cli::Command>(read);
    console.repeat_options(given_options(program.overrides));
    const auto result = command.alone ? command.alone() : run_on_queue(program, command);
    console.end_progress();
    if (result) {
      code = *result;
    } else {
      if (runtime::stderr_is_journal()) std::fputs("<3>", stderr);
      console.report_error(result.error().message);
      code = cli::exit_code(result.error().code);
    }
  }
  if (auto flushed = console.flush(); !flushed) {
    console.report_error(flushed.error().message);
    if (code == cli::kDone) code = cli::kFailed;
  }
  if (code != cli::kDone) cli::end_if_interrupted();
  return code;
}

}  // namespace
}  // namespace lictor::app

namespace lictor {

void Worker::add(std::string name, std::shared_ptr<Executor> executor) {
  if (!executor) throw std::invalid_argument{name + ": expected an executor, got null"};
  executors_.insert_or_assign(std::move(name), std::move(executor));
}

int Worker::main(int argc, char** argv) {
  open_standard_descriptors();
  if (argc > 0 && argv[0] != nullptr) {
    cli::program_name() = std::filesystem::path{argv[0]}.filename().string();
  }
  try {
    return app::run_arguments({argv + (argc > 0 ? 1 : 0), argv + argc}, executors_);
  } catch (const std::system_error& error) {
    // std::thread throws EAGAIN; the messages of others, such as std::filesystem's, are complete.
    const bool thread = error.code() == std::errc::resource_unavailable_try_again;
    std::fprintf(stderr, "%s: %s%s%s\n", cli::program_name().c_str(),
                 thread ? "cannot start a thread: " : "", error.what(),
                 thread ? "; raise the limit of processes" : "");
    return cli::kFailed;
  } catch (const std::exception& error) {  // out of memory, most likely
    std::fprintf(stderr, "%s: %s\n", cli::program_name().c_str(), error.what());
    return cli::kFailed;
  }
}

}  // namespace lictor
