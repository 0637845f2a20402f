// "lictor top" in a terminal multiplexer, as a person sees them.

#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "skip.h"
#include "world.h"

namespace lictor::live {
namespace {

// A terminal of 110 by 32 in which one command runs.
class Terminal {
 public:
  Terminal(const World& world, const std::vector<std::string>& command)
      // Each has its own: a server that was asked to end may still take a new session.
      : socket_(world.folder.file("tmux" + std::to_string(++count_))) {
    std::string line;
    for (const std::string& word : command) line += "'" + word + "' ";
    tmux({"-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "32", line});
  }
  ~Terminal() { tmux({"kill-server"}); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& key) { tmux({"send-keys", key}); }
  [[nodiscard]] std::string screen() { return tmux({"capture-pane", "-p"}).out; }
  [[nodiscard]] bool shows(const std::string& text) {
    const bool seen = eventually([&] { return contains(screen(), text); });
    if (!seen) MESSAGE(screen());
    return seen;
  }
  [[nodiscard]] bool shows_after(const std::string& key, const std::string& text) {
    type(key);
    return shows(text);
  }
  [[nodiscard]] bool ends_after(const std::string& key) {
    type(key);
    return eventually([&] { return tmux({"has-session"}).exit_code != 0; });
  }

 private:
  Output tmux(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"tmux", "-S", socket_});
    return run(arguments, {{"TERM", "xterm"}});
  }

  static inline int count_ = 0;
  const std::string socket_;
};

bool has_tmux() { return std::system("command -v tmux >/dev/null") == 0; }

TEST_CASE("top shows the queue live, and its keys pause, explain and cancel") {
  if (!has_tmux()) return tell_skipped("no tmux (Debian's package of that name)");
  World world;
  LictorDaemon daemon{world.settings_with_admin("host-a")};
  REQUIRE(eventually([&] { return world.leads(daemon); }));
  Terminal terminal{world, {LICTOR_COMMAND, "top", "--config", daemon.config_file()}};
  CHECK(terminal.shows(daemon.node() + " leads, elected"));
  CHECK(terminal.shows("members  host-a"));
  world.submit("long-job", 1000, {{"sleep", "600000"}});
  CHECK(terminal.shows("> long-job"));
  CHECK(terminal.shows("running 1"));
  world.submit("behind", 2000);
  CHECK(terminal.shows("waiting 1"));

  CHECK(terminal.shows_after("w", "it is running, attempt 1"));
  CHECK(terminal.shows_after("p", "pause queue default? y/n"));
  CHECK(terminal.shows_after("y", "PAUSED"));
  CHECK(terminal.shows_after("p", "resume queue default? y/n"));
  CHECK(terminal.shows_after("y", "resumed"));

  CHECK(terminal.shows_after("t", "WAITING"));
  CHECK(terminal.shows("> behind"));
  CHECK(terminal.shows_after("t", "SCHEDULED"));
  CHECK(terminal.shows_after("t", "> long-job"));

  CHECK(terminal.shows_after("c", "cancel long-job? Its job is stopped. y/n"));
  CHECK(terminal.shows_after("n", "q quit"));
  CHECK(world.kv.get(world.task_key("long-job")));
  CHECK(terminal.shows_after("c", "y/n"));
  CHECK(terminal.shows_after("y", "cancelled long-job"));
  CHECK(eventually([&] { return world.all_done(); }));

  daemon.kill();
  CHECK(terminal.shows("not up to date"));
  daemon.start();
  CHECK(terminal.shows("q quit"));
  CHECK(terminal.ends_after("q"));
}

TEST_CASE("top names the types that nobody runs and bad schedules, and runs a failed task again") {
  if (!has_tmux()) return tell_skipped("no tmux (Debian's package of that name)");
  World world;
  DaemonSettings settings = world.settings_with_admin("host-a");
  auto& executors = settings.queue["executors"];
  executors["Record"] = executors["*"];
  executors.erase("*");
  LictorDaemon daemon{settings};
  REQUIRE(eventually([&] { return world.leads(daemon); }));
  world.kv.put(world.root + "default/schedules/nightly",
               R"({"every": "1h", "pausd": true, "task": {"taskType": "Odd"}})");
  world.kv.put(world.task_key("nobodys"), R"({"taskType": "Odd"})");
  world.kv.put(world.root + "default/dead/ended",
               R"({"record": {"taskType": "Record", "taskPara": {"sleep": "600000"}},
                   "reason": "failed", "error": "exit status 3", "attempts": 1,
                   "at": "2026-01-01T00:00:00Z", "node": "host-a"})");
  Terminal terminal{world, {LICTOR_COMMAND, "top", "--config", daemon.config_file()}};
  CHECK(terminal.shows("\"Odd\" (1)"));
  CHECK(terminal.shows("! schedule \"nightly\": "));
  CHECK(terminal.shows("\"pausd\""));
  CHECK(terminal.shows("\"nightly\": its tasks have the type \"Odd\", which nobody runs"));
  CHECK(terminal.shows("> ended"));
  CHECK(terminal.shows_after("r", "run ended again? y/n"));
  CHECK(terminal.shows_after("y", "ended waits again"));
  CHECK(eventually([&] { return !world.kv.has(world.root + "default/dead/ended"); }));
  CHECK(terminal.ends_after("q"));
}

TEST_CASE("top shows the processes of workers, the busy ones first") {
  if (!has_tmux()) return tell_skipped("no tmux (Debian's package of that name)");
  World world;
  DaemonSettings settings = world.settings_with_admin("host-a");
  const json worker{
      {"worker",
       {"/bin/sh", "-c", R"(echo '{"ready":{"protocol":1}}' >&3; read -r line; sleep 1000)"}}};
  settings.queue["executors"] = {{"Archive", worker}, {"Invoice", worker}};
  LictorDaemon daemon{settings};
  REQUIRE(eventually([&] { return world.leads(daemon); }));
  Terminal terminal{world, {LICTOR_COMMAND, "top", "--config", daemon.config_file()}};
  CHECK(terminal.shows("workers  Archive: none   Invoice: none"));
  world.kv.put(world.task_key("first"), R"({"taskType": "Invoice"})");
  CHECK(terminal.shows("workers  Invoice: 1 busy   Archive: none"));
  CHECK(terminal.ends_after("q"));
}

TEST_CASE("top asks another daemon when this host's daemon is dead") {
  if (!has_tmux()) return tell_skipped("no tmux (Debian's package of that name)");
  World world;
  std::vector<std::unique_ptr<LictorDaemon>> daemons;
  for (const char* node : {"host-a", "host-b"}) {
    daemons.push_back(std::make_unique<LictorDaemon>(world.settings_with_admin(node)));
    REQUIRE(eventually([&] { return world.leads(*daemons.front()); }));
  }
  REQUIRE(eventually([&] { return world.kv.has(world.member_key(*daemons[1])); }));
  daemons.front()->kill();
  Terminal terminal{world, {LICTOR_COMMAND, "top", "--config", daemons[0]->config_file()}};
  CHECK(terminal.shows(daemons[1]->node() + " leads, elected"));
  CHECK(terminal.shows("running 0"));
  CHECK(terminal.shows("q quit"));
}

TEST_CASE("top shows what this host's daemon knows while Consul is silent, and its keys work") {
  if (!has_tmux()) return tell_skipped("no tmux (Debian's package of that name)");
  World world;
  DaemonSettings settings = world.settings("host-a");
  settings.admin = {"127.0.0.1:" + std::to_string(free_port())};
  LictorDaemon daemon{settings};
  REQUIRE(eventually([&] { return world.leads(daemon); }));
  world.consul.pause();
  Terminal terminal{world, {LICTOR_COMMAND, "top", "--config", daemon.config_file()}};
  CHECK(terminal.shows("not up to date: no answer for "));
  CHECK(terminal.shows("! Consul "));
  CHECK(terminal.shows_after("p", "pause queue default?"));
  CHECK(terminal.shows_after("y", "not up to date: no answer for "));
  CHECK(terminal.ends_after("q"));
  world.consul.resume();
}

TEST_CASE("top without a terminal says what to do instead") {
  World world;
  ends(run({LICTOR_COMMAND, "top", "--consul", world.address()}), 2, {"lictor stats --json"});
}

TEST_CASE("top gives the terminal back as it was when a signal ends it, and refuses a dumb one") {
  if (!has_tmux()) return tell_skipped("no tmux (Debian's package of that name)");
  World world;
  const std::string pid_file = world.folder.file("pid");
  const auto script = [&](const std::string& before) {
    write_text(world.folder.file("script"),
               "stty -a | tr ';' '\\n' | sort > " + world.folder.file("before") + "\n" + before +
                   "sh -c 'echo $$ > " + pid_file + "; exec \"" + LICTOR_COMMAND +
                   "\" top --consul " + world.address() + "'\necho ended $?\n" +
                   "stty -a | tr ';' '\\n' | sort | diff - " + world.folder.file("before") +
                   " && echo the same\nsleep 1000\n");
    return std::vector<std::string>{"sh", world.folder.file("script")};
  };
  for (const int number : {SIGTERM, SIGHUP, SIGINT}) {
    CAPTURE(number);
    Terminal terminal{world, script("")};
    CHECK(terminal.shows("q quit"));
    if (number == SIGTERM) {  // also while a question is open
      CHECK(terminal.shows_after("p", "pause queue default? y/n"));
    }
    REQUIRE(kill(static_cast<pid_t>(std::stol(read_text(pid_file))), number) == 0);
    CHECK(terminal.shows("the same"));
  }
  Terminal dumb{world, script("TERM=dumb; export TERM\n")};
  CHECK(dumb.shows("one that moves its cursor"));
  CHECK(dumb.shows("ended 2"));
}

}  // namespace
}  // namespace lictor::live
