#include "cli/command_line.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "cli/new_task.h"

namespace lictor::cli {
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

// The options of all commands, before the command's name or after it.
constexpr const char* kEverywhere = R"(
Everywhere: --config FILE, --queue NAME, --root PREFIX, --consul ADDRESS, --token-file FILE,
--json (see "lictor --help")
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

bool expects_command(const CLI::App& app) { return !app.get_subcommands({}).empty(); }

// The option of this name if it takes a value, else null.
const CLI::Option* valued_option(const CLI::App* place, const std::string& name) {
  for (; place != nullptr; place = place->get_parent()) {
    const CLI::Option* option = place->get_option_no_throw(name);
    if (option != nullptr) return option->get_items_expected_max() > 0 ? option : nullptr;
  }
  return nullptr;
}

std::string help_of(const CLI::App& app) {
  std::string text = app.help();
  text.erase(text.find_last_not_of('\n') + 1);
  return text + '\n';
}

}  // namespace

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return kUsage;
    case ErrorCode::kNotFound:
      return kNotFound;
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
      return kUnreachable;
    case ErrorCode::kPermissionDenied:
      return kDenied;
    case ErrorCode::kConflict:
    case ErrorCode::kTooLarge:
    case ErrorCode::kFailed:
      return kFailed;
  }
  return kFailed;
}

Option& Option::required() {
  option_->required();
  return *this;
}
Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}
Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}
Option& Option::excludes(const std::vector<Option>& others) {
  for (const Option& other : others) excludes(other);
  return *this;
}

// A flag with the value false, such as --no-wait, is a function, since add_flag() sets a bool to
// true.
Option Arguments::flag(const char* names, bool& target, const char* what, bool value) {
  if (value) return Option{app_.add_flag(names, target, what)};
  return Option{app_.add_flag_function(
      names, [&target](std::int64_t) { target = false; }, what)};
}

Option Arguments::text(const char* names, std::string& target, const char* what, const char* form) {
  return Option{app_.add_option(names, target, what)->type_name(form)->take_last()};
}

Option Arguments::text(const char* names, std::optional<std::string>& target, const char* what,
                       const char* form) {
  return Option{app_.add_option(names, target, what)->type_name(form)->take_last()};
}

Option Arguments::texts(const char* names, std::vector<std::string>& target, const char* what,
                        const char* form) {
  CLI::Option* option = app_.add_option(names, target, what)->type_name(form);
  return Option{option->expected(1)->allow_extra_args(false)->take_all()};
}

Option Arguments::choice(const char* names, std::string& target, const char* what, const char* form,
                         std::vector<std::string> words) {
  CLI::Option* option = app_.add_option(names, target, what)->type_name(form)->take_last();
  return Option{option->check(CLI::IsMember(std::move(words)))};
}

// `take` is given to CLI11 as a check: it reads the value, and may refuse it with a text of its
// own.
Option Arguments::value(const char* names, std::function<std::string(const std::string&)> take,
                        const char* what, const char* form) {
  const auto taken = [](const std::string&) {};  // by the check
  CLI::Option* option = app_.add_option_function<std::string>(names, taken, what);
  return Option{option->type_name(form)->take_last()->check(std::move(take), "")};
}

Option Arguments::number(const char* names, std::function<void(std::uint32_t)> take,
                         const char* what, std::uint32_t least) {
  const auto read = [take = std::move(take), least](const std::string& text) {
    const auto number = to_number<std::uint32_t>(text);
    if (!number || *number < least) {
      return "expected a whole number from " + std::to_string(least) + " on, got \"" +
             excerpt(text) + '"';
    }
    take(*number);
    return std::string{};
  };
  return value(names, read, what, "N");
}

Option Arguments::length(const char* names, std::function<void(Duration)> take, const char* what) {
  const auto read = [take = std::move(take)](const std::string& text) {
    const auto duration = parse_duration(text);
    if (!duration) {
      return R"(expected a duration such as "90s", "10m" or "2h", at most 10 years, got ")" +
             excerpt(text) + '"';
    }
    take(*duration);
    return std::string{};
  };
  return value(names, read, what, "DURATION");
}

Option Arguments::since(const char* names, std::optional<WallTime>& target, const char* what) {
  const auto read = [&target](const std::string& text) {
    if (const auto ago = parse_duration(text)) {
      target = wall_now() - std::chrono::duration_cast<std::chrono::milliseconds>(*ago);
      return std::string{};
    }
    const auto time = time_argument(text);
    if (!time) return time.error().message + ", or a duration until now such as \"10m\"";
    target = *time;
    return std::string{};
  };
  return value(names, read, what, "TIME");
}

Option Arguments::argument(const char* name, std::string& target, const char* what) {
  return Option{app_.add_option(name, target, what)->type_name("")};
}

Option Arguments::arguments(const char* name, std::vector<std::string>& targets, const char* what) {
  return Option{app_.add_option(name, targets, what)->type_name("")};
}

std::size_t Arguments::size() const { return app_.get_options({}).size(); }

// Gives excludes() the options that were added from here on.
std::vector<Option> Arguments::from(std::size_t first) const {
  std::vector<Option> options;
  const auto all = app_.get_options({});
  for (std::size_t i = first; i < all.size(); ++i) options.emplace_back(all[i]);
  return options;
}

// CLI11 knows only exceptions as a refusal here; parse() turns it into an error of usage.
void Arguments::then(std::function<Result<void>()> read) {
  app_.final_callback([read = std::move(read)] {
    const auto done = read();
    if (!done) throw CLI::ParseError(done.error().message, CLI::ExitCodes::RequiredError);
  });
}

// fallthrough() lets the options of all commands stand behind the name of the command, too.
CLI::App& Commands::add_app(const char* name, const char* what, const char* about) {
  CLI::App* app = parent_.add_subcommand(name, what);
  app->fallthrough();
  app->group("Commands");
  app->footer(std::string{about} + kEverywhere);
  return *app;
}

Arguments Commands::add(const char* name, const char* what, const char* about, Command command) {
  CLI::App& app = add_app(name, what, about);
  made_[&app] = std::move(command);
  return Arguments{app};
}

Arguments Commands::add(const char* name, const char* what, const char* about,
                        Result<int> (*body)(const Client&), Command command) {
  command.on_queue = body;
  return add(name, what, about, std::move(command));
}

Commands Commands::group(const char* name, const char* what, const char* about) {
  CLI::App& app = add_app(name, what, about);
  app.require_subcommand(1);
  return {app, made_};
}

CommandLine::CommandLine() : app_(std::make_unique<CLI::App>("", program_name())) {
  // The commands inherit these settings.
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->description("Runs the tasks that Consul holds: in order, and each on one host at a time.");
  app_->require_subcommand(1);
  app_->set_help_flag("-h,--help", "Show this help");
  app_->footer(kFooter);
}
CommandLine::~CommandLine() = default;

Commands CommandLine::commands() { return {*app_, made_}; }
Arguments CommandLine::everywhere() { return Arguments{*app_}; }

std::variant<Command, ParseOutcome> CommandLine::parse(std::vector<std::string> words) {
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app_->parse(words);
    return made_.at(&innermost());
  } catch (const CLI::Success& help) {
    const CLI::App& place = innermost();
    const bool is_unknown = expects_command(place) && !app_->remaining(true).empty();
    return is_unknown ? usage_error(help.what()) : ParseOutcome{kDone, help_of(place)};
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();
    return usage_error(text.substr(0, text.find(':')) + ": expected a value");
  } catch (const CLI::Error& error) {
    return usage_error(error.what());
  }
}

std::string CommandLine::help() const { return help_of(*app_); }

std::string CommandLine::completions(
    const std::vector<std::string>& words,
    const std::vector<std::pair<std::string_view, std::string_view>>& topics) const {
  const CLI::App* place = app_.get();
  const CLI::Option* valued = nullptr;  // the option whose value comes next
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (std::exchange(valued, nullptr) != nullptr) continue;
    if (words[i].starts_with('-')) valued = valued_option(place, words[i]);
    for (const CLI::App* command : place->get_subcommands({})) {
      if (command->get_name() == words[i]) place = command;
    }
  }
  const std::string last = words.empty() ? "" : words.back();
  if (valued == nullptr && last.starts_with("--") && last.find('=') != std::string::npos) {
    valued = valued_option(place, last.substr(0, last.find('=')));
  }
  if (valued != nullptr) {
    const std::string form = valued->get_type_name();
    return form.find("FILE") != std::string::npos ? ":file\n" : form == "FOLDER" ? ":folder\n" : "";
  }
  std::string text;
  const auto add = [&](std::string_view word, std::string_view what) {
    text += fmt::format("{}\t{}\n", word, what);
  };
  if (!last.starts_with('-')) {
    for (const CLI::App* command : place->get_subcommands({})) {
      add(command->get_name(), command->get_description());
    }
    if (words.size() == 2 && words.front() == "help") {
      for (const auto& [topic, what] : topics) add(topic, what);
    } else if (place == app_.get()) {
      add("help", "Explain a command, or print a topic of the manual");
    }
  }
  if (!text.empty()) return text;
  for (const CLI::App* app : {place, place->get_parent() != nullptr ? &root() : nullptr}) {
    if (app == nullptr) continue;
    for (const CLI::Option* option : app->get_options({})) {
      if (app != place && option == app->get_help_ptr()) continue;  // the command has its own
      for (const std::string& name : option->get_snames())
        add('-' + name, option->get_description());
      for (const std::string& name : option->get_lnames())
        add("--" + name, option->get_description());
    }
  }
  return text;
}

std::vector<std::string> CommandLine::names() const {
  std::vector<std::string> names;
  for (const CLI::App* command : std::as_const(*app_).get_subcommands({})) {
    names.push_back(command->get_name());
  }
  return names;
}

// The command that was reached: "dead" or, within it, "list".
const CLI::App& CommandLine::innermost() const {
  const CLI::App* place = app_.get();
  while (!place->get_subcommands().empty()) place = place->get_subcommands().front();
  return *place;
}

// "dead list"
std::string CommandLine::name_of(const CLI::App& place) const {
  const CLI::App* parent = place.get_parent();
  const bool inner = parent != nullptr && parent != app_.get();
  return (inner ? parent->get_name() + ' ' : "") + place.get_name();
}

// Makes one line that says what to do. A word that no option takes is reported before any other
// mistake: it may be a mistyped option, and the rest may follow from that.
ParseOutcome CommandLine::usage_error(std::string what) const {
  const CLI::App& place = innermost();
  const bool is_root = &place == app_.get();
  const bool command_expected = expects_command(place);
  std::vector<std::string> extras = app_->remaining(true);
  if (!is_root && extras.empty()) extras = place.remaining();
  if (!extras.empty()) {
    what = unexpected(place, extras.front(), command_expected);
  } else if (command_expected && what.find("subcommand") != std::string::npos) {
    return {kUsage, program_name() + ": expected a command\n\n" + help_of(place)};
  }
  std::replace(what.begin(), what.end(), '\n', ' ');
  const std::string name = is_root ? "" : name_of(place) + ' ';
  return {kUsage,
          program_name() + ": " + what + "; see \"" + program_name() + ' ' + name + "--help\"\n"};
}

std::string CommandLine::unexpected(const CLI::App& place, const std::string& word,
                                    bool command_expected) const {
  const bool flag = word.starts_with('-') && word.size() > 1;
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  if (flag) {
    for (const CLI::App* app : {&place, &root()}) {
      for (const CLI::Option* option : app->get_options()) {
        if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames().front());
      }
    }
  } else if (command_expected) {
    for (const CLI::App* command : place.get_subcommands({})) known.push_back(command->get_name());
  }
  const std::string near = nearest(name, {known.begin(), known.end()});
  std::string text = flag               ? "no option "
                     : command_expected ? "no command "
                                        : "unexpected argument ";
  text += '"' + printable(excerpt(name)) + '"';
  if (!near.empty()) text += "; did you mean " + near + '?';
  return text;
}

}  // namespace lictor::cli
