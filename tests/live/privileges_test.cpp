// A daemon that is not root, as the units start it: what its jobs can do to it, and jobs of other
// users.

#include <sys/types.h>
#include <unistd.h>

#include <filesystem>

#include "skip.h"
#include "world.h"

namespace lictor::live {
namespace {

// As in systemd/job-user.conf.
constexpr const char* kCapabilities = "+setuid,+setgid,+kill,+chown";

json shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

pid_t warden_of(const LictorDaemon& daemon) { return children_of(daemon.pid()).at(0); }

std::string output(const LictorDaemon& daemon, const std::string& id) {
  std::string all;
  for (const auto& entry :
       std::filesystem::directory_iterator{daemon.state_dir() + "/logs/default"}) {
    if (entry.path().filename().string().starts_with(id + ".")) all += read_text(entry.path());
  }
  return all;
}

TEST_CASE("a job of the daemon's user finds the token neither in its environment nor its memory") {
  if (!is_root()) return;
  World world;
  DaemonSettings settings = world.settings("a");
  settings.user = "nobody";
  const std::string secret = "5ec3e700-0000-0000-0000-000000000000";
  settings.environment = {{"CONSUL_HTTP_TOKEN", secret}, {"CONSUL_HTTP_AUTH", "who:5ec3e7"}};
  // $PPID is the warden, and its parent the daemon.
  settings.queue["executors"] = {
      {"*",
       {{"exec", shell("id -un; warden=$PPID; daemon=$(cut -d' ' -f4 /proc/$warden/stat)\n"
                       "for pid in $warden $daemon; do for file in environ mem; do\n"
                       "  head -c 1 /proc/$pid/$file >/dev/null 2>&1 && echo readable: $file\n"
                       "done; done; echo looked")}}}};
  LictorDaemon daemon{settings};
  world.submit("1", 1);
  REQUIRE(eventually([&] { return world.leads(daemon) && world.all_done(); }));
  CHECK(output(daemon, "1") == "nobody\nlooked\n");
  // Root can still read it, and finds nothing.
  for (const pid_t pid : {daemon.pid(), warden_of(daemon)}) {
    const std::string environment = read_text("/proc/" + std::to_string(pid) + "/environ");
    CHECK_FALSE(environment.empty());
    CHECK_FALSE(contains(environment, "5ec3e7"));
  }
  // The daemon keeps the token for itself: to the daemon, the configuration has not changed.
  daemon.reload(json::object());
  CHECK(eventually([&] { return daemon.logged("configuration reloaded"); }));
  CHECK_FALSE(daemon.logged("needs a restart"));
}

TEST_CASE("a daemon that is not root runs and ends jobs of another user, by its warden's rights") {
  if (!is_root()) return;
  World world;
  DaemonSettings settings = world.settings("a");
  settings.user = "nobody";
  settings.capabilities = kCapabilities;
  settings.queue["history"] = true;
  settings.queue["executors"] = {
      {"Record",
       {{"exec", shell("id -un; grep ^Cap /proc/self/status; umask 077; echo 7 > $LICTOR_RESULT")},
        {"cwd", "/"},
        {"user", "daemon"}}},
      {"Deaf",
       {{"exec", shell("trap '' TERM; echo $$; while :; do sleep 0.05; done")},
        {"cwd", "/"},
        {"user", "daemon"},
        {"timeout", "300ms"},
        {"max_attempts", 1}}}};
  LictorDaemon daemon{settings};
  world.submit("1", 1);
  REQUIRE(eventually([&] { return world.all_done() && world.leads(daemon); }));
  CHECK(world.dead() == 0);
  const std::string none = "0000000000000000";
  const std::string job = output(daemon, "1");
  CHECK_MESSAGE(job.starts_with("daemon\n"), job);
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    CHECK_MESSAGE(contains(job, std::string{set} + ":\t" + none), job);
    CHECK(status_field(daemon.pid(), set) == none);
  }
  CHECK(status_field(warden_of(daemon), "CapEff") == "00000000000000e1");
  CHECK(world.kv.get_json(world.root + "default/done/1").value("result", 0) == 7);
  // A reload brings nothing back, and the user stays allowed.
  daemon.reload({{"max_attempts", 2}});
  REQUIRE(eventually([&] { return daemon.logged("configuration reloaded"); }));
  CHECK(status_field(daemon.pid(), "CapPrm") == none);

  world.kv.put_json(world.task_key("2"), json{{"taskType", "Deaf"}});
  REQUIRE(eventually([&] { return world.dead() == 1; }));
  const std::string deaf = output(daemon, "2");
  REQUIRE_FALSE(deaf.empty());
  CHECK_FALSE(is_alive(std::stoi(deaf)));
}

TEST_CASE("without the capabilities a user is refused, and the error says what to do") {
  if (!is_root()) return;
  World world;
  DaemonSettings settings = world.settings("a");
  settings.user = "nobody";
  SUBCASE("with none of them") {}
  SUBCASE("without one of them") { settings.capabilities = "+setuid,+setgid,+chown"; }
  settings.queue["executors"]["*"]["user"] = "daemon";
  settings.queue["executors"]["*"]["exec"] = shell("exit 0");
  LictorDaemon daemon{settings};
  CHECK(daemon.wait() == 2);
  CHECK(daemon.logged(
      "user \"daemon\": jobs of another user need CAP_SETUID, CAP_SETGID, CAP_KILL and CAP_CHOWN, "
      "or root; for the service, install systemd/job-user.conf"));
}

}  // namespace
}  // namespace lictor::live
