#include "exec/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/time_text.h"

namespace lictor::exec {
namespace {

constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

constexpr std::array<std::string_view, 9> kPassedOn = {
    "PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LOGNAME", "HOME", "USER", "SHELL"};

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// A record may hold tens of thousands of parameters: a linear search for each would block the
// daemon's loop for longer than its lease.
class Variables {
 public:
  explicit Variables(Environment start) : variables_(std::move(start)) {
    for (std::size_t i = 0; i < variables_.size(); ++i) places_.emplace(name_of(variables_[i]), i);
  }

  void set(std::string_view name, std::string_view value) {
    if (name.size() + value.size() > kMaxVariableBytes) return;
    if (name.find('\0') != std::string_view::npos || value.find('\0') != std::string_view::npos) {
      return;
    }
    std::string variable;
    variable.reserve(name.size() + 1 + value.size());
    variable.append(name).append("=").append(value);
    const auto [place, is_new] = places_.try_emplace(std::string{name}, variables_.size());
    if (is_new) {
      variables_.push_back(std::move(variable));
    } else {
      variables_[place->second] = std::move(variable);
    }
  }

  [[nodiscard]] bool has(std::string_view name) const { return places_.contains(name); }

  [[nodiscard]] Environment take() { return std::move(variables_); }

 private:
  Environment variables_;
  // By name; ordered, because a producer could make hashes collide.
  std::map<std::string, std::size_t, std::less<>> places_;
};

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
      out_.set(parameter_variable(parameter_), value);
    }
    return true;
  }

  Variables& out_;
  int depth_ = 0;
  bool in_parameters_ = false;
  std::string parameter_;
};

}  // namespace

Environment base_environment(const Environment& daemon, const User* user) {
  Variables variables{{}};
  for (const std::string& variable : daemon) {
    const std::string_view name = name_of(variable);
    if (name.size() == variable.size()) continue;
    const bool passed_on = std::find(kPassedOn.begin(), kPassedOn.end(), name) != kPassedOn.end();
    if (passed_on || name.starts_with("LC_")) variables.set(name, variable.substr(name.size() + 1));
  }
  if (!variables.has("PATH")) variables.set("PATH", kDefaultPath);
  if (user != nullptr) {
    variables.set("HOME", user->home);
    variables.set("USER", user->name);
    variables.set("LOGNAME", user->name);
    variables.set("SHELL", user->shell);
  }
  return variables.take();
}

Environment job_environment(const Environment& base,
                            const std::vector<std::pair<std::string, std::string>>& configured,
                            const Attempt& attempt, std::optional<WallTime> deadline) {
  Variables variables{base};
  for (const auto& [name, value] : configured) {
    if (!name.starts_with("LICTOR_")) variables.set(name, value);
  }
  variables.set("LICTOR_TASK_ID", attempt.task_id);
  variables.set("LICTOR_TASK_KEY", attempt.task_key);
  variables.set("LICTOR_TASK_TYPE", attempt.task_type);
  variables.set("LICTOR_QUEUE", attempt.queue);
  variables.set("LICTOR_ATTEMPT", std::to_string(attempt.number));
  variables.set("LICTOR_FENCING_TOKEN", std::to_string(attempt.fencing_token));
  variables.set("LICTOR_DEADLINE", deadline ? format_rfc3339(*deadline) : "");
  if (attempt.record) {
    ParameterReader reader{variables};
    // Only valid JSON becomes an attempt.
    (void)nlohmann::json::sax_parse(*attempt.record, &reader);
  }
  return variables.take();
}

Environment own_environment() {
  Environment variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  return variables;
}

}  // namespace lictor::exec
