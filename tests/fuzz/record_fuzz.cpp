// Task records: an accepted record is written as it was read, in every rewrite, also if a
// producer's command line completes it.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/json_text.h"
#include "base/text.h"
#include "client/new_record.h"
#include "fuzz.h"
#include "wire/record.h"

namespace lictor::fuzz {
namespace {

using nlohmann::json;

const wire::Layout& layout() {
  static const wire::Layout value = [] {
    auto made = wire::Layout::under("lictor/", "default");
    made.serialize_by = "/taskPara/instanceId";
    return made;
  }();
  return value;
}

core::StoredRecord read(std::string text) {
  return wire::read_record(layout(), {layout().task_key("a/b"), std::move(text), {}, 0, 1, 2});
}

// Name and value of all members that are not lictor's, as written.
std::vector<std::pair<std::string, std::string>> producers_part(std::string_view text) {
  constexpr std::array kOurs{"taskTaken",   "taskAttempt", "taskLost",
                             "taskRetryAt", "taskClaim",   "taskError"};
  const auto members = split_object(text);
  FUZZ_REQUIRE(members);
  std::vector<std::pair<std::string, std::string>> part;
  for (const JsonMember& member : *members) {
    if (std::find(kOurs.begin(), kOurs.end(), member.name) != kOurs.end()) continue;
    part.emplace_back(member.name_text, member.value_text);
  }
  return part;
}

void same_but_for_the_stamp(const core::Task& a, const core::Task& b) {
  FUZZ_REQUIRE(a.key == b.key);
  FUZZ_REQUIRE(a.id == b.id);
  FUZZ_REQUIRE(a.type == b.type);
  FUZZ_REQUIRE(a.task_time == b.task_time);
  FUZZ_REQUIRE(a.execute_at == b.execute_at);
  FUZZ_REQUIRE(a.expire_at == b.expire_at);
  FUZZ_REQUIRE(a.serial_key == b.serial_key);
  FUZZ_REQUIRE(a.max_attempts == b.max_attempts);
  FUZZ_REQUIRE(a.timeout == b.timeout);
  FUZZ_REQUIRE(a.backoff.has_value() == b.backoff.has_value());
  FUZZ_REQUIRE(producers_part(*a.record) == producers_part(*b.record));
}

core::Task read_again(std::string text) {
  FUZZ_REQUIRE(json::accept(text));
  const auto again = read(std::move(text));
  FUZZ_REQUIRE(std::holds_alternative<core::Task>(again));
  return std::get<core::Task>(again);
}

core::Stamp some_stamp(const core::Task& task) {
  core::Stamp stamp = task.stamp;
  stamp.taken = !stamp.taken;
  ++stamp.attempt;
  stamp.retry_at = task.execute_at ? task.execute_at : WallTime{std::chrono::seconds{1}};
  stamp.claim = core::Claim{"node \"a\"", task.type, task.id, WallTime{std::chrono::seconds{2}}};
  if (stamp.error.empty()) stamp.error = excerpt(task.serial_key, 100);
  return stamp;
}

void check_task(const core::Task& task) {
  FUZZ_REQUIRE(!task.type.empty());
  const core::Stamp stamp = some_stamp(task);
  const core::Task claimed = read_again(wire::restamp_record(*task.record, stamp));
  same_but_for_the_stamp(task, claimed);
  FUZZ_REQUIRE(claimed.stamp.taken == stamp.taken);
  FUZZ_REQUIRE(claimed.stamp.attempt == stamp.attempt);
  FUZZ_REQUIRE(claimed.stamp.lost == stamp.lost);
  FUZZ_REQUIRE(claimed.stamp.retry_at == stamp.retry_at);
  FUZZ_REQUIRE(claimed.stamp.claim == stamp.claim);
  FUZZ_REQUIRE(claimed.stamp.error.empty() == stamp.error.empty());

  const core::Task bare = read_again(wire::unstamped_record(*claimed.record));
  same_but_for_the_stamp(task, bare);
  FUZZ_REQUIRE(bare.stamp == core::Stamp{});

  const core::BuryOp bury{task.key, 2,           task.record, true, stamp,
                          "failed", stamp.error, "tail",      {},   1};
  const auto letter = split_object(wire::dead_letter(bury, "node"));
  FUZZ_REQUIRE(letter);
  const core::DoneRecord done{task.record, "[1]", false, 1, 0, {}, WallTime{std::chrono::hours{1}}};
  const std::string kept = wire::done_record(done, "node");
  FUZZ_REQUIRE(split_object(kept));
  FUZZ_REQUIRE(wire::done_at(kept) == done.at);
}

// `name_text`: as it is written.
bool is_put_in(const std::string& name_text) {
  const json name = json::parse(name_text);
  return name == "taskId" || name == "taskTime" || name == "taskType";
}

void check_completed(std::string_view text) {
  client::TaskIds ids{1};
  constexpr WallTime kNow{std::chrono::seconds{1'795'253'400}};
  auto completed = client::complete_record(text, "Usual", kNow, ids);
  if (!completed) return FUZZ_REQUIRE(!completed.error().message.empty());
  const core::Task task = read_again(completed->record);
  FUZZ_REQUIRE(task.id == completed->id);
  FUZZ_REQUIRE(task.stamp == core::Stamp{});
  FUZZ_REQUIRE(completed->record.starts_with('{') && completed->record.ends_with('}'));

  // Added members come first, and replace those that were null.
  auto kept = producers_part(text);
  std::erase_if(
      kept, [](const auto& member) { return is_put_in(member.first) && member.second == "null"; });
  const auto found = producers_part(completed->record);
  FUZZ_REQUIRE(kept.size() <= found.size());
  const auto rest = found.end() - std::ssize(kept);
  FUZZ_REQUIRE(std::equal(kept.begin(), kept.end(), rest));
  FUZZ_REQUIRE(
      std::all_of(found.begin(), rest, [](const auto& member) { return is_put_in(member.first); }));

  const std::size_t size = completed->record.size();
  if (!completed->made_time) return;
  completed->restamp(kNow + std::chrono::milliseconds{1});
  FUZZ_REQUIRE(completed->record.size() == size);
  FUZZ_REQUIRE(read_again(completed->record).task_time == kNow + std::chrono::milliseconds{1});
}

void check_bad(const core::BadRecord& bad) {
  FUZZ_REQUIRE(!bad.error.empty());
  FUZZ_REQUIRE(bad.error.find("expected") != std::string::npos);
  FUZZ_REQUIRE(is_utf8(bad.error));
  const core::BuryOp bury{bad.key, 2, bad.record, false, {}, "unreadable", bad.error, {}, {}, 1};
  const json letter = json::parse(wire::dead_letter(bury, "node"), nullptr, false);
  FUZZ_REQUIRE(letter.is_object());
  if (letter.contains("raw")) {
    FUZZ_REQUIRE(letter["raw"] == *bad.record);
  } else {
    FUZZ_REQUIRE(base64_decode(letter.at("raw_base64").get<std::string>()) == *bad.record);
  }
}

}  // namespace
}  // namespace lictor::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lictor;
  const std::string text{fuzz::text_of(data, size)};
  fuzz::check_completed(text);
  const auto record = fuzz::read(text);
  if (const auto* task = std::get_if<core::Task>(&record)) {
    fuzz::check_task(*task);
  } else {
    fuzz::check_bad(std::get<core::BadRecord>(record));
  }
  return 0;
}
