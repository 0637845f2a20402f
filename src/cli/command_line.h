#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cli/command.h"

namespace lictor::cli {

/// The only output of the program: a help text, or an error in the arguments.
struct ParseOutcome {
  int exit_code = 0;
  std::string text;  ///< to standard output; with an exit code, to standard error
};

/// Reads the program's arguments. No exception leaves it.
class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// To add commands, and the options that every command takes.
  [[nodiscard]] Commands commands();
  [[nodiscard]] Arguments everywhere();

  /// Once: reads the arguments, without the program's name, into the targets of their options; also
  /// a file or standard input where an argument asks for it.
  [[nodiscard]] std::variant<Command, ParseOutcome> parse(std::vector<std::string> words);

  [[nodiscard]] std::string help() const;
  /// The commands of the program, in their order.
  [[nodiscard]] std::vector<std::string> names() const;
  /// For completions and the man page.
  [[nodiscard]] const CLI::App& root() const { return *app_; }

 private:
  [[nodiscard]] const CLI::App& innermost() const;
  [[nodiscard]] std::string name_of(const CLI::App& place) const;
  [[nodiscard]] ParseOutcome usage_error(std::string what) const;
  [[nodiscard]] std::string unexpected(const CLI::App& place, const std::string& word,
                                       bool command_expected) const;

  std::unique_ptr<CLI::App> app_;
  Commands::Map made_;
};

}  // namespace lictor::cli
