#include "exec/environment.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/time_text.h"

namespace lictor::exec {
namespace {

// For a daemon that has no PATH itself.
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

// Reads the record as a stream, which gives numbers as they are written.
class ParameterReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ParameterReader(Variables& out) : out_(out) {}

  bool null() override { return scalar(""); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { return scalar(std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override { return scalar(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { return scalar(text); }
  bool string(std::string& value) override { return scalar(value); }
  bool binary(nlohmann::json::binary_t&) override { return true; }

  bool start_object(std::size_t) override { return nest(1); }
  bool start_array(std::size_t) override { return nest(1); }
  bool end_object() override { return nest(-1); }
  bool end_array() override { return nest(-1); }

  bool key(std::string& name) override {
    if (depth_ == 1) in_parameters_ = name == "taskPara";
    if (depth_ == 2 && in_parameters_) parameter_ = name;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  bool nest(int by) {
    depth_ += by;
    parameter_.clear();
    return true;
  }
  bool scalar(std::string_view value) {
    if (depth_ == 2 && in_parameters_ && !parameter_.empty()) {
      set(out_, parameter_variable(parameter_), value);
    }
    return true;
  }

  Variables& out_;
  int depth_ = 0;
  bool in_parameters_ = false;
  std::string parameter_;
};

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
  if (attempt.record) {
    ParameterReader reader{variables};
    // Only valid JSON becomes an attempt.
    (void)nlohmann::json::sax_parse(*attempt.record, &reader);
  }
  std::vector<std::string> environment;
  environment.reserve(variables.size());
  for (const auto& [name, value] : variables) environment.push_back(name + '=' + value);
  return environment;
}

}  // namespace lictor::exec
