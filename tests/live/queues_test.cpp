// Several queues in one daemon, several daemons on one host, tasks of a certain time.

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>

#include "world.h"

namespace lictor::live {
namespace {

// The connections of a process to a port of this host.
std::size_t connections(pid_t pid, int port) {
  std::set<std::string> sockets;
  std::error_code gone;
  const std::string folder = "/proc/" + std::to_string(pid);
  for (const auto& fd : std::filesystem::directory_iterator{folder + "/fd", gone}) {
    const std::string target = std::filesystem::read_symlink(fd.path(), gone).string();
    constexpr std::string_view kBegin = "socket:[";
    if (target.starts_with(kBegin)) {
      sockets.insert(target.substr(kBegin.size(), target.size() - kBegin.size() - 1));
    }
  }
  std::size_t count = 0;
  std::istringstream table{read_text(folder + "/net/tcp")};  // sl local remote st ... inode
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields{line};
    std::vector<std::string> words;
    for (std::string word; fields >> word;) words.push_back(word);
    if (words.size() < 10 || words[2].size() < 5) continue;
    const bool there = std::strtol(words[2].c_str() + words[2].find(':') + 1, nullptr, 16) == port;
    // The kernel may show a connection twice if others come and go while the table is read.
    if (there) count += sockets.erase(words[9]);
  }
  return count;
}

TEST_CASE("each queue has a leader of its own, so hosts share the queues") {
  World world;
  const auto with_two_queues = [&](const std::string& node) {
    DaemonSettings settings = world.settings(node, {}, "none");
    json second = settings.queue;
    second["name"] = "second";
    settings.more_queues.push_back(second);
    return std::make_unique<LictorDaemon>(settings);
  };
  const auto leader_of = [&](const std::string& queue) {
    const auto entry = world.kv.get(world.root + queue + "/leader");
    if (!entry || entry->session.empty()) return std::string{};
    return json::parse(entry->value).value("node", "");
  };
  const auto submit = [&](const std::string& queue, const std::string& id, int sleep_ms) {
    world.kv.put_json(world.root + queue + "/tasks/" + id,
                      {{"taskType", "Record"}, {"taskPara", {{"sleep", sleep_ms}}}});
  };
  const auto first = with_two_queues("a");
  REQUIRE(eventually([&] {
    return leader_of("default") == first->node() && leader_of("second") == first->node();
  }));
  const auto other = with_two_queues("b");
  REQUIRE(eventually([&] { return !world.kv.sessions("lictor second " + other->node()).empty(); }));
  // Leadership of one queue moves, the other's stays; a job of one does not hold up the other.
  world.kv.put(world.root + "second/control", R"({"step_down": {"id": "1"}})");
  REQUIRE(eventually([&] { return leader_of("second") == other->node(); }));
  CHECK(leader_of("default") == first->node());
  submit("default", "long", 300'000);
  world.begun("long");
  for (int i = 0; i < 5; ++i) submit("second", std::to_string(i), 10);
  REQUIRE(eventually([&] { return world.journal.ended() == 5; }));
  REQUIRE(eventually([&] { return world.kv.list(world.root + "second/tasks/").empty(); }));
  CHECK(world.journal.run("long")->host == first->node());
  CHECK(world.journal.run("4")->host == other->node());
  CHECK_FALSE(world.journal.run("long")->ended);
}

TEST_CASE("without a configuration the error for an unknown --queue lists the known ones") {
  World world;
  const auto daemon = world.leading_daemon("a");
  const auto lictor = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {LICTOR_COMMAND, "--consul", world.address(), "--queue"});
    return run(arguments, {{"LICTOR_ROOT", world.root}});
  };
  ends(lictor({"default", "list"}), 0);  // it has no task, but it is there
  for (const char* command : {"list", "stats", "leader", "members", "pause"}) {
    ends(lictor({"defualt", command}), 3,
         {"no queue \"defualt\" in Consul below " + world.root, "did you mean \"default\"?"});
  }
  CHECK_FALSE(world.kv.has(world.root + "defualt/control"));
  // Without --queue it takes "default", and names the others if that one is not there.
  world.kv.put(world.root + "orders/control", "{}");
  const auto in = [&](const std::string& root) {
    return run({LICTOR_COMMAND, "--consul", world.address(), "show", "42"},
               {{"LICTOR_ROOT", root}});
  };
  CHECK_FALSE(contains(in(world.root).out, "no queue"));
  world.kv.put("other-" + world.root + "orders/control", "{}");
  ends(in("other-" + world.root), 3, {"it has orders; --queue names another one"});
  // A producer may come before the first daemon of a queue.
  ends(lictor({"early", "submit", "Record"}), 0, {"waits for a daemon"});
}

TEST_CASE("257 queues of one daemon take 32 connections, and run all tasks") {
  // Consul's own default, which it counts by address: the tests' agent allows more.
  ConsulAgent consul{{{"limits", {{"http_max_conns_per_client", 200}}}}};
  World world{consul};
  DaemonSettings settings = world.settings("a", {}, "none");
  std::vector<std::string> names{"default"};
  for (int i = 2; i <= 257; ++i) {
    json more = settings.queue;
    more["name"] = names.emplace_back("q" + std::to_string(i));
    settings.more_queues.push_back(more);
  }
  // The other programs of the host.
  std::vector<std::unique_ptr<Kv>> others;
  for (int i = 0; i < 150; ++i) others.push_back(std::make_unique<Kv>(consul.address()));
  LictorDaemon daemon{settings};
  std::size_t most = 0;
  std::size_t refused = 0;
  const auto look = [&] {
    most = std::max(most, connections(daemon.pid(), consul.port()));
    for (auto& other : others) {
      if (other->request("GET", "/v1/status/leader").status != 200) ++refused;
    }
  };
  REQUIRE(eventually([&] {
    look();
    return world.leads(daemon) || !daemon.runs();
  }));
  for (const std::string& queue : names) {
    world.kv.put_json(world.root + queue + "/tasks/" + queue, {{"taskType", "Record"}});
  }
  CHECK(eventually([&] {
    look();
    return world.journal.ended() == names.size() || !daemon.runs();
  }));
  CHECK(daemon.runs());
  CHECK(world.journal.run("q257").has_value());
  CHECK(refused == 0);
  CHECK(most > 0);
  CHECK(most <= 32);
}

}  // namespace
}  // namespace lictor::live
