// The states of a task and the orders that follow from them.

#include "core/tasks/task_table.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "core/tasks/known_keys.h"

namespace lictor::core::test {
namespace {

using S = TaskState;

WallTime at(std::int64_t s) { return WallTime{std::chrono::seconds{s}}; }

struct Draft {
  std::string key;
  std::uint64_t created = 1;
  std::optional<WallTime> time{};
  std::optional<WallTime> execute_at{};
  std::string serial_key{};
  std::uint32_t attempt = 0;
};

struct Table {
  TaskEntry& put(const Draft& draft, Lack lack = Lack::kNothing) {
    auto task = std::make_shared<Task>();
    task->key = draft.key;
    task->create_index = task->modify_index = draft.created;
    task->task_time = draft.time;
    task->execute_at = draft.execute_at;
    task->serial_key = draft.serial_key;
    task->stamp.attempt = draft.attempt;
    TaskEntry& entry = table.obtain(draft.key);
    table.update(entry, S::kWaiting, [&](TaskEntry& e) {
      e.lack = lack;
      e.index = draft.created;
      e.task = std::move(task);
      e.due = due_of(*e.task).value_or(WallTime::min());
    });
    return entry;
  }
  void claim(TaskEntry& entry) {
    table.update(entry, S::kClaiming, [&](TaskEntry& e) {
      e.attempt = std::make_unique<Attempt>();
      e.attempt->id = AttemptId{++last_attempt};
    });
  }
  void claimed(TaskEntry& entry) {
    claim(entry);
    table.move(entry, S::kClaimed);
  }
  void end(TaskEntry& entry) {
    table.move(entry, S::kRunning);
    table.move(entry, S::kEnding);
    table.bury(entry, entry.index, Instant{});
  }
  // Takes a task as the dispatcher does: a blocked one is passed.
  std::string take() {
    while (TaskEntry* entry = table.waiting_order().first_ready()) {
      if (table.waiting_order().lane_holder(*entry) == nullptr) {
        claim(*entry);
        return entry->key;
      }
      table.wait(*entry, Lack::kSerialKey);
    }
    return "";
  }

  QueueOptions options;
  TaskTable table{options};
  std::uint64_t last_attempt = 0;
};

TEST_CASE("ready tasks are in order of time, then creation, then key; the untimed first") {
  Table t;
  t.put({"e", 2, at(50)});
  t.put({"c", 9, at(50)});
  t.put({"d", 2, at(50)});
  t.put({"b", 99});
  t.put({"a", 5, at(60), at(40)});
  CHECK(t.table.waiting() == 5);
  for (const char* key : {"b", "a", "d", "e", "c", ""}) CHECK(t.take() == key);
}

TEST_CASE("a begun task keeps its serialKey while it waits for its retry, a later one does not") {
  Table t;
  TaskEntry& begun = t.put({"1", 1, {}, {}, "db", 1}, Lack::kBackoff);
  t.put({"2", 2, {}, {}, "db"});
  CHECK(t.take() == "");
  std::string next = "2";
  SUBCASE("for tomorrow") { t.put({"1", 3, {}, at(10), "db", 1}, Lack::kTime); }
  SUBCASE("without an executor") { t.table.wait(begun, Lack::kExecutor); }
  SUBCASE("of another serialKey") { t.put({"1", 3, {}, {}, "other", 1}, Lack::kBackoff); }
  SUBCASE("gone") { t.table.bury(begun, 4, Instant{}); }
  SUBCASE("and others are not to wait for it") {
    t.table.reconfigure([&] { t.options.serialize_retries = false; });
  }
  SUBCASE("due") {
    t.table.wait(begun, Lack::kNothing);
    CHECK(t.take() == "1");
    next = "";
  }
  CHECK(t.take() == next);
}

TEST_CASE("a task that was offered for a serialKey makes way for the next when it is gone") {
  Table t;
  TaskEntry& first = t.put({"1", 1, {}, {}, "db"});
  t.put({"2", 2, {}, {}, "db"});
  t.put({"3", 3, {}, {}, "db"});
  CHECK(t.take() == "1");
  CHECK(t.take() == "");
  TaskEntry& second = *t.table.find("2");
  t.table.move(first, S::kClaimed);
  t.end(first);
  REQUIRE(second.lacks(Lack::kNothing));
  t.table.bury(second, 9, Instant{});
  CHECK(t.take() == "3");
}

TEST_CASE("a begun task that falls behind another begun one of its serialKey lets that one go") {
  Table t;
  TaskEntry& later = t.put({.key = "2", .created = 2, .serial_key = "db", .attempt = 1});
  CHECK(t.take() == "2");
  t.put({.key = "1", .created = 1, .serial_key = "db", .attempt = 1});
  CHECK(t.take().empty());
  for (const S state : {S::kClaimed, S::kRunning, S::kEnding}) t.table.move(later, state);
  t.table.wait(later, Lack::kBackoff);
  CHECK(t.take() == "1");
}

TEST_CASE("claimed tasks start in order, and not before claims that were made earlier") {
  Table t;
  TaskEntry& second = t.put({"2", 2});
  TaskEntry& first = t.put({"1", 1});
  TaskEntry& third = t.put({"3", 3});
  const ClaimedOrder& order = t.table.claimed_order();
  t.claim(first);
  t.claimed(third);
  CHECK(order.next_to_start(true) == nullptr);
  CHECK(order.next_to_start(false) == &third);
  t.claimed(second);
  CHECK(order.next_to_start(false) == &second);
  t.table.move(first, S::kChecking);
  CHECK(order.next_to_start(true) == nullptr);
  t.table.move(first, S::kClaimed);
  CHECK(order.next_to_start(true) == &first);
  CHECK(t.table.busy() == 3);
}

TEST_CASE("a deleted key is remembered until all requests before it are answered") {
  Table t;
  TaskEntry& entry = t.put({"1", 7});
  t.table.bury(entry, 9, Instant{1s});
  CHECK(entry.index == 9);
  CHECK(t.table.waiting() == 0);
  SUBCASE("and is forgotten then") {
    t.table.forget_deleted_before(Instant{1s});
    CHECK(t.table.find("1") != nullptr);
    t.table.forget_deleted_before(Instant{2s});
    CHECK(t.table.find("1") == nullptr);
  }
  SUBCASE("written again it stays") {
    t.put({"1", 11});
    t.table.forget_deleted_before(Instant{2s});
    REQUIRE(t.table.find("1") != nullptr);
    t.table.bury(entry, 12, Instant{3s});
    t.table.forget_deleted_before(Instant{4s});
    CHECK(t.table.find("1") == nullptr);
  }
  SUBCASE("deleted again it is remembered from then on") {
    t.put({"1", 11});
    t.table.bury(entry, 12, Instant{3s});
    t.table.forget_deleted_before(Instant{2s});
    CHECK(t.table.find("1") != nullptr);
  }
}

TEST_CASE("at the end of a term only the jobs that still run are kept") {
  Table t;
  TaskEntry& job = t.put({"1", 1});
  t.claimed(job);
  t.table.move(job, S::kRunning);
  t.put({"2", 2, {}, {}, "db"});
  t.claimed(t.put({"3", 3}));
  const AttemptId id = job.attempt->id;
  t.table.move(job, S::kLeftover);
  t.table.clear();
  CHECK(t.table.count(S::kLeftover) == 1);
  CHECK(t.table.waiting() + t.table.busy() == 0);
  REQUIRE(t.table.find(id) == &job);
  t.table.erase_leftover(job);
  CHECK(t.table.find(id) == nullptr);
  CHECK(t.table.find("1") == nullptr);
}

TEST_CASE("a key that is deleted a hundred thousand times is remembered until the last is old") {
  constexpr std::int64_t kTimes = 100'000;
  Table t;
  TaskEntry& entry = t.put({"a"});
  for (std::int64_t i = 1; i <= kTimes; ++i) {
    t.table.bury(entry, static_cast<std::uint64_t>(i), Instant{std::chrono::nanoseconds{i}});
    t.table.move(entry, S::kIgnored);
  }
  t.table.bury(entry, static_cast<std::uint64_t>(kTimes),
               Instant{std::chrono::nanoseconds{kTimes}});
  t.table.forget_deleted_before(Instant{std::chrono::nanoseconds{kTimes}});
  REQUIRE(t.table.find("a") == &entry);
  CHECK(t.table.count(S::kDeleted) == 1);
  t.table.forget_deleted_before(Instant{std::chrono::nanoseconds{kTimes + 1}});
  CHECK(t.table.find("a") == nullptr);
}

TEST_CASE("a comparison of a listing finds unknown keys, in order, and keys that it lacks") {
  Table t;
  const std::vector<std::string_view> two{"a", "b"};
  CHECK(unknown_of(two, t.table.keys()) == two);
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) names.insert(std::to_string(i));
  std::vector<std::string_view> listed, unknown;
  std::vector<std::string> known, lacking;
  for (const std::string& name : names) {
    const int number = std::stoi(name);
    const bool is_known = number % 3 == 0;
    if (is_known) t.put({name});
    if (number % 4 != 0) listed.emplace_back(name);
    if (number % 4 != 0 && !is_known) unknown.emplace_back(name);
    if (number % 4 != 0 && is_known) known.push_back(name);
    if (number % 4 == 0 && is_known) lacking.push_back(name);
  }
  std::vector<std::string> found, unlisted;
  const auto look = [&](const TaskEntry& entry, bool is_listed) {
    (is_listed ? found : unlisted).push_back(entry.key);
  };
  CHECK(compare(listed, t.table.keys(), look) == unknown);
  CHECK(found == known);
  CHECK(unlisted == lacking);
}

}  // namespace
}  // namespace lictor::core::test
