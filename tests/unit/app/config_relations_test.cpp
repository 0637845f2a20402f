#include <doctest/doctest.h>

#include "app/config_internal.h"
#include "base/time_text.h"
#include "config_text.h"

namespace lictor::app {

using namespace std::chrono_literals;

TEST_SUITE_BEGIN("app");

TEST_CASE("renewals must fit into the session's TTL") {
  CHECK(error_of(queue_text("\"session_ttl\": \"12s\",\n\"renew_interval\": \"8s\"")) ==
        "lictor.json:3: queues[0]: renew_interval 8s is more than half of session_ttl 12s, so one "
        "lost renewal could end the session; set renew_interval to 6s or less, or session_ttl to "
        "16s or more");
  CHECK(error_of(queue_text("\"renew_interval\": \"8s\"")) ==
        "lictor.json:2: queues[0]: renew_interval 8s is more than half of session_ttl 15s (the "
        "default), so one lost renewal could end the session; set renew_interval to " +
            format_duration(7500ms) + " or less, or session_ttl to 16s or more");
  CHECK(error_of(queue_text("\"renew_interval\": \"7.5s\"")).empty());

  CHECK(error_of(queue_text("\"request_timeout\": \"5s\"")) ==
        "lictor.json:2: queues[0]: request_timeout 5s is not less than renew_interval 5s (the "
        "default), so a renewal could still be in flight when the next is due; set request_timeout "
        "below 5s, or renew_interval above 5s");
  CHECK(error_of(queue_text("\"session_ttl\": \"10s\"")).empty());  // renewed every 3.33s
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
  const auto too_short = [](const std::string& budget, const std::string& lease) {
    return "queues[0]: " + budget + " and the margin of 1s leaves a lease of " + lease +
           ", too short for two tries of request_timeout 3s (the default) to prove it; it must "
           "be " +
           format_duration(8667ms) +
           " or more: raise lock_delay (to 1m at most), or lower kill_grace or request_timeout";
  };
  CHECK(error_of(queue_text("\"lock_delay\": \"5s\",\n\"kill_grace\": \"4s\"")) ==
        "lictor.json:3: " + too_short("lock_delay 5s less kill_grace 4s", "0s"));
  CHECK(error_of(queue_text("\"lock_delay\": \"0s\"")) ==
        "lictor.json:2: " + too_short("lock_delay 0s less kill_grace 5s (the default)", "0s"));
  CHECK(error_of(queue_text("\"lock_delay\": \"12s\"")) ==
        "lictor.json:2: " + too_short("lock_delay 12s less kill_grace 5s (the default)", "6s"));
  CHECK(error_of(queue_text("\"lock_delay\": \"14.666s\"")).find("leaves a lease of 8.666s,") !=
        std::string::npos);
  CHECK(error_of(queue_text("\"lock_delay\": \"14.667s\"")).empty());
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
    const auto config = parse_config("{" + top + queue_text(settings).substr(1), "lictor.json",
                                     request_for(Mode::kDaemon));
    REQUIRE_MESSAGE(config.has_value(), config.error().message);
    return config->hang_timeout;
  };
  CHECK(loaded("") == 5s);
  CHECK(loaded("\"session_ttl\": \"24s\"") == 8s);
  CHECK(loaded("\"session_ttl\": \"10m\"") == 12s);  // half of the lease of 24s
  CHECK(loaded("", "\"hang_timeout\": \"0s\",") == 0s);
  CHECK(loaded("", "\"hang_timeout\": \"20s\",") == 20s);

  const auto refused = [](const std::string& value) {
    return error_of("{\"hang_timeout\": \"" + value + "\"," + queue_text("").substr(1));
  };
  CHECK(refused("24s") ==
        "lictor.json:1: hang_timeout 24s is not less than the lease of queue default (24s: "
        "lock_delay less kill_grace and margin), at whose end its jobs are ended anyway; lower "
        "hang_timeout, or set it to 0s to switch it off");
  CHECK(refused("500ms").find("hang_timeout 500ms is less than 1s, which a daemon") !=
        std::string::npos);
}

TEST_CASE("concurrency and prefetch must fit into max_unacked") {
  CHECK(
      error_of(queue_text("\"concurrency\": 4,\n\"max_unacked\": 5, \"prefetch\": 2")) ==
      "lictor.json:3: queues[0]: max_unacked 5 is less than concurrency 4 and prefetch 2 together, "
      "all of which may end at once; set it to 6 or more");
}

TEST_CASE("a backoff's max is not below its initial, wherever they come from") {
  CHECK(error_of(queue_text("\"backoff\": {\"initial\": \"1m\",\n\"max\": \"10s\"}")) ==
        "lictor.json:3: queues[0].backoff: max 10s is less than initial 1m; set max to 1m or more");
  CHECK(error_of(executor_text(R"({"noop": {}, "backoff": {"initial": "10m"}})")) ==
        "lictor.json:2: queues[0].executors.A.backoff: max 5m is less than initial 10m; set max to "
        "10m or more");
}

TEST_CASE("no two paths overlap") {
  CHECK(error_of(queue_text("\"tasks_prefix\": \"oracleTask/\",\n\"leader_key\": "
                            "\"oracleTask/leader\"")) ==
        "lictor.json:3: queues[0]: leader_key \"oracleTask/leader\" overlaps tasks_prefix "
        "\"oracleTask/\"; give each a place of its own");
  CHECK(error_of(queue_text("\"tasks_prefix\": \"lictor/default/\"")) ==
        "lictor.json:2: queues[0]: control_key \"lictor/default/control\" (the default) overlaps "
        "tasks_prefix \"lictor/default/\"; give each a place of its own");
  CHECK(error_of(queue_text("\"dead_prefix\": \"t/dead/\", \"done_prefix\": \"t/\"")) ==
        "lictor.json:2: queues[0]: dead_prefix \"t/dead/\" overlaps done_prefix \"t/\"; give each "
        "a place of its own");
  CHECK(
      error_of(queue_text("\"control_key\": \"x\", \"leader_key\": \"x\"")) ==
      "lictor.json:2: queues[0]: control_key \"x\" overlaps leader_key \"x\"; give each a place of "
      "its own");

  // A name that begins the same is another place.
  CHECK(error_of(queue_text("\"tasks_prefix\": \"task/\", \"dead_prefix\": \"task.dead/\", "
                            "\"leader_key\": \"task\""))
            .empty());
}

TEST_CASE("no two queues share a name or a path") {
  const auto two = [](const std::string& a, const std::string& b) {
    const std::string rest = "\"executors\": {\"*\": {\"noop\": {}}}}";
    return "{\"queues\": [\n{" + a + ", " + rest + ",\n{" + b + ", " + rest + "]}";
  };
  CHECK(error_of(two("\"name\": \"a\"", "\"name\": \"b\"")).empty());
  CHECK(
      error_of(two("\"name\": \"a\"", "\"name\": \"a\"")) ==
      "lictor.json:3: queues[1]: name \"a\" is also the name of queues[0]; give each queue a name "
      "of its own");
  CHECK(error_of(two("\"name\": \"a\"", "\"name\": \"b\", \"dead_prefix\": \"lictor/a/dead/\"")) ==
        "lictor.json:3: queues[1]: dead_prefix \"lictor/a/dead/\" overlaps dead_prefix "
        "\"lictor/a/dead/\" (the default) of queues[0]; give each a place of its own");
  CHECK(error_of(two("\"name\": \"a\", \"tasks_prefix\": \"lictor/\"", "\"name\": \"b\"")) ==
        "lictor.json:2: queues[0]: control_key \"lictor/a/control\" (the default) overlaps "
        "tasks_prefix \"lictor/\"; give each a place of its own");
}

TEST_SUITE_END();

}  // namespace lictor::app
