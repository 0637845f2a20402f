#include <fmt/format.h>
#include <fmt/ranges.h>

#include "package/command_tree.h"

namespace lictor::package {
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
