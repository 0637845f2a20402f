#include <fmt/format.h>
#include <fmt/ranges.h>

#include "package/command_tree.h"

namespace lictor::package {
namespace {

// Between single quotes.
std::string zsh_quoted(const std::string& text) {
  return '\'' + replaced(text, "'", "'\\''") + '\'';
}

// In the text of an _arguments specification.
std::string specified(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"}) {
    text = replaced(text, special, std::string{"\\"} + special);
  }
  return text;
}

std::string specification(const Option& option) {
  std::string value;
  if (!option.form.empty()) {
    value = ':' + specified(option.form) + ':';
    if (option.takes_file()) value += "_files";
    if (option.takes_folder()) value += "_files -/";
  }
  const std::string text = zsh_quoted('[' + specified(option.description) + ']' + value);
  if (option.names.size() == 1) {
    return zsh_quoted(option.names.front() + (option.form.empty() ? "" : "=")) +
           text;  // or a space
  }
  const std::string names = fmt::format("{}", fmt::join(option.names, " "));
  return zsh_quoted('(' + names + ')') + '{' + replaced(names, " ", ",") + '}' + text;
}

std::string specifications(const Command& command) {
  std::string text;
  for (const Option& option : command.options) text += "    " + specification(option) + " \\\n";
  return text;
}

std::string function_name(const std::string& path) {
  return path.empty() ? "_lictor" : "_lictor_" + replaced(path, " ", "_");
}

}  // namespace

std::string zsh_completion(const std::vector<Command>& commands) {
  const std::string everywhere = specifications(commands.front());
  std::string script =
      "#compdef lictor\n# Made from the commands and options of the program itself.\n";
  for (const Command& command : commands) {
    script += '\n' + function_name(command.path) + "() {\n";
    const std::string own = command.path.empty() ? "" : specifications(command);
    if (command.commands.empty()) {
      script += "  _arguments \\\n" + own + everywhere;
      if (command.usage.empty()) {
        script.erase(script.size() - 3);  // the line goes on no more
      } else {
        script += "    " + zsh_quoted("*:" + command.usage + ':');
      }
      script += "\n}\n";
      continue;
    }
    script += "  local curcontext=$curcontext state line\n  typeset -A opt_args\n";
    script += "  _arguments -C \\\n" + everywhere;
    script += "    '1: :->command' \\\n    '*:: :->arguments'\n";
    script += "  case $state in\n    command)\n      local -a commands=(\n";
    std::string calls;
    for (const std::string& name : command.commands) {
      const std::string path = command.path.empty() ? name : command.path + ' ' + name;
      for (const Command& inner : commands) {
        if (inner.path != path) continue;
        script +=
            "        " + zsh_quoted(name + ':' + replaced(inner.description, ":", "\\:")) + '\n';
        calls += "        " + name + ") " + function_name(path) + " ;;\n";
      }
    }
    script += "      )\n      _describe -t commands command commands\n      ;;\n";
    script += "    arguments)\n      case $words[1] in\n" + calls;
    script += "      esac\n      ;;\n  esac\n}\n";
  }
  return script + "\n_lictor \"$@\"\n";
}

}  // namespace lictor::package
