#pragma once

#include <string>
#include <vector>

namespace lictor::package {

struct Option {
  std::vector<std::string> names;  ///< "-f", "--follow"
  std::string form;                ///< of its value: "FILE"; empty: a flag
  std::string description;

  [[nodiscard]] bool takes_file() const { return form.find("FILE") != std::string::npos; }
  [[nodiscard]] bool takes_folder() const { return form == "FOLDER"; }
};

struct Command {
  std::string path;  ///< "dead list"; empty: lictor itself, whose options every command takes
  std::string description;
  std::string about;  ///< the text below its options in --help
  std::string usage;  ///< of its positional argument: "ID"; empty: it has none
  std::vector<Option> options;
  std::vector<std::string> commands;  ///< the names of those within it

  [[nodiscard]] std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

/// The commands of the program, from the same definitions as its parser. lictor itself comes first,
/// and each command before those within it.
[[nodiscard]] std::vector<Command> all_commands();

/// The text of "lictor --help".
[[nodiscard]] std::string program_help();

/// Adds "help" and, within it, each command and each of `topics`, which have a path and a
/// description.
void add_help(std::vector<Command>& commands, const std::vector<Command>& topics);

/// `text` with `from` replaced by `to` wherever it is.
[[nodiscard]] std::string replaced(std::string text, const std::string& from,
                                   const std::string& to);

/// Roff whose quotes, tildes and carets are shown as those of ASCII, fit to be copied.
[[nodiscard]] std::string roff_quotes(std::string text);

/// `text` as roff shows it unchanged, on a line of its own or within one.
[[nodiscard]] std::string roff_escaped(std::string text);

[[nodiscard]] std::string bash_completion(const std::vector<Command>& commands);
[[nodiscard]] std::string zsh_completion(const std::vector<Command>& commands);
[[nodiscard]] std::string fish_completion(const std::vector<Command>& commands);

/// The man page `page` with @VERSION@, @OPTIONS@, @COMMANDS@ and @NOTES@ filled in.
[[nodiscard]] std::string man_page(const std::string& page, const std::vector<Command>& commands);

}  // namespace lictor::package
