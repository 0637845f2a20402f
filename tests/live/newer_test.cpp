// Behind a Consul that is newer, or stricter, than 1.8.7: its refusals stop nothing.

#include <algorithm>
#include <thread>

#include "world.h"

namespace lictor::live {
namespace {

// Submits past the proxy that makes Consul stricter.
void submit(const World& world, const std::string& records) {
  const Output written =
      run(command_line(world, {"submit", "--ndjson", records}, world.consul.address()));
  REQUIRE_MESSAGE(written.exit_code == 0, written.out);
}

// A file of `count` records of type "Noop", whose ids are `prefix` and a number.
std::string many_records(const World& world, int count, const std::string& prefix,
                         std::size_t ballast) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += json{{"taskId", prefix + std::to_string(i)},
                  {"taskType", "Noop"},
                  {"taskPara", {{"ballast", std::string(ballast, 'x')}}}}
                 .dump() +
             '\n';
  }
  write_text(world.folder.file("records"), lines);
  return world.folder.file("records");
}

// How many keys are left below the prefix of the tasks; cheaper than the list of their values.
std::size_t keys_left(World& world) {
  const HttpAnswer answer = world.kv.request("GET", "/v1/kv/" + world.task_key("") + "?keys");
  if (answer.status != 200) return 0;
  const json keys = answer.json();
  return static_cast<std::size_t>(std::count_if(keys.begin(), keys.end(), [](const json& key) {
    return !key.get<std::string>().ends_with('/');
  }));
}

bool drained(World& world) {
  return eventually([&] {
    std::this_thread::sleep_for(50ms);  // a list is not for nothing
    return keys_left(world) == 0;
  });
}

void check_names(const std::string& rules, const std::vector<std::string>& ids) {
  World world{shared_consul(), {}, Strictness::parse(rules)};
  auto daemon = world.leading_daemon("a", {{"max_attempts", 1}});
  const auto hand_in = [&](int exit) {
    for (const std::string& id : ids) {
      // By a transaction: there are names that a path of HTTP cannot hold.
      world.kv.set(world.task_key(id),
                   json{{"taskType", "Record"}, {"taskPara", {{"exit", exit}}}}.dump());
    }
  };
  for (std::size_t round = 1; round <= 3; ++round) {
    CAPTURE(round);
    hand_in(65);
    REQUIRE(eventually([&] { return world.all_done(); }));
    CHECK(world.dead() == round * ids.size());
    if (round != 2) continue;
    CHECK(world.newer().counts().names_refused_again == 0);
    CHECK(daemon->stop() == 0);
    // The next leader does not know the existing dead letters.
    daemon = world.daemon("b", {{"max_attempts", 1}});
  }
  hand_in(0);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 3 * ids.size());
  CHECK(world.journal.runs().size() == 4 * ids.size());

  for (const std::string& id : ids) {
    CAPTURE(id);
    for (const char* command : {"show", "retry", "why"})
      ends(lictor(world, {command, "--", id}), 0);
  }
  REQUIRE(eventually([&] { return world.all_done(); }));
  const std::int64_t asked_ns = monotonic_ns();
  CHECK(daemon->stop() == 0);
  CHECK(seconds_between(asked_ns, monotonic_ns()) < 30);
  std::string refused;
  for (const std::string& request : world.newer().refused_names()) refused += request + '\n';
  MESSAGE("refused: " << world.newer().counts().names_refused << " requests, each once:\n"
                      << refused);
}

TEST_CASE("tasks whose names /v1/kv refuses run, fail and are shown as others") {
  const std::vector<std::string> ids{"plain",      "nightly@2026-11-24T09:30:00Z",
                                     "two words",  "tilde~2",
                                     "per%cent",   "colon:comma",
                                     "f\xc3\xbcr", "a..b",
                                     "x/y@z"};
  SUBCASE("by 1.21.5") { check_names("names-1.21.5,slash", ids); }
  SUBCASE("by 1.22") {
    check_names("names-1.22,slash", {"plain", " before", "after ", "a..b", "a/ b", "%2e%2e"});
  }
}

TEST_CASE("a new leader reads a long list of names that /v1/kv refuses, and runs it") {
  constexpr int kTasks = 30'000;
  World world{shared_consul(), {}, Strictness::parse("names-1.21.5")};
  submit(world, many_records(world, kTasks, "nightly@2026-11-24T09:30:00Z~", 8));
  const auto daemon = world.daemon(
      "a", {{"executors", {{"Noop", {{"noop", json::object()}}}}}, {"concurrency", 64}});
  REQUIRE(drained(world));
  CHECK(world.dead() == 0);
  CHECK(world.newer().counts().names_refused_again == 0);
  CHECK(daemon->stop() == 0);
}

TEST_CASE("with few reads and writes a second each task runs once, and leadership is kept") {
  constexpr int kTasks = 300;
  World world{shared_consul(), {}, Strictness::parse("reads=20,writes=20")};
  const auto daemon = world.leading_daemon("a");
  const std::string session = world.leader_session();
  for (int i = 0; i < kTasks; ++i) world.submit(std::to_string(1000 + i), 1000 + i);
  REQUIRE(drained(world));
  CHECK(world.journal.runs().size() == kTasks);
  CHECK(world.journal.tasks() == kTasks);
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
  CHECK(world.dead() == 0);
  CHECK(world.leader_session() == session);
  const NewerConsul::Counts counts = world.newer().counts();
  const std::size_t refused = counts.reads_refused + counts.writes_refused;
  MESSAGE("of " << counts.requests << " requests " << refused << " were refused");
  CHECK(refused * 4 < counts.requests);
  // An idle daemon asks less often than it may.
  CHECK(throughout(5s, [&] { return world.leader_session() == session; }));
  const NewerConsul::Counts later = world.newer().counts();
  CHECK(later.requests - counts.requests < 20);
}

TEST_CASE("where one client may hold 200 connections, a hundred queues leave room for others") {
  constexpr int kQueues = 100;
  const char* rules = "connections=200";
  SUBCASE("and further ones are answered by 429") {}
  SUBCASE("and further ones are reset") { rules = "connections=200,resets"; }
  World world{shared_consul(), {}, Strictness::parse(rules)};
  DaemonSettings settings = world.settings("a", {}, "none");
  for (int i = 2; i <= kQueues; ++i) {
    json more = settings.queue;
    more["name"] = "q" + std::to_string(i);
    settings.more_queues.push_back(more);
  }
  LictorDaemon daemon{settings};
  const auto submit = [&](const std::string& queue) {
    world.kv.put_json(world.root + queue + "/tasks/" + queue, {{"taskType", "Record"}});
  };
  submit("default");
  for (int i = 2; i <= kQueues; ++i) submit("q" + std::to_string(i));
  CHECK(eventually([&] { return world.journal.ended() == kQueues || !daemon.runs(); }));
  CHECK(daemon.runs());
  CHECK(world.journal.tasks() == kQueues);
  Kv other{world.address()};
  CHECK(other.request("GET", "/v1/status/leader").status == 200);
  const NewerConsul::Counts counts = world.newer().counts();
  MESSAGE("the daemon held up to " << counts.most_connections << " connections");
  // 32, the other client's, and some that were closed and are still counted.
  CHECK(counts.most_connections <= 40);
  CHECK(counts.connections_refused == 0);
}

TEST_CASE("a write of a job that no transaction may hold fails that job alone") {
  World world{shared_consul(), {}, Strictness::parse("names-1.22,slash")};
  const auto daemon = world.leading_daemon(
      "a", {{"max_attempts", 2}, {"backoff", {{"initial", "100ms"}}}, {"concurrency", 4}}, "none");
  for (int i = 0; i < 20; ++i) {
    json para{{"sleep", 10}};
    if (i == 7) para["commit"] = json::array({{{"key", "/x"}, {"value", "1"}}}).dump();
    world.submit("t" + std::to_string(100 + i), 1000, para);
  }
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.tasks() == 20);
  CHECK(world.journal.runs().size() <= 21);
  REQUIRE(world.dead() == 1);
  const json letter = world.kv.get_json(world.dead_key("t107"));
  INFO(letter.dump());
  CHECK(contains(letter.value("error", ""), "/x"));
  CHECK(world.newer().counts().names_refused_again == 0);
  CHECK(world.leads(*daemon));
}

TEST_CASE("where each answer is cut after 5 s, a daemon at rest asks little and sees all at once") {
  World world{shared_consul(), {}, Strictness::parse("cut=5s")};
  const auto daemon = world.leading_daemon("a");
  const std::string session = world.leader_session();
  world.submit_done("first", 1000);
  const std::size_t before = world.newer().counts().requests;
  constexpr int kSeconds = 20;
  CHECK(throughout(std::chrono::seconds{kSeconds},
                   [&] { return world.leader_session() == session; }));
  const NewerConsul::Counts counts = world.newer().counts();
  const std::size_t asked = counts.requests - before;
  MESSAGE(asked << " requests in " << kSeconds << " s, " << counts.answers_cut
                << " answers were cut");
  CHECK(counts.answers_cut > 0);
  CHECK(asked < 2 * kSeconds);
  const std::int64_t put_ns = monotonic_ns();
  world.submit_begun("second", 1001);
  CHECK(seconds_between(put_ns, world.journal.run("second")->begin_ns) < 2);
}

TEST_CASE("at 2 MB a second a new leader reads a list of 10 MB, and keeps leadership meanwhile") {
  constexpr int kTasks = 20'000;
  World world{shared_consul(), {}, Strictness::parse("bytes=2000000")};
  submit(world, many_records(world, kTasks, "t", 250));
  const auto daemon = world.leading_daemon(
      "a", {{"executors", {{"Noop", {{"noop", json::object()}}}}}, {"concurrency", 64}});
  const std::string session = world.leader_session();
  REQUIRE(drained(world));
  CHECK(world.leader_session() == session);
  CHECK(world.dead() == 0);
}

}  // namespace
}  // namespace lictor::live
