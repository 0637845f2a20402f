// The commands of producers and operators, against a real Consul and a real daemon.

#include "commands.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/limits.h"
#include "tcp_proxy.h"

namespace lictor::live {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("live");

json record_of(const std::string& type = "Record") {
  return {{"taskType", type}, {"taskTaken", "false"}, {"mine", 1}};
}

void put_letter(World& world, const std::string& id, const json& record,
                const std::string& reason = "failed", const std::string& at = {}) {
  world.kv.put_json(world.dead_key(id), {{"record", record},
                                         {"reason", reason},
                                         {"error", "exit 3"},
                                         {"attempts", 3},
                                         {"at", at.empty() ? "2026-01-02T03:04:05Z" : at},
                                         {"node", "a"}});
}

TEST_CASE("a task is cancelled in whatever state it is, and a running one's job ends") {
  World world;
  const auto daemon = world.daemon("a");
  world.submit("runs", 1, {{"sleep", "600000"}});
  REQUIRE(eventually([&] { return world.journal.run("runs").has_value(); }));
  const auto job = world.journal.run("runs")->pid;
  world.submit("waits", 2);
  world.kv.put_json(world.task_key("later"),
                    {{"taskType", "Record"}, {"executeAt", "2099-01-01T00:00:00Z"}});

  const Output waits = lictor(world, {"cancel", "waits", "later"});
  CHECK(waits.exit_code == 0);
  says(waits, "cancelled task waits, which was waiting");
  says(waits, "cancelled task later, which was scheduled");
  const Output runs = lictor(world, {"cancel", "runs"});
  CHECK(runs.exit_code == 0);
  says(runs,
       "which was running on " + daemon->node() + "; that daemon stops its job when it sees this");
  CHECK(eventually([&] { return !is_alive(job); }));
  CHECK(world.waiting() == 0);
  CHECK(world.dead() == 0);
  CHECK(world.journal.order() == std::vector<std::string>{"runs"});
}

TEST_CASE("what neither waits nor runs cannot be cancelled, and is said to be dead or done") {
  World world;
  put_letter(world, "dead", record_of());
  world.kv.put_json(world.root + "default/done/done", {{"attempts", 1}});
  const Output output = lictor(world, {"cancel", "dead", "done", "unknown"});
  CHECK(output.exit_code == 3);
  says(output, "it is dead (failed)");
  says(output, "it is done");
  CHECK(world.dead() == 1);
}

TEST_CASE("a queue that no daemon has ever led may be one that was mistyped") {
  World world;
  for (const char* command : {"pause", "resume", "list"}) {
    const Output output = lictor(world, {command});
    CHECK(output.exit_code == 0);
    says(output, "no daemon has ever led ");
  }
  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return world.kv.has(world.root + "default/leader"); }));
  CHECK(lictor(world, {"list"}).out.find("ever led") == std::string::npos);
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
    const Output output = lictor(world, arguments);
    CHECK(output.exit_code == 2);
    says(output, R"(executor "X": no C++ executor "x" is registered in this program)");
  }
}

TEST_CASE("run --dry-run shows the partitions of a queue and this host's weight") {
  World world;
  const std::string file = world.folder.file("shared.json");
  write_text(file, R"({"state_dir": ")" + world.folder.file("state") +
                       R"(", "queues": [{"partitions": 16, "weight": 2, "concurrency": 4,
                                         "executors": {"X": {"noop": {}}}}]})");
  const Output output = lictor(world, {"--config", file, "run", "--dry-run"});
  CHECK(output.exit_code == 0);
  says(output, "16 partitions, this host's weight 2, 4 tasks at a time on each host");
  says(output, "at most 20 connections to one Consul agent");
}

TEST_CASE("submit --wait says that nobody leads the queue, also to a log") {
  World world;
  const Output output =
      lictor(world, {"submit", "Record", "--id", "x", "--wait", "--wait-timeout", "1s"});
  CHECK(output.exit_code != 0);
  says(output, "no daemon has ever led it");
  says(output, "x has not ended within --wait-timeout");
  CHECK(world.waiting() == 1);
}

// Tasks "0", "1", ... of the type, a line each; the path of the file.
std::string many_lines(const World& world, int count, const std::string& type = "Record") {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += json{{"taskId", std::to_string(i)}, {"taskType", type}}.dump() + '\n';
  }
  write_text(world.folder.file("tasks.ndjson"), lines);
  return world.folder.file("tasks.ndjson");
}

TEST_CASE("many tasks are written in the order of their lines, or in any, and none twice") {
  constexpr int kTasks = 1000;
  World world;
  std::vector<std::string> command{"submit", "--ndjson", many_lines(world, kTasks, "Sleep")};
  const json sleeps{{"executors", {{"Sleep", {{"noop", {{"sleep", "1h"}}}}}}}};
  std::unique_ptr<LictorDaemon> daemon;
  bool in_order = false;
  SUBCASE("to whoever leads, in their order") {
    daemon = world.daemon("a", sleeps);
    REQUIRE(eventually([&] { return world.leads(*daemon); }));
    in_order = true;
  }
  SUBCASE("to whoever leads, in any order") {
    daemon = world.daemon("a", sleeps);
    REQUIRE(eventually([&] { return world.leads(*daemon); }));
    command.emplace_back("--any-order");
  }
  SUBCASE("while nobody leads") {}
  SUBCASE("while the queue is paused") {
    daemon = world.daemon("a", sleeps);
    REQUIRE(eventually([&] { return world.leads(*daemon); }));
    REQUIRE(lictor(world, {"pause"}).exit_code == 0);
  }
  const json mine = {{"taskType", "Sleep"}, {"executeAt", 99'999'999'999}};
  world.kv.put_json(world.task_key("700"), mine);
  const Output output = lictor(world, command);
  CHECK(output.exit_code == 1);
  says(output, "line 701: taskId: \"700\" exists already");
  says(output, "999 tasks written, 1 refused");
  std::uint64_t before = 0;
  for (int i = 0; i < kTasks; ++i) {
    const auto task = world.kv.get(world.task_key(std::to_string(i)));
    REQUIRE(task);
    if (i == 700) {
      CHECK(task->value == mine.dump());
    } else if (in_order) {
      CHECK(task->create_index >= before);
      before = task->create_index;
    }
  }
}

TEST_CASE("tasks without a time start in the order of their lines, whoever was there to see") {
  World world;
  std::string lines;
  for (int i = 0; i < 5'000; ++i)
    lines += R"({"taskType": "Record"})"
             "\n";
  write_text(world.folder.file("tasks.ndjson"), lines);
  std::vector<std::string> command{"submit", "--ndjson", world.folder.file("tasks.ndjson")};
  SUBCASE("as given") {}
  SUBCASE("in any order") { command.emplace_back("--any-order"); }
  std::istringstream printed{lictor(world, command).out};
  std::vector<std::string> ids;
  for (std::string id; std::getline(printed, id) && ids.size() < 5'000;) ids.push_back(id);
  REQUIRE(ids.size() == 5'000);
  const json list = json::parse(lictor(world, {"list", "--json"}).out);
  std::vector<std::string> listed;
  for (const json& task : list.at("tasks")) {
    listed.push_back(task.at("id"));
  }
  REQUIRE(listed.size() == ids.size());
  const auto differ = std::mismatch(listed.begin(), listed.end(), ids.begin());
  CHECK_MESSAGE((listed == ids), "listed " << *differ.first << ", printed " << *differ.second);
}

// "submit --ndjson" of what say() says, until end().
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

TEST_CASE("what comes slowly is written when nothing more comes for a while") {
  World world;
  PipedSubmission submit{world};
  for (const std::string id : {"a", "b"}) {
    submit.say(R"({"taskType": "Record", "taskId": ")" + id + "\"}\n");
    CHECK(eventually([&] { return world.kv.has(world.task_key(id)); }));
    CHECK(eventually([&] { return submit.output().find(id + '\n') != std::string::npos; }));
  }
}

TEST_CASE("a submission that is interrupted says what is written, and nothing of it is in doubt") {
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
  CHECK(output.find("interrupted after line 150") != std::string::npos);
  CHECK(output.find("150 tasks written") != std::string::npos);
  CHECK(std::count(output.begin(), output.end(), '\n') == 152);  // and an id for each
}

TEST_CASE("a leader who comes while many tasks are written starts them in their order") {
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

TEST_CASE("of many tasks that are written while replies are lost, each is told, or in doubt") {
  constexpr int kTasks = 30'000;
  World world;
  TcpProxy network{world.port()};
  const std::string log = world.folder.file("submit.log");
  Process submit{
      command_line(world, {"submit", "--ndjson", many_lines(world, kTasks)}, network.address()),
      log};
  // Not the first: Consul may have refused it for its number of operations.
  REQUIRE(eventually([&] { return world.kv.has(world.task_key("0")); }));
  network.lose_replies();
  REQUIRE(eventually([&] { return network.lost_replies() > 0; }));
  for (int i = 0; i < 3 && submit.runs(); ++i) {
    const std::size_t resets = network.resets();
    network.heal();
    REQUIRE(eventually([&] { return network.resets() > resets; }));
    const std::size_t lost = network.lost_replies();
    network.lose_replies();
    REQUIRE(eventually([&] { return network.lost_replies() > lost || !submit.runs(); }));
  }
  network.heal();
  const std::optional<int> exit_code = submit.wait();
  const std::string output = read_text(log);
  CAPTURE(output);
  CHECK(output.find("exists") == std::string::npos);
  const std::size_t words = output.rfind(" tasks written\n");
  REQUIRE(words != std::string::npos);
  const std::size_t begin = output.find_last_of('\n', words) + 1;  // npos + 1 is 0
  const std::size_t told = std::stoul(output.substr(begin, words - begin));
  CHECK(world.waiting() >= told);
  if (exit_code == 0) {
    CHECK(told == kTasks);
  } else {  // a transaction of two that was refused, since it came first
    CHECK(exit_code == 4);
    CHECK(output.find("unknown whether they were written") != std::string::npos);
    CHECK(world.waiting() <= told + 2 * limits::kMostOperations);
  }
}

// A server that leads again answers before it has read the whole of its log, from what it has read;
// but not what is asked for with "consistent".
TEST_CASE("while Consul comes back all is listed, or nothing") {
  constexpr std::size_t kTasks = 20'000;
  ConsulAgent consul;
  World world{consul};
  REQUIRE(lictor(world, {"submit", "--ndjson", many_lines(world, kTasks)}).exit_code == 0);
  consul.stop();
  std::atomic<bool> is_over = false;
  // The lists and not Consul's start, since Consul ends with the thread that starts it.
  auto listing = std::async(std::launch::async, [&] {
    std::vector<std::string> lists;
    for (bool last = false; !last;) {
      last = is_over;
      const Output output = lictor(world, {"list", "--json"});
      if (output.exit_code == 0) lists.push_back(output.out);
    }
    return lists;
  });
  try {
    consul.start();
  } catch (...) {
    is_over = true;
    throw;
  }
  is_over = true;
  const std::vector<std::string> lists = listing.get();
  REQUIRE_FALSE(lists.empty());
  for (const std::string& list : lists) {  // there may be a line about having waited, too
    const std::size_t begin = list.find("{\n"), end = list.rfind("\n}");
    REQUIRE(end != std::string::npos);
    CHECK(json::parse(list.substr(begin, end + 2 - begin)).at("tasks").size() == kTasks);
  }
}

TEST_CASE("all of a type are cancelled at once, but not without a yes") {
  World world;
  for (int i = 0; i < 100; ++i) {
    world.kv.put_json(world.task_key("a" + std::to_string(i)), record_of("A"));
  }
  world.kv.put_json(world.task_key("b"), record_of("B"));
  const Output unasked = lictor(world, {"cancel", "--all", "--type", "A"});
  CHECK(unasked.exit_code == 2);
  says(unasked, "cancel 100 tasks");
  CHECK(world.waiting() == 101);
  const Output output = lictor(world, {"cancel", "--all", "--type", "A", "--yes"});
  CHECK(output.exit_code == 0);
  says(output, "cancelled 100 tasks");
  CHECK(world.waiting() == 1);
}

TEST_CASE("of many that are cancelled when replies are lost, each is told of") {
  constexpr std::size_t kTasks = 5'000;
  ConsulAgent consul;
  World world{consul};
  REQUIRE(lictor(world, {"submit", "--ndjson", many_lines(world, kTasks)}).exit_code == 0);
  TcpProxy network{consul.port()};
  network.cut_at("/v1/txn", TcpProxy::Before::kReplies);
  const std::string log = world.folder.file("cancel.log");
  Process cancel{command_line(world, {"--json", "cancel", "--all", "--yes"}, network.address()),
                 log};
  REQUIRE(eventually([&] { return network.lost_replies() > 0; }));

  SUBCASE("as cancelled, where Consul can be asked what became of it") {
    network.heal();
    CHECK(cancel.wait() == 0);
    CHECK(json::parse(read_text(log)).at("cancelled").size() == kTasks);
    CHECK(world.waiting() == 0);
  }
  SUBCASE("as in doubt, or as not tried, where Consul is gone") {
    consul.stop();
    network.heal();
    CHECK(cancel.wait() == 4);
    consul.start();
    const std::string output = read_text(log);  // and standard error after it
    const json document = json::parse(output.substr(0, output.rfind("\n}") + 2));
    CHECK(document.at("cancelled").empty());
    std::set<std::string> in_doubt, untouched;
    for (const json& each : document.at("refused")) {
      const std::string id = each.at("id"), error = each.at("error");
      const std::string doubt = "cannot tell whether " + world.task_key(id) + " ";
      CHECK(error.starts_with(each.at("in_doubt") ? doubt : "not tried: "));
      (each.at("in_doubt") ? in_doubt : untouched).insert(id);
    }
    CHECK(in_doubt.size() + untouched.size() == kTasks);
    CHECK_FALSE(in_doubt.empty());
    const json left = world.kv.request("GET", "/v1/kv/" + world.task_key("") + "?keys").json();
    for (const std::string& id : untouched) {
      CHECK(std::find(left.begin(), left.end(), world.task_key(id)) != left.end());
    }
  }
}

TEST_CASE("a dead letter is tried again as its producer wrote it") {
  World world;
  put_letter(world, "x", record_of());
  put_letter(world, "x~2", {{"taskType", "Record"}, {"mine", 2}});
  CHECK(lictor(world, {"retry", "x"}).exit_code == 0);
  CHECK(world.kv.get_json(world.task_key("x")) == json{{"taskType", "Record"}, {"mine", 2}});
  CHECK(world.kv.has(world.dead_key("x")));
  CHECK_FALSE(world.kv.has(world.dead_key("x~2")));

  const Output conflict = lictor(world, {"retry", "x"});
  CHECK(conflict.exit_code == 1);
  says(conflict, "task x exists");
  CHECK(world.kv.has(world.dead_key("x")));

  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"x"});
  CHECK(lictor(world, {"retry", "x"}).exit_code == 0);
  REQUIRE(eventually([&] { return world.all_done() && world.journal.order().size() == 2; }));
  CHECK(world.dead() == 0);
  CHECK(lictor(world, {"retry", "x"}).exit_code == 3);
}

TEST_CASE("what cannot be tried again stays a dead letter, and one copy can be named") {
  World world;
  world.kv.put_json(world.dead_key("raw"), {{"raw", "not json"}, {"reason", "unreadable"}});
  const Output raw = lictor(world, {"retry", "raw"});
  CHECK(raw.exit_code == 1);
  says(raw, "is not a valid task");
  json late = record_of();
  late["expireAt"] = "2026-01-01T00:00:00Z";
  put_letter(world, "late", late, "expired");
  const Output expired = lictor(world, {"retry", "late"});
  CHECK(expired.exit_code == 1);
  says(expired, "--drop-expiry");
  CHECK(lictor(world, {"retry", "late", "--drop-expiry"}).exit_code == 0);
  CHECK(world.kv.get_json(world.task_key("late")) == record_of());

  put_letter(world, "y", record_of());
  put_letter(world, "y~2", record_of());
  put_letter(world, "y~3", record_of());
  CHECK(lictor(world, {"retry", "y~2"}).exit_code == 0);
  CHECK(world.kv.has(world.task_key("y")));
  CHECK(world.kv.has(world.dead_key("y~3")));
  CHECK_FALSE(world.kv.has(world.dead_key("y~2")));
}

TEST_CASE("a dead letter is tried again if its record can be claimed") {
  World world;
  json record = record_of();
  record["taskPara"] = {{"text", std::string(380'000, 'x')}};
  put_letter(world, "large", record);
  const Output output = lictor(world, {"retry", "large"});
  INFO(output.out);
  CHECK(output.exit_code == 0);
  CHECK(world.kv.get_json(world.task_key("large")) == record);
  CHECK(world.dead() == 0);

  record["taskPara"] = {{"text", std::string(400'000, 'x')}};
  put_letter(world, "larger", record);
  const Output refused = lictor(world, {"retry", "larger"});
  CHECK(refused.exit_code == 1);
  says(refused, "too large to be claimed");
  CHECK(world.dead() == 1);
}

TEST_CASE("all dead letters of a type or reason are tried again, many in a transaction") {
  World world;
  for (int i = 0; i < 100; ++i) put_letter(world, "a" + std::to_string(i), record_of("A"));
  put_letter(world, "b", record_of("B"));
  put_letter(world, "c", record_of("A"), "owner lost");
  world.kv.put_json(world.task_key("a7"), record_of("A"));  // in the way
  const Output output = lictor(world, {"retry", "--all", "--type", "A", "--reason", "failed"});
  CHECK(output.exit_code == 1);
  says(output, "retried 99 tasks, 1 refused");
  says(output, "task a7 exists");
  CHECK(world.waiting() == 100);
  CHECK(world.dead() == 3);
  const Output parsed = lictor(world, {"retry", "--all", "--type", "B", "--json"});
  CHECK(json::parse(parsed.out).at("retried").size() == 1);
}

TEST_CASE("dead letters are listed, shown and purged") {
  World world;
  put_letter(world, "x", record_of("A"));
  put_letter(world, "x~2", record_of("A"));
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
  CHECK(ids({"dead", "list"}) == std::vector<std::string>{"x", "x~2", "y"});
  CHECK(ids({"dead", "list", "--type", "B"}) == std::vector<std::string>{"y"});
  CHECK(ids({"dead", "list", "--reason", "failed"}) == std::vector<std::string>{"x", "x~2"});
  CHECK(ids({"dead", "list", "--older-than", "1h"}) == std::vector<std::string>{"x", "x~2"});
  CHECK(ids({"dead", "show", "x"}) == std::vector<std::string>{"x", "x~2"});
  CHECK(lictor(world, {"dead", "show", "waits"}).exit_code == 3);

  CHECK(lictor(world, {"dead", "purge", "x"}).exit_code == 0);
  CHECK(lictor(world, {"dead", "purge", "x"}).exit_code == 3);
  CHECK(lictor(world, {"dead", "purge", "--all"}).exit_code == 2);
  CHECK(world.dead() == 2);
  CHECK(lictor(world, {"dead", "purge", "--all", "--older-than", "1h", "--yes"}).exit_code == 0);
  CHECK(ids({"dead", "list"}) == std::vector<std::string>{"y"});
  CHECK(world.waiting() == 1);
}

TEST_CASE("a paused queue starts nothing, and says by whom and why") {
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
  const Output paused = lictor(world, {"pause", "--reason", "moving house"});
  CHECK(paused.exit_code == 0);
  says(paused, "is paused by ");
  const Output more = lictor(world, {"pause", "--reason", "again"});
  says(more, "is already paused by ");
  says(more, "the reason was not written");
  const json value = world.kv.get_json(control);
  CHECK(value.at("other") == 1);
  CHECK(value.at("paused").at("reason") == "moving house");
  CHECK(value.at("paused").at("by").get<std::string>().find('@') != std::string::npos);
  REQUIRE(eventually([&] { return daemon->logged("paused"); }));

  world.submit("1", 1);
  says(lictor(world, {"list"}), ": moving house");
  says(lictor(world, {"show", "1"}), ": moving house");
  says(lictor(world, {"check"}), ": moving house");
  const Output reason = lictor(world, {"why", "1"});
  says(reason, "the queue is paused by ");
  says(reason, ": moving house");
  CHECK(daemon->logged(": moving house"));
  CHECK(json::parse(lictor(world, {"list", "--json"}).out).at("paused").at("reason") ==
        "moving house");
  CHECK(world.journal.order().empty());

  says(lictor(world, {"resume"}), "resumed");
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK_FALSE(world.kv.get_json(control).contains("paused"));
  CHECK(world.kv.get_json(control).at("resumed").contains("at"));
  const Output again = lictor(world, {"resume"});
  CHECK(again.exit_code == 0);
  says(again, "is not paused");
}

TEST_CASE("submit --wait says why a task has not started after a few seconds") {
  World world;
  const auto daemon = world.leading_daemon("a");
  REQUIRE(
      eventually([&] { return world.kv.has(world.root + "default/members/" + daemon->node()); }));
  CHECK(lictor(world, {"pause", "--reason", "moving"}).exit_code == 0);
  REQUIRE(eventually([&] { return daemon->logged("paused"); }));
  const Output waited =
      lictor(world, {"submit", "Record", "--id", "x", "--wait", "--wait-timeout", "6s"});
  CHECK(waited.exit_code == 1);
  says(waited, "task x: the queue is paused by ");
  says(waited, "; still waiting");
  says(waited, "x has not ended within --wait-timeout");
}

TEST_CASE("submit --wait tells a cancelled task from one that is done, with a history or without") {
  World world;
  TemporaryFolder folder;
  DaemonSettings settings = world.settings("a");
  bool history = false;
  SUBCASE("with") { history = true; }
  SUBCASE("without") {}
  settings.queue["history"] = history;
  LictorDaemon daemon{settings};
  REQUIRE(eventually([&] { return world.leads(daemon); }));
  REQUIRE(
      eventually([&] { return world.kv.has(world.root + "default/members/" + daemon.node()); }));
  Process submit(
      command_line(world, {"submit", "Record", "--id", "x", "--wait", "--json", "--in", "1h"},
                   world.address()),
      folder.file("out"));
  REQUIRE(eventually([&] { return world.kv.has(world.task_key("x")); }));
  CHECK(lictor(world, {"cancel", "x"}).exit_code == 0);
  CHECK(submit.wait() == 6);
  says(Output{0, read_text(folder.file("out"))}, R"("state": "cancelled")");
  CHECK(world.kv.has(world.root + "default/done/x") == history);
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
  CHECK(output.find("no daemon has ever led it") != std::string::npos);
  CHECK(output.ends_with("\n{\n  \"rows\": 7\n}\n"));
}

TEST_CASE("why says what keeps a task, as far as Consul holds it") {
  World world;
  world.kv.put_json(world.task_key("later"),
                    {{"taskType", "Record"}, {"executeAt", "2099-01-01T00:00:00Z"}});
  const Output later = lictor(world, {"why", "later"});
  CHECK(later.exit_code == 0);
  says(later, "not due before 2099-01-01");
  says(later, "nobody leads");
  CHECK(lictor(world, {"why", "unknown"}).exit_code == 3);
}

TEST_CASE("a type at its own concurrency waits, why says so, and other types pass") {
  World world;
  const json recorder = json::array({LICTOR_JOB_RECORDER, world.journal.file(), "a", "none"});
  LictorDaemon daemon{
      world.settings_with_admin("a", {{"concurrency", 4},
                                      {"executors",
                                       {{"Record", {{"exec", recorder}, {"concurrency", 1}}},
                                        {"Other", {{"noop", json::object()}}}}}})};
  world.submit("first", 1, {{"sleep", 300'000}});
  REQUIRE(eventually([&] { return world.journal.run("first").has_value(); }));
  world.submit("second", 2);
  world.kv.put_json(world.task_key("other"), {{"taskType", "Other"}, {"taskTime", 3}});
  REQUIRE(eventually([&] { return !world.kv.has(world.task_key("other")); }));
  says(lictor(world, {"why", "second"}),
       "all slots of executor \"Record\" are taken (its concurrency is 1); task first is one");
  CHECK_FALSE(world.journal.run("second").has_value());
  CHECK(lictor(world, {"cancel", "first"}).exit_code == 0);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.run("second")->ended);
}

TEST_CASE("who waits for a Consul that does not answer is told so") {
  World world;
  TcpProxy mute{world.port()};
  mute.cut();
  const Instant before = boot_now();
  const Output list = run(command_line(world, {"list"}, mute.address()));
  CHECK(boot_now() - before < std::chrono::seconds{30});  // 10 s, on a machine that is not loaded
  says(list,
       "Consul at " + mute.address() + " has not answered for 2s; this request ends after 10s");
  says(list, mute.address() + ": no whole reply: no answer within 10s");
  CHECK(list.out.find("milliseconds") == std::string::npos);
  says(list, "nothing was changed");
  CHECK(list.exit_code == 4);
}

TEST_CASE("who does not wait to be told whether a task is written knows which one may be") {
  World world;
  TcpProxy mute{world.port()};
  mute.cut();
  const std::string log = world.folder.file("submit.log");
  Process submit{command_line(world, {"submit", "Record", "--id", "x"}, mute.address()), log};
  REQUIRE(eventually(
      [&] { return read_text(log).find("this request ends after") != std::string::npos; }));
  submit.signal(SIGINT);
  CHECK(submit.wait() == 128 + SIGINT);
  CHECK(read_text(log).find("interrupted: unknown whether task x was written\n") !=
        std::string::npos);
}

TEST_CASE("with --json a hand-over and a task that is not waited for to its end are documents") {
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
  // The other way round, and waited for.
  const json done = document(lictor(world, {"leader", "--step-down", "--json"}));
  CHECK(done.at("stepped_down") == other->node());
  CHECK(done.at("leader") == daemon->node());
}

TEST_CASE("only a variable that is set is said to override the configuration") {
  World world;
  const std::string config = world.folder.file("client.json");
  write_text(config, json{{"consul", {{"addresses", {world.address().substr(7)}}}}}.dump());
  const std::vector<std::string> line{LICTOR_COMMAND, "--config", config,
                                      "--root",       world.root, "list"};
  const Output plain = run(line);
  CHECK(plain.exit_code == 0);
  CHECK(plain.out.find("CONSUL_HTTP_ADDR") == std::string::npos);
  const Output same = run(line, {{"CONSUL_HTTP_ADDR", world.address()}});
  CHECK(same.out.find("CONSUL_HTTP_ADDR") == std::string::npos);
  says(run(line, {{"CONSUL_HTTP_ADDR", "http://127.0.0.1:1"}}), "CONSUL_HTTP_ADDR");
}

TEST_CASE("what was claimed when the leader was killed is no longer told as running") {
  World world;
  LictorDaemon daemon{world.settings_with_admin("a", {{"prefetch", 1}})};
  world.submit("1", 1, {{"sleep", "600000"}});
  world.submit("2", 2, {{"sleep", "600000"}});
  const auto state_of = [&](const std::string& id) {
    const json shown = json::parse(lictor(world, {"show", id, "--json"}).out).at("tasks").at(0);
    return shown.at("state").get<std::string>() + (shown.at("orphan") ? " (orphan)" : "") + ", " +
           std::to_string(shown.value("attempt", 0));
  };
  REQUIRE(
      eventually([&] { return state_of("1") == "running, 1" && state_of("2") == "running, 1"; }));
  const std::string session = world.leader_session();
  daemon.kill_with_warden();
  // Nobody can be asked, and its session lives on.
  says(lictor(world, {"why", "2"}), "it is claimed, and runs or is about to: running on ");
  says(lictor(world, {"check"}), " leads, but its daemon does not answer: ");
  const Output asked = lictor(world, {"leader", "--step-down", "--timeout", "100ms"});
  CHECK(asked.exit_code == 1);
  says(asked, "no other daemon is up to take leadership");
  says(asked, " has not stepped down within 100ms: its daemon does not answer: ");
  says(lictor(world, {"leader", "--step-down", "--timeout", "100ms", "--json"}),
       R"("stepped_down": null)");
  daemon.start();
  // The same session leads again, and it has one slot.
  REQUIRE(eventually([&] { return state_of("1") == "running, 2"; }));
  CHECK(world.leader_session() == session);
  CHECK(state_of("2") == "running (orphan), 1");
  const Output orphan = lictor(world, {"why", "2"});
  says(orphan, "its owner, ");
  says(orphan, "died or lost leadership; the next leader runs it again and counts a lost owner (0");
}

TEST_CASE("of a leader that was killed leader, members and cancel say that it does not answer") {
  World world;
  LictorDaemon daemon{world.settings_with_admin("a")};
  world.submit("1", 1, {{"sleep", "600000"}});
  REQUIRE(eventually([&] { return world.journal.run("1").has_value(); }));
  const Output well = lictor(world, {"leader"});
  says(well, "answers   yes");
  says(well, "leads     since 20");
  CHECK(well.out.find("does not answer") == std::string::npos);
  says(lictor(world, {"members"}), " yes ");

  daemon.kill_with_warden();
  const Output leader = lictor(world, {"leader"});
  CHECK(leader.exit_code == 0);
  says(leader, daemon.node() + " leads, but its daemon does not answer: ");
  says(leader, "answers   no");
  says(lictor(world, {"members"}), " no ");
  const Output cancelled = lictor(world, {"cancel", "1"});
  CHECK(cancelled.exit_code == 0);
  says(cancelled, "cancelled task 1, which was running on ");
  says(cancelled, daemon.node() + " has to stop the jobs of these tasks, but its daemon does not ");
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
