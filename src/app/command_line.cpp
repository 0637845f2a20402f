#include "app/command_line.h"

#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command_options.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/input.h"
#include "cli/process.h"
#include "manual/manual.h"

namespace lictor::app {
namespace {

constexpr const char* kFooter =
    R"(Exit codes: 0 done; 1 the thing asked about failed; 2 bad usage or configuration; 3 not found;
4 Consul unreachable; 5 permission denied; 6 the task that was waited for was cancelled.

Environment, which overrides the configuration and is overridden by flags: LICTOR_CONFIG,
LICTOR_NODE, LICTOR_ROOT, LICTOR_STATE_DIR, LICTOR_LOG_LEVEL, LICTOR_LOG_FORMAT,
LICTOR_CONSUL_ADDRESSES, LICTOR_TOKEN_FILE; CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN,
CONSUL_HTTP_TOKEN_FILE, CONSUL_HTTP_AUTH, CONSUL_HTTP_SSL, CONSUL_HTTP_SSL_VERIFY, CONSUL_CACERT,
CONSUL_CAPATH, CONSUL_CLIENT_CERT, CONSUL_CLIENT_KEY, CONSUL_TLS_SERVER_NAME, CONSUL_NAMESPACE,
CONSUL_PARTITION. NO_COLOR and TERM=dumb switch colours off.

"lictor COMMAND --help" shows a command's options, with examples. "lictor help" lists the topics of
the manual, "lictor help TOPIC" prints one.
)";

// CLI11's help without the lists of options that need or exclude each other: an error names those.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    column_width(32);
    label("SUBCOMMAND", "COMMAND");
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string form = option->get_type_name();
    return form.empty() ? form : ' ' + form;
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    for (const CLI::App* parent = app->get_parent(); parent; parent = parent->get_parent()) {
      name = parent->get_name() + ' ' + name;
    }
    return '\n' + CLI::Formatter::make_usage(app, name);
  }
};

class CommandLine {
 public:
  // "help", "help TOPIC", "help COMMAND"
  std::variant<Invocation, Answer> help(std::vector<std::string> words) {
    if (words.empty()) return Answer{cli::kDone, help_of(app_) + topics_help()};
    const std::string& word = words.front();
    for (const manual::Page& page : manual::pages()) {
      if (word == page.topic && words.size() == 1) {
        return Answer{cli::kDone, std::string{page.text}};
      }
    }
    std::vector<std::string_view> commands;
    for (const CLI::App* command : app_.get_subcommands({})) {
      commands.emplace_back(command->get_name());
    }
    if (word.starts_with('-') ||
        std::find(commands.begin(), commands.end(), word) != commands.end()) {
      words.emplace_back("--help");
      return parse(std::move(words));
    }
    std::vector<std::string_view> topics;
    for (const manual::Page& page : manual::pages()) topics.push_back(page.topic);
    std::vector<std::string_view> known = commands;
    known.insert(known.end(), topics.begin(), topics.end());
    const std::string near = nearest(word, known);
    return Answer{cli::kUsage,
                  fmt::format("{}: no command and no topic \"{}\"{}; commands: {}; topics: {}\n",
                              cli::program_name(), printable(excerpt(word)),
                              near.empty() ? "" : "; did you mean " + near + '?',
                              fmt::join(commands, ", "), fmt::join(topics, ", "))};
  }

  std::variant<Invocation, Answer> parse(std::vector<std::string> arguments) {
    try {
      std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
      app_.parse(arguments);
      invocation_.command = makers_.at(&innermost())();
      return invocation_;
    } catch (const CLI::Success& help) {
      const CLI::App& place = innermost();
      const bool is_unknown = expects_command(place) && !app_.remaining(true).empty();
      return is_unknown ? usage_error(help.what()) : Answer{cli::kDone, help_of(place)};
    } catch (const CLI::ArgumentMismatch& error) {
      const std::string text = error.what();
      return usage_error(text.substr(0, text.find(':')) + ": expected a value");
    } catch (const CLI::Error& error) {
      return usage_error(error.what());
    }
  }

 private:
  // The commands inherit what is set here.
  static CLI::App& described(CLI::App& app) {
    app.formatter(std::make_shared<HelpFormatter>());
    app.description("Runs the tasks that Consul holds: in order, and each on one host at a time.");
    app.require_subcommand(1);
    app.set_help_flag("-h,--help", "Show this help");
    app.footer(kFooter);
    return app;
  }

  // The command that was reached: "dead" or, within it, "list".
  [[nodiscard]] const CLI::App& innermost() const {
    const CLI::App* place = &app_;
    while (!place->get_subcommands().empty()) place = place->get_subcommands().front();
    return *place;
  }

  // "dead list"
  [[nodiscard]] std::string name_of(const CLI::App& place) const {
    const CLI::App* parent = place.get_parent();
    const bool inner = parent != nullptr && parent != &app_;
    return (inner ? parent->get_name() + ' ' : "") + place.get_name();
  }

  static bool expects_command(const CLI::App& app) { return !app.get_subcommands({}).empty(); }

  static std::string help_of(const CLI::App& app) {
    std::string text = app.help();
    text.erase(text.find_last_not_of('\n') + 1);
    return text + '\n';
  }

  static std::string topics_help() {
    std::string text = "\nTopics of the manual:\n";
    for (const manual::Page& page : manual::pages()) {
      const std::string_view line = page.text.substr(0, page.text.find('\n'));
      const std::string topic{page.topic};
      text += "  " + topic + std::string(30 - std::min<std::size_t>(topic.size(), 29), ' ');
      text += line.substr(std::min(line.size(), topic.size() + 3));  // after "topic - "
      text += '\n';
    }
    return text;
  }

  // One line, with the way out.
  Answer usage_error(std::string what) {
    const CLI::App& place = innermost();
    const bool command_expected = expects_command(place);
    std::vector<std::string> extras = app_.remaining(true);
    if (&place != &app_ && extras.empty()) extras = place.remaining();
    if (!extras.empty()) {
      what = unexpected(place, extras.front(), command_expected);
    } else if (command_expected && what.find("subcommand") != std::string::npos) {
      return {cli::kUsage, cli::program_name() + ": expected a command\n\n" + help_of(place)};
    }
    std::replace(what.begin(), what.end(), '\n', ' ');
    std::string help = cli::program_name() + ' ';
    if (&place != &app_) help += name_of(place) + ' ';
    return {cli::kUsage, cli::program_name() + ": " + what + "; see \"" + help + "--help\"\n"};
  }

  [[nodiscard]] std::string unexpected(const CLI::App& place, const std::string& word,
                                       bool command_expected) const {
    const bool flag = word.starts_with('-') && word.size() > 1;
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> known;
    if (flag) {
      for (const CLI::App* app : {&place, &app_}) {
        for (const CLI::Option* option : app->get_options()) {
          if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames().front());
        }
      }
    } else if (command_expected) {
      for (const CLI::App* command : place.get_subcommands({}))
        known.push_back(command->get_name());
    }
    const std::string near = nearest(name, {known.begin(), known.end()});
    std::string text = flag               ? "no option "
                       : command_expected ? "no command "
                                          : "unexpected argument ";
    text += '"' + printable(excerpt(name)) + '"';
    if (!near.empty()) text += "; did you mean " + near + '?';
    return text;
  }

  CLI::App app_{"", cli::program_name()};
  Invocation invocation_;
  const CommandMakers makers_ = add_commands(described(app_), invocation_);
};

}  // namespace

std::variant<Invocation, Answer> parse_command_line(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = arguments;
  // As other programs have it: "--version", "help", "help COMMAND".
  if (words == std::vector<std::string>{"--version"}) words = {"version"};
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    return CommandLine{}.help(std::move(words));
  }
  return CommandLine{}.parse(words);
}

}  // namespace lictor::app
