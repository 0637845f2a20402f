#include "wire/layout.h"

#include <doctest/doctest.h>

using namespace lictor::wire;

TEST_CASE("everything of a queue lies under its root") {
  const Layout layout = Layout::under("lictor/", "default");
  CHECK(layout.tasks_prefix == "lictor/default/tasks/");
  CHECK(layout.leader_key == "lictor/default/leader");
  CHECK(layout.dead_prefix == "lictor/default/dead/");
  CHECK(layout.done_prefix == "lictor/default/done/");
  CHECK(layout.control_key == "lictor/default/control");
  CHECK(layout.members_prefix == "lictor/default/members/");
  CHECK(layout.schedules_prefix == "lictor/default/schedules/");
  CHECK(layout.schedule_key("nightly") == "lictor/default/schedules/nightly");
}

TEST_CASE("an id is the key's part after the prefix; folders are no tasks") {
  const Layout layout = Layout::under("l/", "q");
  CHECK(layout.task_id("l/q/tasks/42") == "42");
  CHECK(layout.task_id("l/q/tasks/a/b") == "a/b");
  CHECK(layout.task_key("a/b") == "l/q/tasks/a/b");
  CHECK_FALSE(layout.task_id("l/q/tasks/").has_value());
  CHECK_FALSE(layout.task_id("l/q/tasks/folder/").has_value());
  CHECK_FALSE(layout.task_id("l/q/task").has_value());
  CHECK_FALSE(layout.task_id("").has_value());
}

TEST_CASE("odd keys are percent-encoded, segment by segment") {
  CHECK(kv_path("a/b-c_d.e~f") == "/v1/kv/a/b-c_d.e~f");
  CHECK(kv_path("a b+c%d?e#f&g;h") == "/v1/kv/a%20b%2Bc%25d%3Fe%23f%26g%3Bh");
  CHECK(kv_path("\"\\*") == "/v1/kv/%22%5C%2A");
  CHECK(kv_path("\xc3\xa4\t\xff") == "/v1/kv/%C3%A4%09%FF");
  CHECK(kv_path(std::string("\0z", 2)) == "/v1/kv/%00z");
  CHECK(query_value("a/b c") == "a%2Fb%20c");
}
