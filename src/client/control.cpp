#include "client/control.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/host_name.h"
#include "base/json_text.h"
#include "base/random.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/change.h"
#include "client/client.h"
#include "client/new_record.h"
#include "client/queue.h"
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
  if (step_down.is_null() || !text_member(step_down, "id").empty()) return {};
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
  const nlohmann::json value = parse_json(control).value_or(nlohmann::json{});
  const nlohmann::json& paused = json_member(value, "paused");
  state.paused = paused.is_object() || paused == nlohmann::json(true);  // as the daemon reads it
  state.by = text_member(paused, "by");
  state.reason = text_member(paused, "reason");
  state.at = parse_rfc3339(text_member(paused, "at"));
  return state;
}

// Asked once, since getpwuid() is not thread safe and the calls of a Client are.
std::string who_asks() {
  static const std::string who = [] {
    const uid_t uid = ::geteuid();
    const passwd* user = ::getpwuid(uid);
    const std::string name = user != nullptr ? user->pw_name : "uid " + std::to_string(uid);
    return to_utf8(name + '@' + host_name());
  }();
  return who;
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

namespace {

// `change` gets the value of the control key, empty if there is none, and returns the new one, or
// std::nullopt for no change: then the result is false. Other switches in the value stay, since
// `change` adds to what was read, and the CAS fails if it has changed.
Result<bool> change_control(
    const Queue& queue,
    const std::function<Result<std::optional<std::string>>(std::string_view control)>& change) {
  const std::string& key = queue.layout.control_key;
  return retry_conflicts(key, [&]() -> std::optional<Result<bool>> {
    LICTOR_TRY(const auto control, queue.store.get(key));
    const auto value = change(control ? std::string_view{control->value} : "");
    if (!value) return fail(value.error().code, key + ": " + value.error().message);
    if (!*value) return false;
    LICTOR_TRY(const auto written,
               queue.store.replace(key, control ? control->modify_index : 0, **value));
    if (written) return true;
    return std::nullopt;
  });
}

std::string whoever(const std::string& by) { return by.empty() ? who_asks() : by; }

}  // namespace

Result<PauseState> pause_state(const Queue& queue) {
  LICTOR_TRY(const auto control, queue.store.get(queue.layout.control_key));
  return control ? read_pause(control->value) : PauseState{};
}

}  // namespace lictor::client

namespace lictor {

using namespace client;

Result<bool> Client::pause(const std::string& reason, const std::string& by) {
  return change_control(impl_->queue, [&](auto control) -> std::optional<std::string> {
    if (wire::control_fault(control).empty() && read_pause(control).paused) return std::nullopt;
    return with_pause(control, whoever(by), wall_now(), reason);
  });
}

Result<bool> Client::resume(const std::string& by) {
  return change_control(impl_->queue, [&](auto control) -> std::optional<std::string> {
    if (!read_pause(control).paused) return std::nullopt;
    return with_resume(control, whoever(by), wall_now());
  });
}

Result<PauseState> Client::paused() { return pause_state(impl_->queue); }

// The new id makes this a new request: a leader acts on an id that it has not seen before.
Result<void> Client::step_down() {
  const std::string id = Random{random_seed()}.hex();
  const auto asked =
      change_control(impl_->queue, [&](auto control) -> Result<std::optional<std::string>> {
        if (const std::string fault = wire::control_fault(control); !fault.empty()) {
          return fail(ErrorCode::kInvalid, fault +
                                               "; the leader reads no request in it: run \"lictor "
                                               "resume\" or \"lictor pause\" to correct it");
        }
        return with_step_down(control, id, who_asks(), wall_now());
      });
  return asked.map([](bool) {});
}

}  // namespace lictor
