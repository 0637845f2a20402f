#include "core/schedule.h"

#include <doctest/doctest.h>

using namespace lictor;
using namespace lictor::core;
using namespace std::chrono_literals;

namespace {

WallTime at(std::int64_t s) { return WallTime{std::chrono::seconds{s}}; }

struct Draft {
  std::string key;
  std::uint64_t created = 1;
  std::optional<WallTime> time{};
  std::optional<WallTime> execute_at{};
  std::optional<WallTime> expire_at{};
  std::string serial_key{};
  std::uint32_t attempt = 0;
};

std::shared_ptr<const Task> task(const Draft& draft) {
  auto made = std::make_shared<Task>();
  made->key = draft.key;
  made->create_index = made->modify_index = draft.created;
  made->task_time = draft.time;
  made->execute_at = draft.execute_at;
  made->expire_at = draft.expire_at;
  made->serial_key = draft.serial_key;
  made->stamp.attempt = draft.attempt;
  return made;
}

std::string next(Schedule& schedule, WallTime wall) {
  const auto found = schedule.next(wall);
  return found ? found->key : "";
}
std::string take(Schedule& schedule, WallTime wall) {
  const std::string key = next(schedule, wall);
  schedule.take(key);
  return key;
}

}  // namespace

TEST_SUITE_BEGIN("core");

TEST_CASE("the schedule offers by time, then creation, then key; the untimed first") {
  Schedule schedule;
  schedule.put(task({"e", 2, at(50)}), true);
  schedule.put(task({"c", 9, at(50)}), true);
  schedule.put(task({"d", 2, at(50)}), true);
  schedule.put(task({"b", 99}), true);
  schedule.put(task({"a", 5, at(60), at(40)}), true);
  CHECK(schedule.size() == 5);
  for (const char* key : {"b", "a", "d", "e", "c", ""}) CHECK(take(schedule, at(100)) == key);
}

TEST_CASE("what is not due is not offered, and says when it will be") {
  Schedule schedule;
  schedule.put(task({"later", 1, {}, at(100)}), true);
  schedule.put(task({"soon", 1, {}, at(50)}), true);
  CHECK(next(schedule, at(49)).empty());
  CHECK(schedule.next_due() == at(50));
  CHECK(next(schedule, at(50)) == "soon");
  CHECK(schedule.next_due() == at(100));
  schedule.remove("later");
  CHECK_FALSE(schedule.next_due().has_value());
  CHECK(schedule.ready_size() == 1);
}

TEST_CASE("a new version replaces the old one in every order") {
  Schedule schedule;
  schedule.put(task({"a", 1, {}, at(50), at(60)}), true);
  schedule.put(task({"a", 1, at(1)}), true);
  CHECK(schedule.size() == 1);
  CHECK_FALSE(schedule.next_due().has_value());
  CHECK_FALSE(schedule.next_expiry().has_value());
  CHECK(next(schedule, at(0)) == "a");
  schedule.put(task({"a", 1, {}, at(50), at(60)}), true);
  CHECK(next(schedule, at(0)).empty());
  CHECK(schedule.next_due() == at(50));
  CHECK(schedule.next_expiry() == at(60));
  CHECK(schedule.remove("a"));
  CHECK_FALSE(schedule.remove("a"));
  CHECK_FALSE(schedule.next_expiry().has_value());
}

TEST_CASE("what has no executor is known, expires, and is not offered") {
  Schedule schedule;
  schedule.put(task({"a", 1, {}, {}, at(60)}), false);
  CHECK(next(schedule, at(100)).empty());
  CHECK(schedule.find("a") != nullptr);
  CHECK(schedule.next_expired(at(59)) == nullptr);
  CHECK(schedule.next_expired(at(60))->key == "a");
}

TEST_CASE("a task that was begun does not expire any more") {
  Schedule schedule;
  schedule.put(task({"begun", 1, {}, {}, at(60), {}, 1}), true);
  schedule.put(task({"fresh", 2, {}, {}, at(70)}), true);
  CHECK(schedule.next_expiry() == at(70));
  CHECK(schedule.next_expired(at(80))->key == "fresh");
  schedule.remove("fresh");
  CHECK(schedule.next_expired(at(80)) == nullptr);
}

TEST_CASE("of one serialKey one task at a time is offered, in order, others beside it") {
  Schedule schedule;
  schedule.put(task({"1", 1, {}, {}, {}, "db"}), true);
  schedule.put(task({"2", 2, {}, {}, {}, "db"}), true);
  schedule.put(task({"3", 3, {}, {}, {}, "db"}), true);
  schedule.put(task({"4", 4}), true);
  const auto first = schedule.find("1");
  CHECK(take(schedule, at(0)) == "1");
  CHECK(take(schedule, at(0)) == "4");
  CHECK(next(schedule, at(0)).empty());
  CHECK(schedule.ready_size() == 2);

  schedule.put(first, true);  // put back: it still comes first
  CHECK(take(schedule, at(0)) == "1");
  schedule.release(*first);
  const auto second = schedule.find("2");
  CHECK(take(schedule, at(0)) == "2");
  CHECK(next(schedule, at(0)).empty());
  schedule.release(*second);
  CHECK(take(schedule, at(0)) == "3");
}

TEST_CASE("a task that was begun keeps its serialKey's turn, until it is gone") {
  Schedule schedule;
  schedule.put(task({"1", 1, {}, at(100), {}, "db", 1}), true);  // waits for its next attempt
  schedule.put(task({"2", 2, {}, {}, {}, "db"}), true);
  CHECK(next(schedule, at(0)).empty());
  SUBCASE("withdrawn") {
    schedule.remove("1");
    CHECK(next(schedule, at(0)) == "2");
  }
  SUBCASE("due") { CHECK(next(schedule, at(100)) == "1"); }
  SUBCASE("rewritten under another serialKey") {
    schedule.put(task({"1", 1, {}, at(100), {}, "other"}), true);
    CHECK(next(schedule, at(0)) == "2");
  }
}

TEST_CASE("what was begun and has no executor here holds back nobody") {
  Schedule schedule;
  schedule.put(task({"1", 1, {}, {}, {}, "db", 1}), false);
  schedule.put(task({"2", 2, {}, {}, {}, "db"}), true);
  CHECK(next(schedule, at(0)) == "2");
}

TEST_CASE("when the task whose turn it is is put off, the next of its serialKey has its turn") {
  Schedule schedule;
  const auto first = task({"1", 1, {}, {}, {}, "db"});
  schedule.put(first, true);
  schedule.put(task({"2", 2, {}, {}, {}, "db"}), true);
  schedule.put(task({"3", 3, {}, {}, {}, "db"}), true);
  CHECK(take(schedule, at(0)) == "1");
  CHECK(next(schedule, at(0)).empty());  // 2 and 3 are parked
  schedule.release(*first);
  CHECK(next(schedule, at(0)) == "2");
  schedule.put(task({"2", 2, {}, at(100), {}, "db"}), true);
  CHECK(next(schedule, at(0)) == "3");
}

TEST_CASE("a parked task that is withdrawn or rewritten leaves no trace") {
  Schedule schedule;
  const auto first = task({"1", 1, {}, {}, {}, "db"});
  schedule.put(first, true);
  schedule.put(task({"2", 2, {}, {}, {}, "db"}), true);
  schedule.put(task({"3", 3, {}, {}, {}, "db"}), true);
  CHECK(take(schedule, at(0)) == "1");
  CHECK(next(schedule, at(0)).empty());  // 2 and 3 are parked
  schedule.remove("2");
  schedule.put(task({"3", 3, {}, {}, {}, "db2"}), true);
  CHECK(schedule.ready_size() == 1);
  CHECK(next(schedule, at(0)) == "3");
  schedule.release(*first);
  CHECK(take(schedule, at(0)) == "3");
  CHECK(schedule.size() == 0);
  CHECK(schedule.ready_size() == 0);
}

TEST_SUITE_END();
