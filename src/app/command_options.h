#pragma once

// The commands with their options and help, and the forms of options that they have in common.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "app/command_line.h"
#include "base/text.h"
#include "base/time_text.h"

namespace lictor::app {

/// What each command makes of its arguments once they are parsed. Reads a file or standard input
/// where an argument asks for it. Throws what CLI11 does.
using CommandMakers = std::map<const CLI::App*, std::function<Command()>>;

/// Adds to `app` all commands with their options and help, and the flags that every command takes,
/// which are read into `invocation`.
[[nodiscard]] CommandMakers add_commands(CLI::App& app, Invocation& invocation);

// The flags of all commands, before the command's name or after it.
inline constexpr const char* kGlobals = R"(
Everywhere: --config FILE, --queue NAME, --root PREFIX, --consul ADDRESS, --token-file FILE,
--json (see "lictor --help")
)";

// An option with a value, of which the last counts. `target`: a text, optional or not.
template <class Target>
inline CLI::Option* add_text(CLI::App* app, const char* names, Target& target, const char* what,
                             const char* form) {
  return app->add_option(names, target, what)->type_name(form)->take_last();
}

inline CLI::Option* add_switch_off(CLI::App* app, const char* name, bool& target,
                                   const char* what) {
  return app->add_flag_function(
      name, [&target](std::int64_t) { target = false; }, what);
}

// A whole number from `least` on.
template <class Target>
inline CLI::Option* add_count(CLI::App* app, const char* name, Target& target, const char* what,
                              std::uint32_t least) {
  const auto fault = [least](const std::string& text) {
    const auto count = to_number<std::uint32_t>(text);
    if (count && *count >= least) return std::string{};
    return "expected a whole number from " + std::to_string(least) + " on, got \"" + excerpt(text) +
           '"';
  };
  return app->add_option(name, target, what)->type_name("N")->check(fault, "");
}

// `target`: a Duration, optional or not.
template <class Target>
inline CLI::Option* add_duration(CLI::App* app, const char* name, Target& target,
                                 const char* what) {
  const auto fault = [](const std::string& text) {
    if (parse_duration(text)) return std::string{};
    return R"(expected a duration such as "90s", "10m" or "2h", at most 10 years, got ")" +
           excerpt(text) + '"';
  };
  const auto take = [&target](const std::string& text) { target = *parse_duration(text); };
  return app->add_option_function<std::string>(name, take, what)
      ->type_name("DURATION")
      ->take_last()
      ->check(fault, "");
}

// What the tasks of `submit` and of a schedule have in common.
void add_parameters(CLI::App* app, cli::TaskText& task);
void add_limits(CLI::App* app, cli::TaskText& task);
// Reads --para-json. Throws what CLI11 does.
void read_parameters(cli::TaskText& task);

// Adds commands to `app`.
struct Adder {
  CLI::App& app;
  Invocation& invocation;
  CommandMakers makers{};

  static CLI::App* group(CLI::App& parent, const char* name, const char* description,
                         const char* about) {
    CLI::App* command = parent.add_subcommand(name, description);
    command->fallthrough();
    command->group("Commands");
    command->footer(std::string{about} + kGlobals);
    return command;
  }

  // A command whose arguments are read into its Options.
  template <class Options>
  std::pair<CLI::App*, Options*> add(const char* name, const char* description, const char* about,
                                     CLI::App* parent = nullptr) {
    CLI::App* command = group(parent != nullptr ? *parent : app, name, description, about);
    const auto options = std::make_shared<Options>();
    makers[command] = [options]() -> Command {
      if constexpr (requires { options->command(); }) {
        return options->command();
      } else {
        return *options;
      }
    };
    return {command, options.get()};
  }
};

// In a file of its own.
void add_schedule(Adder& to);
void add_tools(Adder& to);

}  // namespace lictor::app
