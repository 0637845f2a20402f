#include <sstream>
#include <stdexcept>

#include "package/command_tree.h"

namespace lictor::package {
namespace {

// Paragraphs are filled; what is indented stays as it is.
std::string paragraphs(const std::string& text) {
  std::istringstream lines{text};
  std::string page;
  bool literal = false;
  bool between = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) {
      between = !page.empty();
      continue;
    }
    const bool indented = line.starts_with("  ");
    if (indented != literal) page += indented ? ".PP\n.nf\n" : ".fi\n";
    if (between && !indented) page += ".PP\n";
    page += roff_escaped(line) + '\n';
    literal = indented;
    between = false;
  }
  return literal ? page + ".fi\n" : page;
}

std::string options_of(const Command& command) {
  std::string page;
  for (const Option& option : command.options) {
    page += ".TP\n";
    for (const std::string& name : option.names) {
      page += (name == option.names.front() ? "\\fB" : ", \\fB") + roff_escaped(name) + "\\fR";
    }
    if (!option.form.empty()) page += " \\fI" + roff_escaped(option.form) + "\\fR";
    page += '\n' + roff_escaped(option.description) + ".\n";
  }
  return page;
}

// The text from "Exit codes:" on, below all commands.
std::string notes() {
  const std::string help = program_help();
  const std::size_t at = help.find("Exit codes:");
  if (at == std::string::npos) throw std::runtime_error{"lictor --help has no \"Exit codes:\""};
  return paragraphs(help.substr(at));
}

}  // namespace

std::string roff_quotes(std::string text) {
  text = replaced(replaced(std::move(text), "'", "\\(aq"), "~", "\\(ti");
  return replaced(replaced(std::move(text), "^", "\\(ha"), "`", "\\(ga");
}

std::string roff_escaped(std::string text) {
  text = replaced(replaced(std::move(text), "\\", "\\e"), "-", "\\-");
  text = roff_quotes(std::move(text));
  text = replaced(replaced(std::move(text), "µ", "\\(mc"), "×", "\\(mu");
  return text.starts_with('.') ? "\\&" + text : text;
}

std::string man_page(const std::string& page, const std::vector<Command>& commands) {
  std::string text;
  for (const Command& command : commands) {
    if (command.path.empty()) continue;
    text += ".SS lictor " + roff_escaped(command.path) + '\n' + roff_escaped(command.description) +
            ".\n";
    text += options_of(command);
    // The options of all commands are listed once, at the top.
    text += ".PP\n" + paragraphs(command.about.substr(0, command.about.find("\nEverywhere:")));
  }
  std::string filled = replaced(page, "@VERSION@", LICTOR_VERSION);
  filled = replaced(filled, "@OPTIONS@\n", options_of(commands.front()));
  filled = replaced(filled, "@COMMANDS@\n", text);
  return replaced(filled, "@NOTES@\n", notes());
}

}  // namespace lictor::package
