// The operator's switches. Others may be turned meanwhile: read, change, write if it is still as it
// was read.

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/printable.h"
#include "base/random.h"
#include "client/control.h"
#include "client/queue.h"
#include "wire/consul.h"

namespace lictor::client {
namespace {

constexpr int kTries = 10;  // more than that many operators at once?

// `change` answers nothing when there is nothing to do. False: there was not.
Result<bool> change_control(
    const Queue& queue,
    const std::function<Result<std::optional<std::string>>(std::string_view control)>& change) {
  const std::string& key = queue.layout.control_key;
  for (int i = 0; i < kTries; ++i) {
    const auto control = queue.store.get(key);
    if (!control) return tl::unexpected(control.error());
    const auto value = change(*control ? std::string_view{(*control)->value} : "");
    if (!value) return fail(value.error().code, key + ": " + value.error().message);
    if (!*value) return false;
    const auto written = queue.store.replace(key, *control ? (*control)->modify_index : 0, **value);
    if (!written) return tl::unexpected(written.error());
    if (*written) return true;
  }
  return fail(ErrorCode::kConflict, key + " was changed by others " + std::to_string(kTries) +
                                        " times in a row; try again");
}

std::string whoever(const std::string& by) { return by.empty() ? who_asks() : by; }

}  // namespace

Result<bool> pause_queue(const Queue& queue, const std::string& reason, const std::string& by) {
  return change_control(queue, [&](std::string_view control) -> std::optional<std::string> {
    if (wire::control_fault(control).empty() && read_pause(control).paused) return std::nullopt;
    return with_pause(control, whoever(by), wall_now(), reason);
  });
}

Result<bool> resume_queue(const Queue& queue, const std::string& by) {
  return change_control(queue, [&](std::string_view control) -> std::optional<std::string> {
    if (!read_pause(control).paused) return std::nullopt;
    return with_resume(control, whoever(by), wall_now());
  });
}

Result<PauseState> pause_state(const Queue& queue) {
  const auto control = queue.store.get(queue.layout.control_key);
  if (!control) return tl::unexpected(control.error());
  return *control ? read_pause((*control)->value) : PauseState{};
}

Result<void> ask_to_step_down(const Queue& queue) {
  Random random{random_seed()};
  const std::string id = random.hex();
  const auto asked =
      change_control(queue, [&](std::string_view control) -> Result<std::optional<std::string>> {
        if (const std::string fault = wire::control_fault(control); !fault.empty()) {
          return fail(ErrorCode::kInvalid, fault +
                                               "; the leader reads no request in it: run \"lictor "
                                               "resume\" or \"lictor pause\" to correct it");
        }
        return with_step_down(control, id, who_asks(), wall_now());
      });
  if (!asked) return tl::unexpected(asked.error());
  return {};
}

}  // namespace lictor::client
