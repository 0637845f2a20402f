// lictor.1, from the definitions by which the program parses its arguments.

#include <sstream>
#include <stdexcept>

#include <CLI/CLI.hpp>

#include "app/program.h"
#include "package/manual.h"

namespace lictor::package {
namespace {

// Fills paragraphs; indented lines stay as they are.
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

std::string options_of(const CLI::App& app) {
  std::string page;
  for (const CLI::Option* option : app.get_options({})) {
    // Every command has --help, but it is listed once, with the others that every command takes.
    const bool is_inner_help = option == app.get_help_ptr() && app.get_parent() != nullptr;
    if (is_inner_help || !option->nonpositional()) continue;
    std::string names;
    const auto add = [&](const std::string& name) {
      names += (names.empty() ? "\\fB" : ", \\fB") + roff_escaped(name) + "\\fR";
    };
    for (const std::string& name : option->get_snames()) add('-' + name);
    for (const std::string& name : option->get_lnames()) add("--" + name);
    page += ".TP\n" + names;
    if (option->get_items_expected_max() > 0) {
      page += " \\fI" + roff_escaped(option->get_type_name()) + "\\fR";
    }
    page += '\n' + roff_escaped(option->get_description()) + ".\n";
  }
  return page;
}

// The command and those within it. `path`: "dead list".
std::string section_of(const CLI::App& app, const std::string& path) {
  // The options of all commands are listed once, at the top.
  const std::string about = app.get_footer();
  std::string page = ".SS lictor " + roff_escaped(path) + '\n' +
                     roff_escaped(app.get_description()) + ".\n" + options_of(app) + ".PP\n" +
                     paragraphs(about.substr(0, about.find("\nEverywhere:")));
  for (const CLI::App* inner : app.get_subcommands({})) {
    page += section_of(*inner, path + ' ' + inner->get_name());
  }
  return page;
}

// The text of "lictor --help" from "Exit codes:" on, below all commands.
std::string notes(const std::string& help) {
  const std::size_t at = help.find("Exit codes:");
  if (at == std::string::npos) throw std::runtime_error{"lictor --help has no \"Exit codes:\""};
  return paragraphs(help.substr(at));
}

}  // namespace

std::string man_page(const std::string& page) {
  const app::Registry registry;
  cli::Console console = cli::Console::standard();
  app::Program program{registry, console};
  cli::CommandLine line;
  app::add_commands(line, program);
  std::string commands;
  for (const CLI::App* command : line.root().get_subcommands({})) {
    commands += section_of(*command, command->get_name());
  }
  std::string filled = replaced(page, "@VERSION@", LICTOR_VERSION);
  filled = replaced(filled, "@OPTIONS@\n", options_of(line.root()));
  filled = replaced(filled, "@COMMANDS@\n", commands);
  return replaced(filled, "@NOTES@\n", notes(line.help()));
}

}  // namespace lictor::package
