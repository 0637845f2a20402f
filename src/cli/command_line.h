#pragma once

// The program's arguments, by CLI11, which nobody outside command_line.cpp sees.
//
//   words --> CLI11 --> targets of the options (command.h) --> the command that was reached
//                 |
//                 +-- --help -------> ParseOutcome: a help text, exit code 0
//                 +-- any mistake --> ParseOutcome: one line with the way out, exit code 2
//
// Each command's options are read straight into the struct that its body gets, so there is no
// second reading of arguments. A value is checked while it is read (Arguments::value()). Checks
// that need several options, and files that an option names, come last (Arguments::then()).
//
// CLI11 reports by exceptions. parse() is the one place that catches them. Its texts name one
// option after the other; usage_error() makes a line of them that names the word at fault and, if
// another one is near, that one: no option "--taks"; did you mean --task?

#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

  /// For adding commands, and the options that every command takes.
  [[nodiscard]] Commands commands();
  [[nodiscard]] Arguments everywhere();

  /// Reads the arguments, without the program's name, into the targets of their options; also a
  /// file or standard input where an argument asks for it. Call it once.
  [[nodiscard]] std::variant<Command, ParseOutcome> parse(std::vector<std::string> words);

  [[nodiscard]] std::string help() const;
  /// Shell completions of the last of `words`: one a line, with a tab before its description;
  /// ":file" or ":folder" where it is such a value. `topics`: the manual's, with their
  /// descriptions.
  [[nodiscard]] std::string completions(
      const std::vector<std::string>& words,
      const std::vector<std::pair<std::string_view, std::string_view>>& topics) const;
  /// The commands of the program, in their order.
  [[nodiscard]] std::vector<std::string> names() const;
  /// The parser, for the man page.
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
