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

}  // namespace lictor::package
