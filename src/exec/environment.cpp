#include "exec/environment.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"

namespace lictor::exec {
namespace {

// For a daemon without a PATH.
constexpr std::string_view kJobPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

constexpr std::array<std::string_view, 9> kPassedOn = {
    "PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LOGNAME", "HOME", "USER", "SHELL"};

void set(Variables& variables, std::string_view name, std::string_view value) {
  constexpr char kNul = '\0';
  if (name.size() + value.size() > kMaxVariableBytes) return;
  if (name.find(kNul) != std::string_view::npos || value.find(kNul) != std::string_view::npos)
    return;
  variables.insert_or_assign(std::string{name}, value);
}

// "LICTOR_PARA_" begins every name, so no parameter of a producer can set PATH or LD_PRELOAD.
std::string parameter_variable(std::string_view name) {
  std::string variable = "LICTOR_PARA_";
  for (const char c : name) variable += is_word({&c, 1}, "") ? c : '_';
  return variable;
}

// Numbers keep the record's spelling.
void set_parameters(Variables& variables, std::string_view object) {
  for (MemberWalk parameter{object}; parameter.next();) {
    const std::string_view text = parameter.value_text();
    if (parameter.name().empty() || text.front() == '{' || text.front() == '[') continue;
    const std::string name = parameter_variable(parameter.name());
    if (text.front() == '"') {
      set(variables, name, nlohmann::json::parse(text, nullptr, false).get<std::string>());
    } else {
      set(variables, name, text == "null" ? "" : text);
    }
  }
}

}  // namespace

Variables base_environment(const char* const* daemon, const User* user) {
  Variables variables{{"PATH", std::string{kJobPath}}};
  for (; *daemon != nullptr; ++daemon) {
    const std::string_view variable{*daemon};
    const std::size_t end = variable.find('=');
    if (end == std::string_view::npos) continue;
    const std::string_view name = variable.substr(0, end);
    const bool passed_on = std::find(kPassedOn.begin(), kPassedOn.end(), name) != kPassedOn.end();
    if (passed_on || name.starts_with("LC_")) set(variables, name, variable.substr(end + 1));
  }
  if (user != nullptr) {
    set(variables, "HOME", user->home);
    set(variables, "USER", user->name);
    set(variables, "LOGNAME", user->name);
    set(variables, "SHELL", user->shell);
  }
  return variables;
}

std::vector<std::string> job_environment(
    Variables variables, const std::vector<std::pair<std::string, std::string>>& configured,
    const Attempt& attempt, std::optional<WallTime> deadline) {
  for (const auto& [name, value] : configured) {
    if (!name.starts_with("LICTOR_")) set(variables, name, value);
  }
  set(variables, "LICTOR_TASK_ID", attempt.task_id);
  set(variables, "LICTOR_TASK_KEY", attempt.task_key);
  set(variables, "LICTOR_TASK_TYPE", attempt.task_type);
  set(variables, "LICTOR_QUEUE", attempt.queue);
  set(variables, "LICTOR_ATTEMPT", std::to_string(attempt.number));
  set(variables, "LICTOR_FENCING_TOKEN", std::to_string(attempt.fencing_token));
  set(variables, "LICTOR_DEADLINE", deadline ? format_rfc3339(*deadline) : "");
  if (attempt.record && check_object(*attempt.record)) {
    for (MemberWalk member{*attempt.record}; member.next();) {
      const bool has_parameters =
          member.name() == "taskPara" && member.value_text().starts_with('{');
      if (has_parameters) set_parameters(variables, member.value_text());
    }
  }
  std::vector<std::string> environment;
  environment.reserve(variables.size());
  for (const auto& [name, value] : variables) environment.push_back(name + '=' + value);
  return environment;
}

}  // namespace lictor::exec
