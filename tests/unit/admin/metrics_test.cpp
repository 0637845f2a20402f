#include "admin/metrics.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "admin/events.h"
#include "skip.h"
#include "temporary_folder.h"
#include "unit/admin/fake_exchange.h"
#include "unit/consul_replies.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;
using core::Fact;

// The value of the line of `text` that begins with `series`; empty: there is none.
std::string value(const std::string& text, const std::string& series) {
  const std::size_t at = text.find("\n" + series + " ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + series.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

Fact fact(Fact::Kind kind, const std::string& type, std::uint32_t attempt = 1) {
  auto task = std::make_shared<core::Task>();
  task->type = type;
  return {kind, "lictor/q/tasks/a", {}, 30ms, std::move(task), attempt, 7};
}

Status leading() {
  Status status{.version = "1.2.3"};
  QueueStatus queue{.name = "q",
                    .role = QueueStatus::Role::kLeading,
                    .gauges = {{"lease_left", 9}, {"oldest_due", 1.5}},
                    .states = {{"ready", 3}, {"blocked", 1}}};
  status.queues = {queue};
  return status;
}

TEST_CASE("facts are counted by queue, type and outcome") {
  Metrics metrics;
  metrics.set_types("q", {"Mail"});
  for (int i = 0; i < 3; ++i) metrics.on_fact("q", fact(Fact::Kind::kStarted, "Mail"));
  metrics.on_fact("q", fact(Fact::Kind::kDone, "Mail"));
  metrics.on_fact("q", fact(Fact::Kind::kFailed, "Mail"));
  metrics.on_fact("q", fact(Fact::Kind::kDead, "Mail"));
  metrics.on_fact("q", fact(Fact::Kind::kDead, "Mail", 0));  // expired: never begun
  for (const auto kind : {Fact::Kind::kDead, Fact::Kind::kWithdrawn}) {
    Fact between = fact(kind, "Mail");  // its last attempt has ended before
    between.token = 0;
    metrics.on_fact("q", between);
  }
  const std::string text = metrics.text(leading());
  CHECK(value(text, R"(lictor_attempts_started_total{queue="q",type="Mail"})") == "3");
  const auto count = [&](const std::string& of, const std::string& outcome) {
    return value(text,
                 "lictor_" + of + R"(_total{outcome=")" + outcome + R"(",queue="q",type="Mail"})");
  };
  CHECK(count("attempts", "done") == "1");
  CHECK(count("attempts", "failed") == "2");
  CHECK(count("tasks", "done") == "1");
  CHECK(count("attempts", "withdrawn") == "0");
  CHECK(count("tasks", "dead") == "3");
  CHECK(count("tasks", "withdrawn") == "1");
  CHECK(value(text, R"(lictor_job_duration_seconds_count{queue="q",type="Mail"})") == "1");
  CHECK(value(text, R"(lictor_pickup_seconds_count{queue="q",type="Mail"})") == "3");
}

// increase() of a series that begins with 1 is 0: an alert on the first dead letter stayed silent.
TEST_CASE("each outcome of each configured type is there at 0 before anything happened") {
  Metrics metrics;
  metrics.set_types("q", {"Mail"});
  metrics.set_types("any", {});  // its configuration has "*" alone
  const std::string text = metrics.text(leading());
  const auto is_zero = [&](const std::string& series) {
    CAPTURE(series);
    CHECK(value(text, series) == "0");
  };
  for (const std::string of : {R"(queue="q",type="Mail"})", R"(queue="q",type="other"})",
                               R"(queue="any",type="other"})"}) {
    is_zero("lictor_attempts_started_total{" + of);
    for (const std::string outcome : {"done", "dead", "withdrawn"}) {
      is_zero(R"(lictor_tasks_total{outcome=")" + outcome + R"(",)" + of);
    }
    for (const std::string outcome :
         {"done", "failed", "lost", "not_started", "given_back", "withdrawn"}) {
      is_zero(R"(lictor_attempts_total{outcome=")" + outcome + R"(",)" + of);
    }
  }
  for (const std::string outcome : {"made", "late", "missed", "overlap"}) {
    is_zero(R"(lictor_ticks_total{outcome=")" + outcome + R"(",queue="q"})");
  }
}

TEST_CASE("every fact is counted under an outcome that is there from the start") {
  Metrics metrics;
  metrics.set_types("q", {"Mail"});
  const auto series = [&] { return count_of("\nlictor_", metrics.text(leading())); };
  const std::size_t before = series();
  for (int kind = 0; kind <= static_cast<int>(Fact::Kind::kScheduleTaken); ++kind) {
    for (const std::uint32_t attempt : {0U, 1U}) {
      metrics.on_fact("q", fact(static_cast<Fact::Kind>(kind), "Mail", attempt));
      metrics.on_fact("q", fact(static_cast<Fact::Kind>(kind), "Invented", attempt));
    }
  }
  CHECK(series() == before);
}

TEST_CASE("types that producers invent make no series of their own") {
  Metrics metrics;
  metrics.set_types("q", {"Mail"});
  for (int i = 0; i < 1000; ++i) {
    metrics.on_fact("q", fact(Fact::Kind::kStarted, "Type" + std::to_string(i)));
  }
  const std::string text = metrics.text(leading());
  CHECK(value(text, R"(lictor_attempts_started_total{queue="q",type="other"})") == "1000");
  CHECK_FALSE(contains(text, "Type1"));
}

TEST_CASE("a leader shows its queue's depth, a follower does not") {
  const Metrics metrics;
  Status status = leading();
  std::string text = metrics.text(status);
  CHECK(value(text, R"(lictor_leading{queue="q"})") == "1");
  CHECK(value(text, R"(lictor_tasks{queue="q",state="ready"})") == "3");
  CHECK(value(text, R"(lictor_lease_remaining_seconds{queue="q"})") == "9");
  CHECK(value(text, R"(lictor_oldest_due_seconds{queue="q"})") == "1.5");
  status.queues[0].role = QueueStatus::Role::kFollowing;
  status.queues[0].states.clear();
  text = metrics.text(status);
  CHECK(value(text, R"(lictor_leading{queue="q"})") == "0");
  for (const char* name : {"lictor_tasks{", "lictor_paused{", "lictor_oldest_due_seconds{"}) {
    CHECK_FALSE(contains(text, name));
  }
}

TEST_CASE("promtool finds nothing wrong with the names and types") {
  if (std::system("command -v promtool >/dev/null") != 0) {
    return tell_skipped("no promtool (Debian's package prometheus)");
  }
  Metrics metrics;
  metrics.set_types("q", {"Mail", "a \"quoted\"\\\n type"});
  for (const auto kind : {Fact::Kind::kLeading, Fact::Kind::kLeaseLost, Fact::Kind::kStarted,
                          Fact::Kind::kDone, Fact::Kind::kLost, Fact::Kind::kWithdrawn}) {
    metrics.on_fact("q", fact(kind, "Mail"));
  }
  metrics.on_commit("q", 12);
  metrics.on_reply("q", "transaction", unit::reply(200), 3ms);
  unit::TemporaryFolder folder;
  const std::string file = folder / "metrics";
  std::ofstream{file} << metrics.text(leading());
  const std::string command = "promtool check metrics <'" + file + "' >'" + file + ".out' 2>&1";
  const bool clean = std::system(command.c_str()) == 0;
  std::ifstream out{file + ".out"};
  INFO(std::string(std::istreambuf_iterator<char>{out}, {}));
  CHECK(clean);
}

Status status_of(QueueStatus::Role role, double oldest_due, double discovered) {
  QueueStatus queue{.name = "q",
                    .role = role,
                    .gauges = {{"oldest_due", oldest_due}, {"discovered", discovered}}};
  Status status{.queues = {queue}};
  return status;
}

TEST_CASE("lictor_takeover_seconds has the time that the lock was free, once for each takeover") {
  Metrics metrics;
  core::Fact leading{core::Fact::Kind::kLeading, {}, {}, 40ms};
  metrics.on_fact("q", leading);
  leading.took = 20s;
  metrics.on_fact("q", leading);
  const core::Fact lock_delay{core::Fact::Kind::kLockDelay, {}, {}, 7s};
  metrics.on_fact("q", lock_delay);
  const std::string text = metrics.text(status_of(QueueStatus::Role::kLeading, 0, 0));
  CHECK(value(text, R"(lictor_takeover_seconds_count{queue="q"})") == "2");
  CHECK(value(text, R"(lictor_takeover_seconds_sum{queue="q"})") == "20.04");
  CHECK(value(text, R"(lictor_takeover_seconds_bucket{queue="q",le="0.05"})") == "1");
  CHECK(value(text, R"(lictor_takeover_seconds_bucket{queue="q",le="30"})") == "2");
  CHECK(value(text, R"(lictor_leader_changes_total{queue="q"})") == "2");
}

TEST_CASE("partitions are counted, also those of this daemon, with their gains and losses") {
  Metrics metrics;
  Status status = status_of(QueueStatus::Role::kLeading, 0, 0);
  status.queues[0].partitions = 16;
  status.queues[0].leads = {0, 3, 7};
  using Kind = core::Fact::Kind;
  for (const auto kind : {Kind::kLeading, Kind::kLeading, Kind::kSteppedDown, Kind::kLeaseLost,
                          Kind::kLeading, Kind::kSteppedDown, Kind::kSteppedDown}) {
    metrics.on_fact("q", core::Fact{kind});
  }
  std::string text = metrics.text(status);
  CHECK(value(text, R"(lictor_leading{queue="q"})") == "1");
  CHECK(value(text, R"(lictor_partitions{queue="q"})") == "16");
  CHECK(value(text, R"(lictor_partitions_led{queue="q"})") == "3");
  CHECK(value(text, R"(lictor_leader_changes_total{queue="q"})") == "3");
  CHECK(value(text, R"(lictor_leases_lost_total{queue="q"})") == "1");
  CHECK(value(text, R"(lictor_partitions_released_total{queue="q"})") == "3");
  status = status_of(QueueStatus::Role::kFollowing, 0, 0);
  status.queues[0].partitions = 0;  // not known yet
  text = metrics.text(status);
  CHECK(value(text, R"(lictor_partitions{queue="q"})").empty());
  CHECK(value(text, R"(lictor_partitions_led{queue="q"})") == "0");
}

TEST_CASE("ticks are counted by their outcome, schedules by state") {
  Metrics metrics;
  core::Fact fact{core::Fact::Kind::kTickMade, "l/q/tasks/s@x"};
  fact.late = 20ms;
  metrics.on_fact("q", fact);
  fact.late = 6s;
  metrics.on_fact("q", fact);
  core::Fact missed{core::Fact::Kind::kTicksMissed, "l/q/schedules/s"};
  missed.count = 7;
  metrics.on_fact("q", missed);
  missed.kind = core::Fact::Kind::kTicksOverlap;
  metrics.on_fact("q", missed);
  auto status = status_of(QueueStatus::Role::kLeading, 0, 0);
  status.queues[0].schedules = {{"active", 3}, {"bad", 1}};
  const std::string text = metrics.text(status);
  CHECK(value(text, R"(lictor_ticks_total{outcome="made",queue="q"})") == "1");
  CHECK(value(text, R"(lictor_ticks_total{outcome="late",queue="q"})") == "1");
  CHECK(value(text, R"(lictor_ticks_total{outcome="missed",queue="q"})") == "7");
  CHECK(value(text, R"(lictor_ticks_total{outcome="overlap",queue="q"})") == "7");
  CHECK(value(text, R"(lictor_schedules{queue="q",state="active"})") == "3");
  CHECK(value(text, R"(lictor_schedules{queue="q",state="bad"})") == "1");
}

TEST_CASE("lictor_tasks_discovered_total is a counter that every daemon shows") {
  const Metrics metrics;
  for (const auto role : {QueueStatus::Role::kLeading, QueueStatus::Role::kFollowing}) {
    const std::string text = metrics.text(status_of(role, 0, 100'042));
    CHECK(value(text, R"(lictor_tasks_discovered_total{queue="q"})") == "100042");
    CHECK(contains(text, "# TYPE lictor_tasks_discovered_total counter"));
  }
}

}  // namespace

}  // namespace lictor::admin
