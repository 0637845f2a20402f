#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "app/config_internal.h"
#include "config_text.h"
#include "contains.h"

namespace lictor::app {

using namespace std::chrono_literals;
using unit::contains;

TEST_CASE("renewals must fit into the session's TTL") {
  CHECK(error_of(queue_text("\"session_ttl\": \"12s\",\n\"renew_interval\": \"8s\"")) ==
        "lictor.json:3: queues[0]: renew_interval 8s is more than half of session_ttl 12s, so one "
        "lost renewal could end the session; set renew_interval to 6s or less, or session_ttl to "
        "16s or more");
  CHECK(contains(error_of(queue_text(R"("renew_interval": "8s")")),
                 "session_ttl 15s (the default), so one lost"));
  CHECK(error_of(queue_text(R"("renew_interval": "7.5s")")).empty());
  CHECK(error_of(queue_text(R"("request_timeout": "5s")"))
            .starts_with("lictor.json:2: queues[0]: request_timeout 5s is not less than "));
  CHECK(error_of(queue_text(R"("session_ttl": "10s")")).empty());  // renewed every 3.33s
}

TEST_CASE("what all queues at work take of open files is held against the limit") {
  Config config;
  config.queues.resize(2);
  for (QueueConfig& queue : config.queues) queue.options.concurrency = 400;
  CHECK(descriptor_shortage(config, 524'288).empty());
  CHECK(descriptor_shortage(config, 1'024)
            .starts_with("concurrency: 800 tasks at once take up to 2720 open files, and this "
                         "process may have 1024: raise LimitNOFILE="));
}

TEST_CASE("the kill of all jobs and two tries of a proof must fit into the lock-delay") {
  CHECK(error_of(queue_text("\"lock_delay\": \"5s\",\n\"kill_grace\": \"4s\"")) ==
        "lictor.json:3: queues[0]: lock_delay 5s less kill_grace 4s and the margin of 1s leaves a "
        "lease of 0s, too short for two tries of request_timeout 3s (the default) to prove it; it "
        "must be 8.667s or more: raise lock_delay (to 1m at most), or lower kill_grace or "
        "request_timeout");
  using Row = std::pair<std::string, std::string>;
  for (const auto& [delay, lease] : {Row{"0s", "0s"}, Row{"12s", "6s"}, Row{"14.666s", "8.666s"}}) {
    CAPTURE(delay);
    CHECK(contains(error_of(queue_text("\"lock_delay\": \"" + delay + '"')),
                   "leaves a lease of " + lease + ','));
  }
  CHECK(error_of(queue_text(R"("lock_delay": "14.667s")")).empty());
}

TEST_CASE("the change that a relation's error proposes is accepted") {
  for (const char* fixed :
       {"\"lock_delay\": \"15s\"", "\"lock_delay\": \"12s\", \"request_timeout\": \"2s\"",
        "\"lock_delay\": \"14s\", \"kill_grace\": \"4s\"",
        "\"session_ttl\": \"16s\", \"renew_interval\": \"8s\"",
        "\"concurrency\": 4, \"prefetch\": 2, \"max_unacked\": 6"}) {
    CAPTURE(fixed);
    CHECK(error_of(queue_text(fixed)).empty());
  }
  // The margin grows with lock_delay: 2% of more than 50s.
  CHECK(error_of(queue_text("\"lock_delay\": \"60s\", \"kill_grace\": \"50s\"")).empty());
  CHECK_FALSE(error_of(queue_text("\"lock_delay\": \"60s\", \"kill_grace\": \"51s\"")).empty());
}

TEST_CASE("the margin is 2% of the lock-delay, at least a second") {
  CHECK(margin_for(0s) == 1s);
  CHECK(margin_for(50s) == 1s);
  CHECK(margin_for(100s) == 2s);
}

TEST_CASE("hang_timeout is a third of the shortest session_ttl, and less than each lease") {
  const auto loaded = [](const std::string& settings, const std::string& top = "") {
    return parsed("{" + top + queue_text(settings).substr(1)).hang_timeout;
  };
  CHECK(loaded("") == 5s);
  CHECK(loaded("\"session_ttl\": \"24s\"") == 8s);
  CHECK(loaded("\"session_ttl\": \"10m\"") == 12s);  // half of the lease of 24s
  CHECK(loaded("", "\"hang_timeout\": \"0s\",") == 0s);
  CHECK(loaded("", "\"hang_timeout\": \"20s\",") == 20s);

  const auto refused = [](const std::string& value) {
    return error_of("{\"hang_timeout\": \"" + value + "\"," + queue_text("").substr(1));
  };
  CHECK(contains(refused("24s"), "hang_timeout 24s is not less than the lease of queue default"));
  CHECK(contains(refused("500ms"), "hang_timeout 500ms is less than 1s, which a daemon"));
}

TEST_CASE("concurrency and prefetch must fit into max_unacked, and a backoff's max is no less") {
  CHECK(error_of(queue_text("\"concurrency\": 4,\n\"max_unacked\": 5, \"prefetch\": 2"))
            .starts_with("lictor.json:3: queues[0]: max_unacked 5 is less than concurrency 4 and "
                         "prefetch 2 together"));
  CHECK(error_of(queue_text("\"backoff\": {\"initial\": \"1m\",\n\"max\": \"10s\"}"))
            .starts_with("lictor.json:3: queues[0].backoff: max 10s is less than initial 1m"));
  CHECK(error_of(executor_text(R"({"noop": {}, "backoff": {"initial": "10m"}})"))
            .starts_with(
                "lictor.json:2: queues[0].executors.A.backoff: max 5m (not set here) is less "
                "than initial 10m; set max"));
}

TEST_CASE("no two paths overlap, and no two queues share a name") {
  const auto two = [](const std::string& a, const std::string& b) {
    const std::string rest = R"("executors": {"*": {"noop": {}}}})";
    return "{\"queues\": [\n{" + a + ", " + rest + ",\n{" + b + ", " + rest + "]}";
  };
  const std::string a = R"("name": "a")", b = R"("name": "b")";
  const std::pair<std::string, std::string> refused[] = {
      {queue_text("\"tasks_prefix\": \"T/\",\n\"leader_key\": \"T/leader\""),
       R"(3: queues[0]: leader_key "T/leader" overlaps tasks_prefix "T/"; give each a place)"},
      {queue_text(R"("tasks_prefix": "lictor/default/")"),
       R"(2: queues[0]: control_key "lictor/default/control" (the default) overlaps tasks_prefix)"},
      {queue_text(R"("dead_prefix": "t/dead/", "done_prefix": "t/")"),
       R"(2: queues[0]: dead_prefix "t/dead/" overlaps done_prefix "t/")"},
      {queue_text(R"("control_key": "x", "leader_key": "x")"),
       R"(2: queues[0]: control_key "x" overlaps leader_key "x")"},
      {two(a, a), R"(3: queues[1]: name "a" is also the name of queues[0])"},
      {two(a, b + R"(, "dead_prefix": "lictor/a/dead/")"),
       R"(3: queues[1]: dead_prefix "lictor/a/dead/" overlaps dead_prefix "lictor/a/dead/" (the )"
       "default) of queues[0]"},
      {two(a + R"(, "tasks_prefix": "lictor/")", b),
       R"(2: queues[0]: control_key "lictor/a/control" (the default) overlaps tasks_prefix)"}};
  for (const auto& [text, error] : refused) {
    CAPTURE(text);
    CHECK(error_of(text).starts_with("lictor.json:" + error));
  }
  CHECK(error_of(two(a, b)).empty());
  // A name that begins the same is another place.
  CHECK(error_of(queue_text(R"("tasks_prefix": "task/", "dead_prefix": "task.dead/", )"
                            R"("leader_key": "task")"))
            .empty());
}

}  // namespace lictor::app
