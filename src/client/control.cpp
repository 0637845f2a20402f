#include "client/control.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/host_name.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/change.h"
#include "client/new_record.h"
#include "client/retry.h"
#include "wire/consul.h"

namespace lictor::client {

namespace {

// `control` without the members `replaced`, and with `added` at its end.
std::string changed(std::string_view control, std::initializer_list<std::string_view> replaced,
                    const std::string& added) {
  ObjectText text;
  // Text that is no JSON object has no members to keep.
  const bool readable = parse_json(control).has_value();
  const auto members = split_object(readable ? control : "{}");
  for (const JsonMember& member : members.value_or(std::vector<JsonMember>{})) {
    if (std::find(replaced.begin(), replaced.end(), member.name) != replaced.end()) continue;
    text.add_raw(member.name_text, member.value_text);
  }
  text.add_members(added);
  return text.take();
}

std::string who_and_when(std::string_view by, WallTime at) {
  return R"("by":)" + json_quoted(by) + R"(,"at":)" + json_quoted(format_rfc3339(at));
}

}  // namespace

std::string with_step_down(std::string_view control, std::string_view id, std::string_view by,
                           WallTime at) {
  return changed(control, {"step_down"},
                 R"("step_down":{"id":)" + json_quoted(id) + ',' + who_and_when(by, at) + '}');
}

std::string with_pause(std::string_view control, std::string_view by, WallTime at,
                       std::string_view reason) {
  std::string pause = R"("paused":{)" + who_and_when(by, at);
  if (!reason.empty()) pause += R"(,"reason":)" + json_quoted(reason);
  return changed(control, {"paused", "resumed"}, pause + '}');
}

std::string with_resume(std::string_view control, std::string_view by, WallTime at) {
  return changed(control, {"paused", "resumed"}, R"("resumed":{)" + who_and_when(by, at) + '}');
}

std::string switches_without_effect(std::string_view control) {
  static const std::vector<std::string_view> kSwitches{"paused", "resumed", "step_down"};
  const auto value = parse_json(control);
  if (!value || !value->is_object()) return {};
  for (const auto& [name, content] : value->items()) {
    if (std::find(kSwitches.begin(), kSwitches.end(), name) == kSwitches.end()) {
      const std::string near = nearest(name, kSwitches);
      return '"' + excerpt(name) + "\" is no switch" +
             (near.empty() ? "" : "; did you mean \"" + near + "\"?");
    }
  }
  const nlohmann::json step_down = value->value("step_down", nlohmann::json{});
  if (step_down.is_null() || (step_down.is_object() && !text_member(step_down, "id").empty()))
    return {};
  return "step_down: expected an object with an \"id\", a new one for each request, got " +
         excerpt(step_down.dump());
}

PauseState read_pause(std::string_view control) {
  PauseState state;
  if (const std::string fault = wire::control_fault(control); !fault.empty()) {
    state.paused = true;
    state.by = wire::unreadable_control(fault);
    return state;
  }
  const auto value = parse_json(control);
  if (!value || !value->is_object() || !value->contains("paused")) return state;
  const nlohmann::json& paused = (*value)["paused"];
  state.paused = paused.is_object() || paused == nlohmann::json(true);  // as the daemon reads it
  if (!paused.is_object()) return state;
  state.by = text_member(paused, "by");
  state.reason = text_member(paused, "reason");
  state.at = parse_rfc3339(text_member(paused, "at"));
  return state;
}

std::string who_asks() {
  const uid_t uid = ::geteuid();
  const passwd* user = ::getpwuid(uid);
  const std::string name = user != nullptr ? user->pw_name : "uid " + std::to_string(uid);
  return to_utf8(name + '@' + host_name());
}

std::string drain_key(const wire::Layout& layout, std::string_view node) {
  return layout.members_prefix + std::string{node} + "/drain";
}

Result<bool> is_draining(Store& store, const wire::Layout& layout, const std::string& node) {
  LICTOR_TRY(const auto entry, store.get(drain_key(layout, node)));
  return entry.has_value();
}

Result<bool> begin_drain(Store& store, const wire::Layout& layout, const std::string& node) {
  return store.replace(drain_key(layout, node), 0,
                       '{' + who_and_when(who_asks(), wall_now()) + '}');
}

Result<bool> end_drain(Store& store, const wire::Layout& layout, const std::string& node) {
  const std::string key = drain_key(layout, node);
  return retry_conflicts(key, [&]() -> std::optional<Result<bool>> {
    LICTOR_TRY(const auto entry, store.get(key));
    if (!entry) return false;
    LICTOR_TRY(const auto refused, store.apply({removal(key, entry->modify_index)}));
    if (!refused.front()) return true;
    return std::nullopt;
  });
}

}  // namespace lictor::client
