// The promises of the three kinds of delivery when the owner is killed at each step between the
// claim of a task and its finish.

#include "tcp_proxy.h"
#include "world.h"

namespace lictor::live {
namespace {

using Before = TcpProxy::Before;

enum class Step { kClaimSent, kClaimLanded, kRunning, kFinishSent, kFinishLanded };

struct Row {
  Step step;
  const char* name;
  std::size_t runs_at_least_once;  ///< also with effects
  std::size_t runs_at_most_once;
  bool dead_at_most_once;
};

constexpr Row kRows[] = {
    {Step::kClaimSent, "the claim was sent, and is lost", 1, 1, false},
    {Step::kClaimLanded, "the claim landed, its reply is lost", 1, 0, true},
    {Step::kRunning, "the job is running", 2, 1, true},
    {Step::kFinishSent, "the job has ended, its finish is lost", 2, 1, true},
    {Step::kFinishLanded, "the finish landed, its reply is lost", 1, 1, false},
};

// A daemon behind a network of its own, which runs one task and is killed at `step`.
class Case {
 public:
  Case(Step step, const json& queue, const json& para) : network_{world.port()} {
    DaemonSettings settings = world.settings("a", queue);
    settings.consul = {network_.address()};
    daemon_ = std::make_unique<LictorDaemon>(settings);
    REQUIRE(eventually([&] { return world.leads(*daemon_); }));

    const std::string key = R"(","Key":")" + world.task_key("1") + '"';
    if (step == Step::kClaimSent) network_.cut_at("cas" + key, Before::kRequest);
    if (step == Step::kClaimLanded) network_.cut_at("cas" + key, Before::kReply);
    if (step == Step::kFinishSent) network_.cut_at("delete-cas" + key, Before::kRequest);
    if (step == Step::kFinishLanded) network_.cut_at("delete-cas" + key, Before::kReply);
    json job{{"sleep", step == Step::kRunning ? 2000 : 10}};
    if (para.is_object()) job.merge_patch(para);
    world.submit("1", 1000, job);
    if (step == Step::kRunning) {
      world.begun("1");
    } else {
      REQUIRE(eventually([&] { return network_.is_cut(); }));
      if (step == Step::kClaimLanded) {
        REQUIRE(eventually(
            [&] { return world.kv.get_json(world.task_key("1"))["taskTaken"] == "true"; }));
      }
      if (step == Step::kFinishLanded) {
        REQUIRE(eventually([&] { return !world.kv.has(world.task_key("1")); }));
      }
    }
    daemon_->kill();
  }
  // Starts the daemon again, and waits for the end of its task.
  void go_on() {
    network_.heal();
    daemon_->start();
    REQUIRE(eventually([&] { return world.all_done(); }));
    REQUIRE(eventually([&] { return world.leads(*daemon_); }));
    // A second task shows that nothing of the first is still to come.
    world.submit("2", 2000);
    REQUIRE(eventually([&] { return world.journal.ended() != 0 && world.all_done(); }));
  }

  World world;

 private:
  TcpProxy network_;
  std::unique_ptr<LictorDaemon> daemon_;
};

TEST_CASE("at least once: whenever its owner is killed, a task runs to its end") {
  for (const Row& row : kRows) {
    CAPTURE(std::string{row.name});
    Case the{row.step, {}, {}};
    the.go_on();
    CHECK(the.world.journal.runs_of("1").size() == row.runs_at_least_once);
    CHECK(the.world.journal.runs_of("1").back().ended);
    CHECK(the.world.dead() == 0);
    CHECK(the.world.journal.overlaps() == std::vector<std::string>{});
    CHECK(the.world.journal.falling_tokens() == std::vector<std::string>{});
  }
}

TEST_CASE("at most once: whenever its owner is killed, a task runs once or is a dead letter") {
  for (const Row& row : kRows) {
    CAPTURE(std::string{row.name});
    Case the{row.step, {{"delivery", "at_most_once"}}, {}};
    the.go_on();
    CHECK(the.world.journal.runs_of("1").size() == row.runs_at_most_once);
    CHECK(the.world.dead() == (row.dead_at_most_once ? 1 : 0));
    if (row.dead_at_most_once) {
      CHECK(the.world.kv.get_json(the.world.dead_key("1"))["reason"] == "owner lost");
    }
  }
}

TEST_CASE("effectively once: whenever its owner is killed, a task's writes are written once") {
  for (const Row& row : kRows) {
    CAPTURE(std::string{row.name});
    const std::string written = "effects/" + std::to_string(monotonic_ns());
    const json writes = json::array({{{"key", written}, {"value", "done"}}});
    Case the{row.step, {}, {{"commit", writes.dump()}}};
    CHECK(the.world.kv.has(written) == (row.step == Step::kFinishLanded));
    the.go_on();
    CHECK(the.world.journal.runs_of("1").size() == row.runs_at_least_once);
    const KvEntry entry = the.world.kv.get(written).value();
    CHECK(entry.value == "done");
    CHECK(entry.create_index == entry.modify_index);  // never written again
    CHECK(the.world.dead() == 0);
    the.world.kv.remove(written);
  }
}

// Consul's delete-cas alone succeeds on a key that is gone.
TEST_CASE("of many jobs that delete one key by its ModifyIndex, one succeeds") {
  World world;
  const std::string ticket = world.root + "app/ticket";
  const std::uint64_t index = world.kv.set(ticket, "take me");
  const auto daemon = world.daemon("a", {{"max_attempts", 1}, {"concurrency", 4}}, "none");
  const json taking{{"key", ticket}, {"delete", true}, {"cas", index}};
  for (int i = 0; i < 4; ++i) {
    const json won{{"key", world.root + "app/winner/" + std::to_string(i)}, {"value", "me"}};
    world.submit("t" + std::to_string(i), 1000, {{"commit", json::array({taking, won}).dump()}});
  }
  const json absent{{"key", world.root + "app/never"}, {"delete", true}, {"cas", 0}};
  world.submit_done("absent", 1000, {{"commit", json::array({absent}).dump()}});
  CHECK(world.kv.list(world.root + "app/winner/").size() == 1);
  CHECK(world.dead() == 3);
  CHECK_FALSE(world.kv.has(world.dead_key("absent")));
}

}  // namespace
}  // namespace lictor::live
