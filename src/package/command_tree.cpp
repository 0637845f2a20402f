#include "package/command_tree.h"

#include <CLI/CLI.hpp>

#include "app/program.h"

namespace lictor::package {
namespace {

void add(const CLI::App& app, const std::string& path, std::vector<Command>& to) {
  Command command;
  command.path = path;
  command.description = app.get_description();
  command.about = app.get_footer();
  for (const CLI::Option* option : app.get_options({})) {
    // Every command has it, but it is listed once, with the others that every command takes.
    if (option == app.get_help_ptr() && !path.empty()) continue;
    if (!option->nonpositional()) {
      command.usage = option->get_name();
      continue;
    }
    Option listed;
    for (const std::string& name : option->get_snames()) listed.names.push_back('-' + name);
    for (const std::string& name : option->get_lnames()) listed.names.push_back("--" + name);
    if (option->get_items_expected_max() > 0) listed.form = option->get_type_name();
    listed.description = option->get_description();
    command.options.push_back(std::move(listed));
  }
  const auto inner = app.get_subcommands({});
  for (const CLI::App* each : inner) command.commands.push_back(each->get_name());
  to.push_back(std::move(command));
  for (const CLI::App* each : inner) {
    add(*each, path.empty() ? each->get_name() : path + ' ' + each->get_name(), to);
  }
}

// The program's, to be asked what there is.
class Program {
 public:
  Program() { app::add_commands(line, program_); }

  cli::CommandLine line;

 private:
  const app::Registry registry_;
  cli::Console console_ = cli::Console::standard();
  app::Program program_{registry_, console_};
};

}  // namespace

std::vector<Command> all_commands() {
  const Program program;
  std::vector<Command> commands;
  add(program.line.root(), "", commands);
  return commands;
}

std::string program_help() { return Program{}.line.help(); }

void add_help(std::vector<Command>& commands, const std::vector<Command>& topics) {
  Command help;
  help.path = "help";
  help.description = "Explain a command, or print a topic of the manual";
  std::vector<Command> inner = topics;
  for (const Command& command : commands) {
    const bool is_outer = !command.path.empty() && command.path.find(' ') == std::string::npos;
    if (is_outer) inner.push_back({command.path, command.description, {}, {}, {}, {}});
  }
  for (Command& each : inner) {
    help.commands.push_back(each.path);
    each.path = "help " + each.path;
  }
  commands.front().commands.push_back(help.path);
  commands.push_back(std::move(help));
  commands.insert(commands.end(), inner.begin(), inner.end());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace lictor::package
