#include "app/config.h"

#include <pwd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <variant>

#include "config_text.h"
#include "skip.h"

namespace lictor::app {

using namespace std::chrono_literals;

// Every daemon and operator may read a member's entry.
TEST_CASE("a member's digests of its configuration hold no token and no password") {
  const Config config = parsed(R"({
    "consul": {"token": "s3cret", "basic_auth": "who:s3cret"},
    "queues": [{"executors": {
      "Exec": {"exec": ["/bin/true", "--key=s3cret"], "env": {"KEY": "s3cret"}, "timeout": "10s"},
      "Http": {"http": {"url": "http://127.0.0.1/?key=s3cret", "headers": {"X-Key": "s3cret"}}}}}]})");
  std::string told;
  for (const auto& [part, settings] : config.parts) told += part + ' ' + settings + '\n';
  CHECK(contains(told, "default/Exec"));
  CHECK_FALSE(contains(told, "s3cret"));
}

// The build checks the other defaults against the manual.
TEST_CASE("unset settings are derived from the others") {
  const Config plain = parsed(queue_text(""));
  CHECK(plain.queues[0].options.renew_interval == 5s);
  CHECK(plain.queues[0].options.margin == 1s);
  CHECK(plain.queues[0].options.prefetch_horizon == 20ms);
  CHECK(plain.queues[0].options.node == plain.node);
  CHECK(plain.queues[0].layout.leader_key == "lictor/default/leader");
  const Config config = parsed(queue_text(
      R"("name": "q", "session_ttl": "30s", "lock_delay": "1m", "concurrency": 4000,
         "prefetch": 100)"));
  const core::QueueOptions& options = config.queues[0].options;
  CHECK(options.renew_interval == 10s);
  CHECK(options.margin == 1200ms);  // 2% of 1m
  CHECK(options.max_unacked == 4100);
  CHECK(parsed(queue_text("\"prefetch\": 0")).queues[0].options.prefetch_horizon == 0ms);
  const Config moved = parsed(
      "{\"queues\": [{\"name\": \"q\", \"executors\": {\"*\": {\"noop\": "
      "{}}}}], \"root\": \"jobs/x/\"}");
  CHECK(moved.queues[0].layout.tasks_prefix == "jobs/x/q/tasks/");  // though root stands last
  CHECK(moved.queues[0].layout.control_key == "jobs/x/q/control");
}

TEST_CASE("every setting of a queue is read") {
  const Config config = parsed(R"({"queues": [{
      "name": "q", "tasks_prefix": "a/tasks/", "dead_prefix": "a/dead/", "done_prefix": "a/done/",
      "members_prefix": "a/members/", "schedules_prefix": "a/schedules/", "leader_key": "a/leader", "control_key": "a/control",
      "concurrency": 2, "prefetch": 3, "preload": "250ms", "max_unacked": 7, "max_losses": 4, "session_ttl": "20s",
      "session_checks": [], "renew_interval": "6s", "lock_delay": "40s", "request_timeout": "2.5s",
      "kill_grace": "0s", "drain_timeout": "1h30m",
      "executors": {
        "A": {"noop": {"sleep": "5ms"}, "concurrency": 3, "on_lease_lost": "finish", "delivery": "at_least_once",
              "backoff": {"initial": "250ms"}},
        "B": {"cpp": "MyClass", "max_attempts": 1, "timeout": "0s"}
      },
      "max_attempts": 9, "timeout": "1m", "delivery": "at_most_once",
      "backoff": {"initial": "2s", "max": "1m", "factor": 1.5, "jitter": 0}}]})");
  const QueueConfig& queue = config.queues[0];
  CHECK(queue.layout.tasks_prefix == "a/tasks/");
  CHECK(queue.layout.dead_prefix == "a/dead/");
  CHECK(queue.layout.done_prefix == "a/done/");
  CHECK(queue.layout.members_prefix == "a/members/");
  CHECK(queue.layout.schedules_prefix == "a/schedules/");
  CHECK(queue.layout.leader_key == "a/leader");
  CHECK(queue.layout.control_key == "a/control");
  CHECK(queue.session_checks.empty());
  CHECK(queue.options.concurrency == 2);
  CHECK(queue.options.prefetch == 3);
  CHECK(queue.options.prefetch_horizon == 0ms);
  CHECK(queue.options.preload == 250ms);
  CHECK(queue.options.max_unacked == 7);
  CHECK(queue.options.max_losses == 4);
  CHECK(queue.options.session_ttl == 20s);
  CHECK(queue.options.renew_interval == 6s);
  CHECK(queue.options.lock_delay == 40s);
  CHECK(queue.options.request_timeout == 2500ms);
  CHECK(queue.options.kill_grace == 0s);
  CHECK(queue.options.drain_timeout == 90min);

  CHECK(std::get<NoopConfig>(queue.executors.at("A")).sleep == 5ms);
  const core::TypePolicy& a = queue.options.types.at("A");
  CHECK(a.concurrency == 3);
  CHECK(a.on_lease_lost == core::OnLeaseLost::kFinish);
  CHECK(a.delivery == core::Delivery::kAtLeastOnce);
  CHECK(a.backoff == core::Backoff{250ms, 1min, 1.5, 0});
  CHECK(a.max_attempts == 9);
  CHECK(a.timeout == 1min);
  const core::TypePolicy& b = queue.options.types.at("B");
  CHECK(b.concurrency == 0);
  CHECK(b.on_lease_lost == core::OnLeaseLost::kStop);
  CHECK(b.delivery == core::Delivery::kAtMostOnce);
  CHECK(b.backoff == core::Backoff{2s, 1min, 1.5, 0});
  CHECK(b.max_attempts == 1);
  CHECK(b.timeout == 0s);
  CHECK(std::get<CppConfig>(queue.executors.at("B")).name == "MyClass");
  CHECK_FALSE(queue.options.any_type);
}

TEST_CASE("schedules are kept with all their members, marked as the configuration's") {
  const Config config = parsed(queue_text(R"("schedules": {
    "nightly": {"cron": "30 2 * * *", // at night
                "timezone": "Europe/Rome", "task": {"taskType": "T", "taskPara": [1.50, "\u00e9"]}},
    "often": {"every": "10s", "paused": true, "task": {"taskType": "T"}}}, "schedules_prefix": "a/")"));
  const auto& schedules = config.queues[0].options.schedules;
  REQUIRE(schedules.size() == 2);
  const core::ConfiguredSchedule& nightly = schedules.at("nightly");
  CHECK(nightly.key == "a/nightly");
  CHECK(*nightly.record ==
        "{\"cron\":\"30 2 * * *\",\"task\":{\"taskPara\":[1.5,\"\u00e9\"],\"taskType\":\"T\"},"
        "\"timezone\":\"Europe/Rome\",\"fromConfig\":true}");
  CHECK_FALSE(nightly.definition->configured.empty());
  CHECK_FALSE(nightly.sets_paused);
  CHECK(schedules.at("often").sets_paused);
  CHECK(schedules.at("often").definition->paused);
}

TEST_CASE("every setting of the daemon, of Consul, log and admin is read") {
  const Config config = parsed(R"({
    "node": "host-a", "root": "l/", "state_dir": "/s",
    "log": {"level": "trace", "format": "journal"},
    "consul": {"addresses": ["unix:///run/consul.sock", "https://[::1]:8501", "consul:8500"],
      "token": "secret", "basic_auth": "u:p", "ca_file": "/c/ca.pem", "ca_path": "/c",
      "client_cert": "/c/cert.pem", "client_key": "/c/key.pem", "tls_server_name": "server.dc1",
      "tls_verify": false, "namespace": "team", "partition": "west", "register": false},
    "admin": {"listen": [], "token_file": "/a/token", "names": ["l.example.com"]},
    "logs": {"max_age": "24h", "max_size": "64MiB"}})",
                               Mode::kClient);
  CHECK(config.node == "host-a");
  CHECK(config.root == "l/");
  CHECK(config.state_dir == "/s");
  CHECK(config.admin.listen.empty());
  CHECK(config.admin.token_file == "/a/token");
  CHECK(config.admin.names == std::vector<std::string>{"l.example.com"});
  CHECK(config.logs.max_age == 24h);
  CHECK(config.logs.max_bytes == 64ULL << 20U);
  CHECK(config.log.level == LogLevel::kTrace);
  CHECK(config.log.format == LogFormat::kJournal);
  const net::Options& consul = config.consul.options;
  CHECK(consul.addresses.size() == 3);
  CHECK(consul.token == "secret");
  CHECK(consul.basic_auth == "u:p");
  CHECK(consul.ca_file == "/c/ca.pem");
  CHECK(consul.ca_path == "/c");
  CHECK(consul.client_cert == "/c/cert.pem");
  CHECK(consul.client_key == "/c/key.pem");
  CHECK(consul.tls_server_name == "server.dc1");
  CHECK_FALSE(consul.tls_verify);
  CHECK(consul.consul_namespace == "team");
  CHECK(consul.consul_partition == "west");
  CHECK_FALSE(config.consul.register_service);
}

TEST_CASE("the admin API listens on the loopback by default, and a chosen address is marked") {
  const Config silent = parsed("{}", Mode::kClient);
  CHECK(silent.admin.listen == std::vector<std::string>{"127.0.0.1:8642"});
  CHECK(silent.admin.listen_is_default);
  CHECK(silent.warnings.empty());
  const Config chosen =
      parsed(R"({"admin": {"listen": ["127.0.0.1:8642", "[::1]:0", "unix:///run/l.sock"]}})",
             Mode::kClient);
  CHECK(chosen.admin.listen.size() == 3);
  CHECK_FALSE(chosen.admin.listen_is_default);
  CHECK(chosen.warnings.empty());
}

TEST_CASE("every setting of exec is read") {
  const Config config = parsed(executor_text(
      R"({"exec": ["/bin/sh", "-c", "echo \"$X\"\n", ""], "cwd": "/", "output_limit": "64KiB",
          "env": {"X": "two\nlines", "_y": ""},
          "limits": {"open_files": 1024, "processes": 50, "memory": "2GiB", "file_size": 1000,
                     "core": 0, "cpu_time": "1h"}})"));
  const auto& exec = std::get<ExecConfig>(config.queues[0].executors.at("A"));
  CHECK(exec.argv == std::vector<std::string>{"/bin/sh", "-c", "echo \"$X\"\n", ""});
  CHECK(exec.directory == "/");
  CHECK(exec.log_cap == 65536);
  CHECK(exec.environment ==
        std::vector<std::pair<std::string, std::string>>{{"X", "two\nlines"}, {"_y", ""}});
  std::map<int, rlim_t> limits;
  for (const exec::Limit& limit : exec.limits) {
    // SIGXCPU comes before KILL.
    CHECK(limit.hard - limit.soft == (limit.resource == RLIMIT_CPU ? 5 : 0));
    limits[limit.resource] = limit.soft;
  }
  CHECK(limits == std::map<int, rlim_t>{{RLIMIT_NOFILE, 1024},
                                        {RLIMIT_NPROC, 50},
                                        {RLIMIT_DATA, 2ULL << 30U},
                                        {RLIMIT_FSIZE, 1000},
                                        {RLIMIT_CORE, 0},
                                        {RLIMIT_CPU, 3600}});
  const Config bare = parsed(executor_text(R"({"exec": ["/bin/sh"]})"));
  const auto& plain = std::get<ExecConfig>(bare.queues[0].executors.at("A"));
  CHECK(plain.log_cap == 1U << 20U);
  CHECK(plain.limits.empty());
}

TEST_CASE("a user is looked up at load, and another user needs root or capabilities") {
  const passwd* nobody = ::getpwnam("nobody");
  if (nobody == nullptr) return;
  const uid_t uid = nobody->pw_uid;
  const gid_t gid = nobody->pw_gid;
  const std::string text = executor_text(R"({"exec": ["/bin/sh"], "user": "nobody"})");
  if (::geteuid() != 0) {
    if (::geteuid() != uid) {
      CHECK(contains(error_of(text), "jobs of another user need CAP_SETUID, "));
    }
    return tell_skipped("needs root");
  }
  const Config config = parsed(text);
  const auto& exec = std::get<ExecConfig>(config.queues[0].executors.at("A"));
  REQUIRE(exec.user);
  CHECK(exec.user->name == "nobody");
  CHECK(exec.user->credentials.uid == uid);
  CHECK(exec.user->credentials.gid == gid);
  CHECK(std::count(exec.user->credentials.groups.begin(), exec.user->credentials.groups.end(),
                   gid) == 1);
  const std::string as_root = executor_text(R"({"exec": ["/bin/sh"], "user": "root"})");
  CHECK_FALSE(std::get<ExecConfig>(parsed(as_root).queues[0].executors.at("A")).user);
  REQUIRE(::seteuid(uid) == 0);
  const std::string as_nobody = error_of(as_root);
  const std::string own = error_of(text);
  REQUIRE(::seteuid(0) == 0);
  CHECK(
      as_nobody ==
      "lictor.json:2: queues[0].executors.A.user: user \"root\": a daemon that is not root runs no "
      "jobs as root; choose another user");
  CHECK(own.empty());
}

TEST_CASE("a client needs neither executors nor their programs, but the same layout") {
  const Config config = parsed(
      R"({"queues": [{"name": "a"}, {"name": "b", "executors": {
          "*": {"exec": ["/no/such/program"], "cwd": "/no/such/folder", "user": "no-such-user"}}}]})",
      Mode::kClient);
  REQUIRE(config.queues.size() == 2);
  CHECK(config.queues[0].executors.empty());
  CHECK(config.queues[1].executors.size() == 1);
  const Config empty = parsed("{}", Mode::kClient);
  REQUIRE(empty.queues.size() == 1);
  CHECK(empty.queues[0].layout.tasks_prefix == "lictor/default/tasks/");
}

}  // namespace lictor::app
