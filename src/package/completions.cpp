// The completions for bash, zsh and fish, made from the commands and options of the program itself.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "package/command_tree.h"

namespace lictor::package {
namespace {

constexpr const char* kBashScript =
    R"script(# bash completion for lictor, made from the commands and options of the program itself.

# _lictor_value COMMAND OPTION: the kind of the option's value; nothing where it takes none.
_lictor_value() {
  case "$1 $2" in
@VALUES@
  esac
}

_lictor() {
  local cur=${COMP_WORDS[COMP_CWORD]} command="" option="" word words="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    [ "$word" != "=" ] || continue # "--option=value" comes as three words
    if [ -n "$option" ]; then
      option=""
      continue
    fi
    case $word in
      -*) [ -z "$(_lictor_value "$command" "$word")" ] || option=$word ;;
      *)
        word=${command:+$command }$word
        case $word in
          @PATHS@) command=$word ;;
        esac
        ;;
    esac
  done
  [ "$cur" != "=" ] || cur=""
  if [ -n "$option" ]; then
    case $(_lictor_value "$command" "$option") in
      file) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
      folder) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    esac
    return
  fi
  case "$command:$cur" in
@WORDS@
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _lictor lictor
)script";

}  // namespace

std::string bash_completion(const std::vector<Command>& commands) {
  std::string values;
  std::string words;
  std::vector<std::string> paths;
  const auto names_of = [](const Command& command) {
    std::string names;
    for (const Option& option : command.options)
      names += fmt::format(" {}", fmt::join(option.names, " "));
    return names.empty() ? names : names.substr(1);
  };
  const std::string everywhere = names_of(commands.front());
  for (const Command& command : commands) {
    for (const Option& option : command.options) {
      if (option.form.empty()) continue;
      const char* kind = option.takes_file() ? "file" : option.takes_folder() ? "folder" : "text";
      for (const std::string& name : option.names) {
        values += command.path.empty()
                      ? fmt::format("    *\" {}\") echo {} ;;\n", name, kind)
                      : fmt::format("    \"{} {}\") echo {} ;;\n", command.path, name, kind);
      }
    }
    if (!command.path.empty()) paths.push_back('"' + command.path + '"');
    if (!command.commands.empty()) {
      words += fmt::format("    \"{}:\"-*) words=\"{}\" ;;\n", command.path, everywhere);
      words += fmt::format("    \"{}:\"*) words=\"{}\" ;;\n", command.path,
                           fmt::join(command.commands, " "));
    } else {
      words += fmt::format("    \"{}:\"*) words=\"{} {}\" ;;\n", command.path, names_of(command),
                           everywhere);
    }
  }
  values.pop_back();
  words.pop_back();
  std::string script = replaced(kBashScript, "@VALUES@", values);
  script = replaced(script, "@PATHS@", fmt::format("{}", fmt::join(paths, " | ")));
  return replaced(script, "@WORDS@", words);
}

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

namespace {

std::string fish_quoted(const std::string& text) {
  return '\'' + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + '\'';
}

constexpr const char* kFishScript =
    R"script(# fish completion for lictor, made from the commands and options of the program itself.

# The command on the line, such as "dead list"; nothing before there is one.
function __lictor_command
    set -l command
    set -l is_value 0
    for word in (commandline -opc)[2..-1]
        if test $is_value = 1
            set is_value 0
            continue
        end
        switch $word
            case '-*'
                switch "$command $word"
                    case @VALUED@
                        set is_value 1
                end
            case '*'
                set -l longer (string trim "$command $word")
                switch $longer
                    case @PATHS@
                        set command $longer
                end
        end
    end
    echo $command
end

function __lictor_at
    set -l command (__lictor_command)
    test "$command" = "$argv[1]"
end

complete -c lictor -f
)script";

std::string completion(const Option& option) {
  std::string text;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    text += (is_long ? " -l " : " -s ") + name.substr(is_long ? 2 : 1);
  }
  if (option.takes_file()) {
    text += " -r -F";
  } else if (option.takes_folder()) {
    text += " -x -a '(__fish_complete_directories)'";
  } else if (!option.form.empty()) {
    text += " -x";
  }
  return text + " -d " + fish_quoted(option.description) + '\n';
}

}  // namespace

std::string fish_completion(const std::vector<Command>& commands) {
  std::vector<std::string> valued;
  std::vector<std::string> paths;
  std::string lines;
  for (const Command& command : commands) {
    const std::string at =
        command.path.empty() ? "" : " -n " + fish_quoted("__lictor_at \"" + command.path + '"');
    for (const Option& option : command.options) {
      lines += "complete -c lictor" + at + completion(option);
      if (option.form.empty()) continue;
      for (const std::string& name : option.names) {
        valued.push_back(fish_quoted((command.path.empty() ? "*" : command.path) + ' ' + name));
      }
    }
    if (command.path.empty()) continue;
    paths.push_back(fish_quoted(command.path));
    const std::string name = command.name();
    const std::string parent =
        name == command.path ? "" : command.path.substr(0, command.path.size() - name.size() - 1);
    lines += fmt::format("complete -c lictor -n {} -a {} -d {}\n",
                         fish_quoted("__lictor_at \"" + parent + '"'), name,
                         fish_quoted(command.description));
  }
  std::string script = replaced(kFishScript, "@VALUED@", fmt::format("{}", fmt::join(valued, " ")));
  return replaced(script, "@PATHS@", fmt::format("{}", fmt::join(paths, " "))) + lines;
}

}  // namespace lictor::package
