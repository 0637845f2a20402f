// The commands of producers and operators, against a real Consul and a real daemon.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <future>
#include <set>

#include "base/clock.h"
#include "tcp_proxy.h"
#include "world.h"

namespace lictor::live {
namespace {

json record_of(const std::string& type = "Record") {
  return {{"taskType", type}, {"taskTaken", "false"}, {"mine", 1}};
}

void put_letter(World& world, const std::string& id, const json& record,
                const std::string& reason = "failed", const std::string& at = {}) {
  world.kv.put_json(world.dead_key(id), {{"key", world.task_key(id.substr(0, id.find(',')))},
                                         {"record", record},
                                         {"reason", reason},
                                         {"error", "exit 3"},
                                         {"attempts", 3},
                                         {"at", at.empty() ? "2026-01-02T03:04:05Z" : at},
                                         {"node", "a"}});
}

TEST_CASE("a task in any state can be cancelled, and a running task's job ends") {
  World world;
  const auto daemon = world.daemon("a");
  const pid_t job = world.submit_begun("runs", 1, {{"sleep", "600000"}}).pid;
  world.submit("waits", 2);
  world.kv.put_json(world.task_key("later"),
                    {{"taskType", "Record"}, {"executeAt", "2099-01-01T00:00:00Z"}});

  ends(lictor(world, {"cancel", "waits", "later"}), 0,
       {"cancelled task waits, which was waiting", "cancelled task later, which was scheduled"});
  ends(
      lictor(world, {"cancel", "runs"}), 0,
      {"which was running on " + daemon->node() + "; that daemon stops its job when it sees this"});
  CHECK(eventually([&] { return !is_alive(job); }));
  CHECK(world.waiting() == 0);
  CHECK(world.dead() == 0);
  CHECK(world.journal.order() == std::vector<std::string>{"runs"});
}

TEST_CASE("commands note that the name of a queue that no daemon has ever led may be mistyped") {
  World world;
  for (const char* command : {"pause", "resume", "list"}) {
    ends(lictor(world, {command}), 0, {"no daemon has ever led "});
  }
  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return world.kv.has(world.root + "default/leader"); }));
  CHECK_FALSE(contains(lictor(world, {"list"}).out, "ever led"));
}

TEST_CASE("a C++ executor that this program lacks is refused by run, --dry-run and check alike") {
  World world;
  const std::string file = world.folder.file("cpp.json");
  write_text(file, R"({"state_dir": ")" + world.folder.file("state") +
                       R"(", "queues": [{"executors": {"X": {"cpp": "x"}}}]})");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"run"}, {"run", "--dry-run"}, {"check"}}) {
    std::vector<std::string> arguments{"--config", file};
    arguments.insert(arguments.end(), command.begin(), command.end());
    ends(lictor(world, arguments), 2,
         {file + ":1: queues[0].executors.X.cpp: no C++ executor \"x\" is registered"});
  }
}

TEST_CASE("run --dry-run shows the partitions of a queue and this host's weight") {
  World world;
  const std::string file = world.folder.file("shared.json");
  write_text(file, R"({"state_dir": ")" + world.folder.file("state") +
                       R"(", "queues": [{"partitions": 16, "weight": 2, "concurrency": 4,
                                         "executors": {"X": {"noop": {}}}}]})");
  ends(lictor(world, {"--config", file, "run", "--dry-run"}), 0,
       {"16 partitions, this host's weight 2, 4 tasks at a time on each host",
        "at most 20 connections to one Consul agent"});
}

// "submit --ndjson" with the text of say() as its input, until end().
class PipedSubmission {
 public:
  explicit PipedSubmission(const World& world)
      : lines_(world.folder.file("lines")),
        log_(world.folder.file("submit.log")),
        process_(command_line(world, {"submit", "--ndjson", made(lines_)}, world.address()), log_),
        // Not for a daemon to inherit, or the file would not end.
        out_(std::fopen(lines_.c_str(), "we"), std::fclose) {
    REQUIRE(out_);
  }

  void say(const std::string& text) {
    std::fputs(text.c_str(), out_.get());
    std::fflush(out_.get());
  }
  void end() { out_.reset(); }
  [[nodiscard]] Process& process() { return process_; }
  [[nodiscard]] std::string output() const { return read_text(log_); }

 private:
  static const std::string& made(const std::string& pipe) {
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    return pipe;
  }

  const std::string lines_, log_;
  Process process_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> out_;
};

TEST_CASE("lines that come slowly are written after a pause") {
  World world;
  PipedSubmission submit{world};
  for (const std::string id : {"a", "b"}) {
    submit.say(R"({"taskType": "Record", "taskId": ")" + id + "\"}\n");
    CHECK(eventually([&] { return world.kv.has(world.task_key(id)); }));
    CHECK(eventually([&] { return contains(submit.output(), id + '\n'); }));
  }
}

TEST_CASE("an interrupted submission names the written lines, and leaves none in doubt") {
  World world;
  PipedSubmission submit{world};
  std::string lines;
  for (int i = 0; i < 150; ++i) lines += "{\"taskType\": \"Record\"}\n";
  submit.say(lines + "{\"taskType\": \"Rec");
  REQUIRE(eventually([&] { return world.waiting() >= 126; }));  // two transactions
  submit.process().signal(SIGINT);
  CHECK(submit.process().wait() == 128 + SIGINT);
  CHECK(world.waiting() == 150);
  const std::string output = submit.output();
  CHECK(contains(output, "interrupted after line 150"));
  CHECK(contains(output, "150 tasks written"));
  CHECK(std::count(output.begin(), output.end(), '\n') == 152);  // and an id for each
}

TEST_CASE("a leader that comes while many tasks are written starts them in their order") {
  constexpr std::size_t kBefore = 150;
  constexpr std::size_t kTasks = 400;
  World world;
  PipedSubmission submit{world};
  std::vector<std::string> ids;
  const auto say_lines_up_to = [&](std::size_t end) {
    std::string lines;
    for (; ids.size() < end; ids.push_back(std::to_string(ids.size()))) {
      lines += json{{"taskId", std::to_string(ids.size())}, {"taskType", "Record"}}.dump() + '\n';
    }
    submit.say(lines);
  };
  say_lines_up_to(kBefore);
  REQUIRE(eventually([&] { return world.waiting() >= 126; }));  // two transactions
  const auto daemon = world.leading_daemon("a");
  say_lines_up_to(kTasks);
  submit.end();
  CHECK(submit.process().wait() == 0);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.order() == ids);
}

TEST_CASE("dead letters are listed, shown and purged") {
  World world;
  put_letter(world, "x", record_of("A"));
  put_letter(world, "x,2", record_of("A"));
  put_letter(world, "y", record_of("B"), "owner lost", "2099-01-01T00:00:00Z");
  world.kv.put_json(world.task_key("waits"), record_of());
  const auto ids = [&](std::vector<std::string> arguments) {
    arguments.push_back("--json");
    std::vector<std::string> found;
    const json listed = json::parse(lictor(world, arguments).out);
    for (const json& task : listed.at("tasks")) found.push_back(task.at("id"));
    std::sort(found.begin(), found.end());
    return found;
  };
  CHECK(ids({"dead", "list"}) == std::vector<std::string>{"x", "x,2", "y"});
  CHECK(ids({"dead", "list", "--type", "B"}) == std::vector<std::string>{"y"});
  CHECK(ids({"dead", "list", "--reason", "failed"}) == std::vector<std::string>{"x", "x,2"});
  CHECK(ids({"dead", "list", "--older-than", "1h"}) == std::vector<std::string>{"x", "x,2"});
  CHECK(ids({"dead", "show", "x"}) == std::vector<std::string>{"x", "x,2"});
  CHECK(lictor(world, {"dead", "show", "waits"}).exit_code == 3);

  CHECK(lictor(world, {"dead", "purge", "x"}).exit_code == 0);
  CHECK(lictor(world, {"dead", "purge", "x"}).exit_code == 3);
  CHECK(lictor(world, {"dead", "purge", "--all"}).exit_code == 2);
  CHECK(world.dead() == 2);
  CHECK(lictor(world, {"dead", "purge", "--all", "--older-than", "1h", "--yes"}).exit_code == 0);
  CHECK(ids({"dead", "list"}) == std::vector<std::string>{"y"});
  CHECK(world.waiting() == 1);
}

TEST_CASE("a paused queue starts nothing, and shows who paused it and why") {
  World world;
  const auto daemon = world.leading_daemon("a");
  const std::string control = world.root + "default/control";
  const auto keep = [&] {  // a switch of somebody else
    auto entry = world.kv.get(control);
    json value = entry ? json::parse(entry->value) : json::object();
    value["other"] = 1;
    world.kv.put_json(control, value);
  };
  REQUIRE(eventually([&] { return world.kv.has(control); }));
  keep();
  ends(lictor(world, {"pause", "--reason", "moving house"}), 0, {"is paused by "});
  ends(lictor(world, {"pause", "--reason", "again"}), 0,
       {"is already paused by ", "the reason was not written"});
  const json value = world.kv.get_json(control);
  CHECK(value.at("other") == 1);
  CHECK(value.at("paused").at("reason") == "moving house");
  CHECK(contains(value.at("paused").at("by"), "@"));
  REQUIRE(eventually([&] { return daemon->logged("paused"); }));

  world.submit("1", 1);
  says(lictor(world, {"list"}), ": moving house");
  says(lictor(world, {"show", "1"}), ": moving house");
  says(lictor(world, {"check"}), ": moving house");
  ends(lictor(world, {"why", "1"}), 0, {"the queue is paused by ", ": moving house"});
  CHECK(daemon->logged(": moving house"));
  CHECK(json::parse(lictor(world, {"list", "--json"}).out).at("paused").at("reason") ==
        "moving house");
  CHECK(world.journal.order().empty());

  says(lictor(world, {"resume"}), "resumed");
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK_FALSE(world.kv.get_json(control).contains("paused"));
  CHECK(world.kv.get_json(control).at("resumed").contains("at"));
  ends(lictor(world, {"resume"}), 0, {"is not paused"});
}

TEST_CASE("submit --wait says why a task has not started after a few seconds") {
  World world;
  const auto daemon = world.leading_daemon("a");
  REQUIRE(eventually([&] { return world.kv.has(world.member_key(*daemon)); }));
  CHECK(lictor(world, {"pause", "--reason", "moving"}).exit_code == 0);
  REQUIRE(eventually([&] { return daemon->logged("paused"); }));
  ends(lictor(world, {"submit", "Record", "--id", "x", "--wait", "--wait-timeout", "6s"}), 1,
       {"task x: the queue is paused by ", "; still waiting",
        "x has not ended within --wait-timeout"});
}

TEST_CASE("submit --wait prints the result that the task left") {
  World world;
  TemporaryFolder folder;
  // Without a daemon: the end is written by hand.
  Process submit(command_line(world,
                              {"submit", "Record", "--id", "x", "--wait", "--expire-in", "1h",
                               "--backoff", "5s"},
                              world.address()),
                 folder.file("out"));
  REQUIRE(eventually([&] { return world.kv.has(world.task_key("x")); }));
  const json record = world.kv.get_json(world.task_key("x"));
  CHECK(record.at("backoff") == json{{"initial", "5s"}});
  CHECK(record.contains("expireAt"));
  world.kv.put_json(world.root + "default/done/x",
                    {{"record", record}, {"result", {{"rows", 7}}}, {"attempts", 1}});
  world.kv.remove(world.task_key("x"));
  CHECK(submit.wait() == 0);
  const std::string output = read_text(folder.file("out"));
  CHECK(output.starts_with("x\n"));
  CHECK(contains(output, "no daemon has ever led it"));
  CHECK(output.ends_with("\n{\n  \"rows\": 7\n}\n"));
}

TEST_CASE("a command says that it waits for a Consul that does not answer") {
  World world;
  TcpProxy mute{world.port()};
  mute.cut();
  const Instant before = boot_now();
  const Output list = run(command_line(world, {"list"}, mute.address()));
  CHECK(boot_now() - before < std::chrono::seconds{30});  // 10 s, on a machine that is not loaded
  says(list,
       "Consul at " + mute.address() + " has not answered for 2s; this request ends after 10s");
  says(list, mute.address() + ": no whole reply: no answer within 10s");
  CHECK_FALSE(contains(list.out, "milliseconds"));
  says(list, "nothing was changed");
  CHECK(list.exit_code == 4);
}

TEST_CASE("an interrupted submission names the task that may have been written") {
  World world;
  TcpProxy mute{world.port()};
  mute.cut();
  const std::string log = world.folder.file("submit.log");
  Process submit{command_line(world, {"submit", "Record", "--id", "x"}, mute.address()), log};
  REQUIRE(eventually([&] { return contains(read_text(log), "this request ends after"); }));
  submit.signal(SIGINT);
  CHECK(submit.wait() == 128 + SIGINT);
  CHECK(contains(read_text(log), "interrupted: unknown whether task x was written\n"));
}

TEST_CASE("an interrupted cancellation leaves no mark in a queue without history") {
  World world;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(signal);
    world.kv.put_json(world.task_key("x"), record_of());
    const std::string log = world.folder.file(std::to_string(signal));
    Process cancel{command_line(world, {"cancel", "x"}, world.address()), log};
    REQUIRE(eventually([&] { return contains(read_text(log), "cancelled"); }));
    cancel.signal(signal);
    CHECK(cancel.wait() == 0);
    CHECK_FALSE(world.kv.has(world.root + "default/done/x"));
  }
}

TEST_CASE("--json prints a document for a hand-over, and for a task whose wait is cut short") {
  World world;
  const auto document = [](const Output& output) {  // without what goes to standard error
    const std::size_t begin = output.out.find('{');
    return json::parse(output.out.substr(begin, output.out.rfind('}') + 1 - begin));
  };
  const Output waited =
      lictor(world, {"submit", "Record", "--wait", "--wait-timeout", "10ms", "--json"});
  CHECK(waited.exit_code == 1);
  const json task = document(waited);
  CHECK(task.at("state") == "waiting");
  CHECK(world.kv.has(world.task_key(task.at("id"))));

  const auto daemon = world.leading_daemon("a");
  const json asked = document(lictor(world, {"leader", "--step-down", "--no-wait", "--json"}));
  CHECK(asked.at("asked") == daemon->node());
  const auto other = world.leading_daemon("b");
  // Now back to `daemon`, and the command waits.
  const json done = document(lictor(world, {"leader", "--step-down", "--json"}));
  CHECK(done.at("stepped_down") == other->node());
  CHECK(done.at("leader") == daemon->node());
}

TEST_CASE("an error names a variable that overrides the configuration only if it is set") {
  World world;
  const std::string config = world.folder.file("client.json");
  write_text(config, json{{"consul", {{"addresses", {world.address().substr(7)}}}}}.dump());
  const std::vector<std::string> line{LICTOR_COMMAND, "--config", config,
                                      "--root",       world.root, "list"};
  CHECK_FALSE(contains(ends(run(line), 0), "CONSUL_HTTP_ADDR"));
  CHECK_FALSE(contains(run(line, {{"CONSUL_HTTP_ADDR", world.address()}}).out, "CONSUL_HTTP_ADDR"));
  says(run(line, {{"CONSUL_HTTP_ADDR", "http://127.0.0.1:1"}}), "CONSUL_HTTP_ADDR");
}

TEST_CASE("a rewrite of a schedule keeps the flags of its key") {
  World world;
  const std::string key = world.root + "default/schedules/s";
  const std::string flags = "18446744073709551615";
  REQUIRE(world.kv
              .request("PUT", "/v1/kv/" + key + "?flags=" + flags,
                       R"({"every": "1h", "task": {"taskType": "T"}})")
              .body == "true");
  for (const std::vector<std::string>& change :
       {std::vector<std::string>{"schedule", "pause", "s"},
        {"schedule", "resume", "s"},
        {"schedule", "run", "s"},
        {"schedule", "add", "s", "--every", "1h", "--type", "T", "--replace"}}) {
    CAPTURE(change.at(1));
    const std::uint64_t before = world.kv.get(key).value().modify_index;
    ends(lictor(world, change), 0);
    CHECK(world.kv.get(key).value().modify_index > before);
    CHECK(contains(world.kv.request("GET", "/v1/kv/" + key).body, "\"Flags\":" + flags + ','));
  }
}

TEST_CASE("each run of a schedule makes a task with an id of its own, also many at once") {
  World world;
  const std::string key = world.root + "default/schedules/s";
  world.kv.put(key, R"({"every": "2s", "mine": 1.50, "task": {"taskType": "T"}})");
  constexpr std::size_t kRuns = 6;
  const auto line = command_line(world, {"schedule", "run", "s"}, world.address());
  std::vector<std::future<Output>> runs;
  for (std::size_t i = 0; i < kRuns; ++i) {
    runs.push_back(std::async(std::launch::async, [&] { return run(line); }));
  }
  std::set<std::string> ids;
  const auto take = [&](const Output& ran) {
    CAPTURE(ran.out);
    REQUIRE(ran.exit_code == 0);
    const std::string id = ran.out.substr(0, ran.out.find('\n'));
    CHECK(world.kv.has(world.task_key(id)));
    CHECK(std::string{"13579"}.find(id.at(id.size() - 2)) != std::string::npos);
    return ids.insert(id).second;
  };
  for (auto& ran : runs) CHECK(take(ran.get()));
  // The last task is done, and its key is gone.
  world.kv.remove(world.task_key(*ids.rbegin()));
  CHECK(take(run(line)));
  const std::string record = world.kv.get(key).value().value;
  CHECK(record.starts_with(R"({"every": "2s", "mine": 1.50, "task": {"taskType": "T"})"));
  CHECK(json::parse(record)["lastTask"] == *ids.rbegin());

  world.kv.put(key, R"({"every": "1s", "task": {"taskType": "T"}})");
  ends(run(line), 1, {"ticks each second"});
}

}  // namespace
}  // namespace lictor::live
