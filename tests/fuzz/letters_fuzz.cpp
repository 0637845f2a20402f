// The input of commands: dead letters, the history, and the operators' switches, which people edit.

#include <string>

#include "client/control.h"
#include "client/locks.h"
#include "client/queue.h"
#include "client/task_info.h"
#include "fuzz.h"
#include "wire/consul.h"
#include "wire/record.h"

namespace lictor::fuzz {
namespace {

const wire::Layout kLayout = wire::Layout::under("lictor/", "default");

wire::KvEntry entry(std::string key, std::string value) {
  return {std::move(key), std::move(value), {}, 0, 1, 2};
}

void check_letter(const std::string& text) {
  const auto letter = client::view_dead_letter(kLayout, entry(kLayout.dead_prefix + "a,2", text));
  FUZZ_REQUIRE(letter.state == TaskState::kDead);
  FUZZ_REQUIRE(letter.record == text);
  FUZZ_REQUIRE(letter.id == "a,2");
  const auto done = client::view_done(kLayout, entry(kLayout.done_prefix + "a", text));
  FUZZ_REQUIRE(done.state == TaskState::kDone);
  static_cast<void>(wire::done_at(text));

  const auto retried = client::retried_record(text, WallTime{std::chrono::seconds{1}}, false);
  if (!retried) return FUZZ_REQUIRE(!retried.error().message.empty());
  // The record as its producer wrote it: nothing of lictor's may be left in it.
  const auto again = wire::read_record(kLayout, entry(kLayout.task_key("a"), *retried));
  if (const auto* t = std::get_if<core::Task>(&again)) FUZZ_REQUIRE(t->stamp == core::Stamp{});
}

void check_task(const std::string& text) {
  static const client::Locks locks{{wire::KvEntry{"leader", {}, "s", 0, 1, 2}}};
  const auto task = client::view_task(kLayout, entry(kLayout.task_key("a"), text), locks, {});
  FUZZ_REQUIRE(task.record == text);
  FUZZ_REQUIRE(task.state != TaskState::kUnreadable || !task.error.empty());
  FUZZ_REQUIRE(!client::state_text(task.state).empty());
}

void check_control(const std::string& text) {
  const WallTime at{std::chrono::seconds{1'700'000'000}};
  static_cast<void>(wire::control_fault(text));
  static_cast<void>(client::read_pause(text));
  const std::string paused = client::with_pause(text, "me", at, "a reason");
  FUZZ_REQUIRE(wire::control_fault(paused).empty());
  const PauseState state = client::read_pause(paused);
  FUZZ_REQUIRE(state.paused && state.by == "me" && state.reason == "a reason" && state.at == at);
  const std::string resumed = client::with_resume(paused, "me", at);
  FUZZ_REQUIRE(!client::read_pause(resumed).paused);
  FUZZ_REQUIRE(wire::control_fault(client::with_step_down(resumed, "id", "me", at)).empty());
}

}  // namespace
}  // namespace lictor::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{lictor::fuzz::text_of(data, size)};
  lictor::fuzz::check_letter(text);
  lictor::fuzz::check_task(text);
  lictor::fuzz::check_control(text);
  return 0;
}
