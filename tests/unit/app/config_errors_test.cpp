#include <vector>

#include "app/config_internal.h"
#include "config_text.h"

namespace lictor::app {
namespace {

using namespace std::chrono_literals;

// A text, the place of its fault, and a word of its error.
struct Case {
  std::string text, place, word;
};

// `start` is the beginning of the errors of all `cases`.
void check_all(const std::string& start, const std::vector<Case>& cases) {
  for (const auto& [text, place, word] : cases) {
    CAPTURE(text);
    const std::string error = error_of(text);
    CAPTURE(error);
    CHECK(error.starts_with(start + place + ": "));
    CHECK(contains(error, word));
  }
}

std::string exec_text(const std::string& rest) { return executor_text("{\"exec\": " + rest + "}"); }

}  // namespace

TEST_CASE("an error is one line: where it is, what was expected, what came, what to change") {
  CHECK(error_of("{\n\"queues\": [\n{\"name\": \"a\",\n\"execuctors\": {}}]}") ==
        "lictor.json:4: queues[0].execuctors: unknown key; did you mean \"executors\"?");
  CHECK(error_of(queue_text(R"("concurrency": 0)")) ==
        "lictor.json:2: queues[0].concurrency: expected a whole number from 1 to 10000, got the "
        "number 0");
  CHECK(error_of(queue_text(R"("timeout": 10)")) ==
        "lictor.json:2: queues[0].timeout: expected a duration from 0s to 8784h, as text with a "
        "unit such as \"10s\", got the number 10");
  CHECK(error_of("{\"root\": \"lictor\"}") ==
        R"(lictor.json:1: root: "lictor": a prefix ends in "/"; write "lictor/")");
  CHECK(error_of(exec_text("[\"/no/such/program\"]")) ==
        "lictor.json:2: queues[0].executors.A.exec[0]: \"/no/such/program\": No such file or "
        "directory; install the program or correct the path");
  CHECK(error_of("{\n\"queues\": [{\"name\": \"a\",}]}") ==
        "lictor.json:2:25: not JSON: unexpected '}'; expected string literal; remove "
        "the comma before it");
}

TEST_CASE("an unknown key is refused with the nearest known one, or with all of them") {
  check_all("lictor.json:",
            {{queue_text(R"("concurency": 2)"), "2: queues[0].concurency", "mean \"concurrency\"?"},
             {R"({"log": {"lvel": "info"}})", "1: log.lvel", "did you mean \"level\"?"},
             {R"({"log": {"compression": true}})", "1: log.compression", "here: format, level"},
             {R"({"consul": {"adresses": []}})", "1: consul.adresses", "mean \"addresses\"?"},
             {executor_text(R"({"noop": {"slep": "1s"}})"), "2: queues[0].executors.A.noop.slep",
              "did you mean \"sleep\"?"},
             {executor_text(R"({"noop": {}, "retries": 1})"), "2: queues[0].executors.A.retries",
              "unknown key"},
             {exec_text(R"(["/bin/sh"], "limits": {"files": 10})"),
              "2: queues[0].executors.A.limits.files", "core, cpu_time, file_size"}});
}

TEST_CASE("a bad schedule of the configuration is refused with its fault") {
  const auto with = [](const std::string& record) {
    return queue_text("\"schedules\": {\n\"s\": " + record + "}");
  };
  const std::string task = R"("task": {"taskType": "T"}})";
  check_all("lictor.json:3: queues[0].schedules.",
            {{with("3"), "s", "a schedule such as"},
             {with(R"({"every": "1h"})"), "s: task", "got nothing"},
             {with(R"({"cron": "0 0 30 2 *", )" + task), "s: cron", "never fires"},
             {with(R"({"every": "1h", "lastTick": 5, )" + task), "s: lastTick", "remove it"},
             {with(R"({"every": "1h", "overlp": "allow", )" + task), "s", "mean \"overlap\"?"}});
  check_all("lictor.json:2: queues[0].schedules",
            {{queue_text(R"("schedules": [])"), "", "expected an object"},
             {queue_text(R"("schedules": {"a@b": {"every": "1h", )" + task + "}"), "[\"a@b\"]",
              "its name has \"@\""}});
}

TEST_CASE("a value of a wrong type or out of its bounds is refused with what came") {
  const std::string name = R"(1 to 128 letters, digits, "_", "-" and ".", not "." or "..", got )";
  check_all(
      "lictor.json:2: queues[0].",
      {{queue_text(R"("name": 7)"), "name", name + "the number 7"},
       {queue_text(R"("name": "a/b")"), "name", name + "\"a/b\""},
       {queue_text(R"("concurrency": "2")"), "concurrency", "got \"2\""},
       {queue_text(R"("concurrency": 10001)"), "concurrency", "got the number 10001"},
       {queue_text(R"("concurrency": 1.5)"), "concurrency", "got the number 1.5"},
       {queue_text(R"("prefetch": -1)"), "prefetch", "from 0 to 10000, got the number -1"},
       {queue_text(R"("preload": "2h")"), "preload", "from 0s to 1h, got \"2h\""},
       {queue_text(R"("max_losses": 4294967297)"), "max_losses", "got the number 4294967297"},
       {queue_text(R"("timeout": "soon")"), "timeout", "as text with a unit"},
       {queue_text(R"("timeout": null)"), "timeout", "got null"},
       {queue_text(R"("lock_delay": "-1s")"), "lock_delay", "got \"-1s\""},
       {queue_text(R"("lock_delay": "61s")"), "lock_delay", "Consul bars a lock no longer"},
       {queue_text(R"("session_ttl": "9.9s")"), "session_ttl", "10s to 24h (Consul's own limits)"},
       {queue_text(R"("session_ttl": "25h")"), "session_ttl", "got \"25h\""},
       {queue_text(R"("session_checks": "serfHealth")"), "session_checks", "[\"serfHealth\"]"},
       {queue_text(R"("session_checks": [true])"), "session_checks[0]", "text, got true"},
       {queue_text(R"("delivery": "once")"), "delivery", "one of \"at_least_once\""},
       {queue_text(R"("backoff": "10s")"), "backoff", "an object such as"},
       {queue_text(R"("backoff": {"jitter": 2})"), "backoff.jitter", "a number from 0 to 1"},
       {queue_text(R"("history": 100)"), "history", "true, false or an object such as"},
       {queue_text(R"("rate_limit": {"per": "1s"})"), "rate_limit", "has no \"tasks\""},
       {queue_text(R"("serialize_by": "taskPara")"), "serialize_by", "a JSON pointer"},
       {queue_text(R"("max_attempts": 0)"), "max_attempts", "from 1 to 1000"}});
  check_all("lictor.json:1: ",
            {{R"({"queues": {}})", "queues", "an array, got an object"},
             {R"({"queues": []})", "queues", "at least one queue"},
             {R"({"queues": [1]})", "queues[0]", "an object, got the number 1"},
             {R"({"log": {"level": "loud"}})", "log.level", "one of \"trace\", \"debug\""},
             {R"({"state_dir": "here"})", "state_dir", "an absolute path"},
             {R"({"node": ""})", "node", name + "\"\""},
             {R"({"node": ".."})", "node", name + "\"..\""},
             {R"({"admin": {"listen": ["127.0.0.1:1", "8642"]}})", "admin.listen[1]", "host:port"},
             {R"({"admin": {"listen": ["127.0.0.1:1", "0.0.0.0:2"]}})", "admin.listen[1]",
              "without a token; set admin.token_file, or \"open\": true"},
             {R"({"admin": {"names": ["http://a"]}})", "admin.names[0]", "a host name"},
             {R"({"logs": {"max_age": "1s"}})", "logs.max_age", "from 1m to 87600h"},
             {R"({"consul": {"tls_verify": "no"}})", "consul.tls_verify", "true or false"}});
  CHECK(error_of("[]") == "lictor.json:1: expected an object, got an empty array");
}

TEST_CASE("contradictory settings of Consul are refused, at the line of the last of them") {
  check_all(
      "lictor.json:",
      {{"{\"consul\": {\n\"token\": \"a\",\n\"token_file\": \"/b\"}}", "3: consul", "remove one"},
       {"{\"consul\": {\n\"client_cert\": \"/b\"}}", "2: consul", "add client_key"},
       {"{\"consul\": {\n\"client_key\": \"/b\"}}", "2: consul", "add client_cert"},
       {"{\"consul\": {\n\"basic_auth\": \"secret\"}}", "2: consul.basic_auth", "got no \":\""},
       {"{\"consul\": {\n\"addresses\": []}}", "2: consul.addresses", "at least one address"},
       {"{\"consul\": {\n\"addresses\": [\"127.0.0.1:8500\",\n\"ftp://x:1\"]}}",
        "3: consul.addresses[1]", "\"ftp://x:1\""}});
}

TEST_CASE("keys and prefixes that Consul or a listing would misread are refused") {
  const auto prefix = [](const std::string& value) {
    return queue_text("\"tasks_prefix\": \"" + value + "\"");
  };
  const auto key = [](const std::string& value) {
    return queue_text("\"leader_key\": \"" + value + "\"");
  };
  check_all("lictor.json:2: queues[0].",
            {{prefix(""), "tasks_prefix", "such as \"lictor/default/tasks/\", got \"\""},
             {prefix("/tasks/"), "tasks_prefix", "begins with \"/\", so Consul cannot be asked"},
             {prefix("a//b/"), "tasks_prefix", "has \"//\""},
             {prefix("a/../b/"), "tasks_prefix", "the segment \"..\""},
             {prefix("./b/"), "tasks_prefix", "the segment \".\""},
             {prefix("a\\tb/"), "tasks_prefix", "control characters, got \"a\\x09b/\""},
             {key("leader/"), "leader_key", "a key does not end in \"/\", a prefix does"},
             {key("a/."), "leader_key", "the segment \".\""},
             {key(std::string(513, 'k')), "leader_key", "expected at most 512 bytes, got 513"}});
}

TEST_CASE("a queue without executors is refused for the daemon") {
  CHECK(contains(error_of("{\n}"), "lictor.json:1: says nothing to run; add for instance"));
  check_all("lictor.json:", {{"{\"queues\": [\n{}]}", "2: queues[0]", "has no executors"},
                             {"{\"queues\": [\n{\n\"executors\": {}}]}", "3: queues[0]",
                              R"(add for instance "executors": {"*": {"exec": )"}});
}

TEST_CASE("an executor has exactly one kind, and only that kind's settings") {
  const std::string own = R"(is for "exec" and "worker", this executor is ")";
  check_all("lictor.json:2: queues[0].executors",
            {{executor_text("{}"), ".A", "says nothing to run; expected \"exec\", \"worker\""},
             {executor_text(R"({"exec": ["/bin/sh"], "noop": {}})"), ".A",
              R"(has "exec" and "noop", an executor is one of them)"},
             {executor_text(R"({"noop": {}, "cwd": "/"})"), ".A.cwd", own + "noop"},
             {executor_text(R"({"cpp": "X", "env": {}})"), ".A.env", own + "cpp"},
             {executor_text(R"({"http": "http://h/", "env": {}})"), ".A.env", own + "http"},
             {executor_text("[]"), ".A", "an object, got an empty array"},
             {executor_text(R"({"noop": {}, "concurrency": 0})"), ".A.concurrency", "from 1 to"},
             {executor_text(R"({"noop": {}, "on_lease_lost": "go on"})"), ".A.on_lease_lost",
              R"(one of "stop", "finish")"},
             {"{\"queues\": [{\"executors\": {\n\"*\": {}}}]}", "[\"*\"]", "says nothing to run"},
             {"{\"queues\": [{\"executors\": {\n\"\": {}}}]}", "[\"\"]", "1 to 256 bytes"}});
}

TEST_CASE("loading refuses a program that cannot be started") {
  check_all("lictor.json:2: queues[0].executors.A.",
            {{exec_text(R"("/bin/sh -c x")"), "exec", "an array of program and arguments"},
             {exec_text("[]"), "exec", "got an empty array"},
             {exec_text(R"(["sh"])"), "exec[0]", "a program's absolute path, got \"sh\""},
             {exec_text(R"(["/bin/sh", 5])"), "exec[1]", "expected text, got the number 5"},
             {exec_text(R"(["/bin/sh", "a\u0000b"])"), "exec[1]", "without NUL, got \"a\\x00b\""},
             {exec_text(R"(["/"])"), "exec[0]", "a program, got a folder"},
             {exec_text(R"(["/dev/null"])"), "exec[0]", "something else than a file"},
             {exec_text(R"(["/etc/passwd"])"), "exec[0]", "make it so with chmod +x"},
             {exec_text(R"(["/bin/sh"], "cwd": "/no/such")"), "cwd", "make the folder or correct"},
             {exec_text(R"(["/bin/sh"], "cwd": "/etc/passwd")"), "cwd", "expected a folder"},
             {exec_text(R"(["/bin/sh"], "cwd": "tmp")"), "cwd", "an absolute path"},
             {exec_text(R"(["/bin/sh"], "user": "no-such-user")"), "user", "create the user or"},
             {exec_text(R"(["/bin/sh"], "env": {"A-B": "x"})"), "env.A-B", "no digit first"},
             {exec_text(R"(["/bin/sh"], "env": {"LICTOR_TASK_ID": "x"})"), "env.LICTOR_TASK_ID",
              "lictor sets LICTOR_ variables itself"},
             {exec_text(R"(["/bin/sh"], "env": {"A": 1})"), "env.A", "expected text"},
             {exec_text(R"(["/bin/sh"], "output_limit": "64KB")"), "output_limit", "at most 16GiB"},
             {exec_text(R"(["/bin/sh"], "output_limit": "17GiB")"), "output_limit", "\"17GiB\""}});
}

TEST_CASE("renewals must fit into the session's TTL") {
  CHECK(error_of(queue_text("\"session_ttl\": \"12s\",\n\"renew_interval\": \"8s\"")) ==
        "lictor.json:3: queues[0]: renew_interval 8s is more than half of session_ttl 12s, so one "
        "lost renewal could end the session; set renew_interval to 6s or less, or session_ttl to "
        "16s or more");
  CHECK(contains(error_of(queue_text(R"("renew_interval": "8s")")),
                 "session_ttl 15s (the default), so one lost"));
  CHECK(error_of(queue_text(R"("renew_interval": "7.5s")")).empty());
  CHECK(error_of(queue_text(R"("request_timeout": "5s")"))
            .starts_with("lictor.json:2: queues[0]: request_timeout 5s is not less than "));
  CHECK(error_of(queue_text(R"("session_ttl": "10s")")).empty());  // renewed every 3.33s
}

TEST_CASE("the open files of all queues at work are checked against the limit") {
  Config config;
  config.queues.resize(2);
  for (QueueConfig& queue : config.queues) queue.options.concurrency = 400;
  CHECK(descriptor_shortage(config, 524'288).empty());
  CHECK(descriptor_shortage(config, 1'024)
            .starts_with("concurrency: 800 tasks at once take up to 2720 open files, and this "
                         "process may have 1024: raise LimitNOFILE="));
}

TEST_CASE("the kill of all jobs, two tries of a proof and a margin of 2% fit into the lock-delay") {
  CHECK(error_of(queue_text("\"lock_delay\": \"5s\",\n\"kill_grace\": \"4s\"")) ==
        "lictor.json:3: queues[0]: lock_delay 5s less kill_grace 4s and the margin of 1s leaves a "
        "lease of 0s, too short for two tries of request_timeout 3s (the default) to prove it; it "
        "must be 8.667s or more: raise lock_delay (to 1m at most), or lower kill_grace or "
        "request_timeout");
  using Row = std::pair<std::string, std::string>;
  for (const auto& [delay, lease] : {Row{"0s", "0s"}, Row{"12s", "6s"}, Row{"14.666s", "8.666s"}}) {
    CAPTURE(delay);
    CHECK(contains(error_of(queue_text("\"lock_delay\": \"" + delay + '"')),
                   "leaves a lease of " + lease + ','));
  }
  CHECK(error_of(queue_text(R"("lock_delay": "14.667s")")).empty());
  CHECK(margin_for(0s) == 1s);
  CHECK(margin_for(50s) == 1s);
  CHECK(margin_for(100s) == 2s);
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

TEST_CASE("hang_timeout is a third of the shortest session_ttl, and less than each lease") {
  const auto loaded = [](const std::string& settings, const std::string& top = "") {
    return parsed("{" + top + queue_text(settings).substr(1)).hang_timeout;
  };
  CHECK(loaded("") == 5s);
  CHECK(loaded("\"session_ttl\": \"24s\"") == 8s);
  CHECK(loaded("\"session_ttl\": \"10m\"") == 12s);  // half of the lease of 24s
  CHECK(loaded("", "\"hang_timeout\": \"0s\",") == 0s);
  CHECK(loaded("", "\"hang_timeout\": \"20s\",") == 20s);
  const auto refused = [](const std::string& value) {
    return error_of("{\"hang_timeout\": \"" + value + "\"," + queue_text("").substr(1));
  };
  CHECK(contains(refused("24s"), "hang_timeout 24s is not less than the lease of queue default"));
  CHECK(contains(refused("500ms"), "hang_timeout 500ms is less than 1s, which a daemon"));
}

TEST_CASE("concurrency and prefetch must fit into max_unacked, and a backoff's max is no less") {
  CHECK(error_of(queue_text("\"concurrency\": 4,\n\"max_unacked\": 5, \"prefetch\": 2"))
            .starts_with("lictor.json:3: queues[0]: max_unacked 5 is less than concurrency 4 and "
                         "prefetch 2 together"));
  CHECK(error_of(queue_text("\"backoff\": {\"initial\": \"1m\",\n\"max\": \"10s\"}"))
            .starts_with("lictor.json:3: queues[0].backoff: max 10s is less than initial 1m"));
  CHECK(error_of(executor_text(R"({"noop": {}, "backoff": {"initial": "10m"}})"))
            .starts_with(
                "lictor.json:2: queues[0].executors.A.backoff: max 5m (not set here) is less "
                "than initial 10m; set max"));
}

TEST_CASE("no two paths overlap, and no two queues share a name") {
  const auto two = [](const std::string& a, const std::string& b) {
    const std::string rest = R"("executors": {"*": {"noop": {}}}})";
    return "{\"queues\": [\n{" + a + ", " + rest + ",\n{" + b + ", " + rest + "]}";
  };
  const std::string a = R"("name": "a")", b = R"("name": "b")";
  const std::pair<std::string, std::string> refused[] = {
      {queue_text("\"tasks_prefix\": \"T/\",\n\"leader_key\": \"T/leader\""),
       R"(3: queues[0]: leader_key "T/leader" overlaps tasks_prefix "T/"; give each a place)"},
      {queue_text(R"("tasks_prefix": "lictor/default/")"),
       R"(2: queues[0]: control_key "lictor/default/control" (the default) overlaps tasks_prefix)"},
      {queue_text(R"("dead_prefix": "t/dead/", "done_prefix": "t/")"),
       R"(2: queues[0]: dead_prefix "t/dead/" overlaps done_prefix "t/")"},
      {queue_text(R"("control_key": "x", "leader_key": "x")"),
       R"(2: queues[0]: control_key "x" overlaps leader_key "x")"},
      {queue_text(R"("leader_key": "L", "tasks_prefix": "L/", "partitions": 4)"),
       R"(2: queues[0]: leader_key "L/" overlaps tasks_prefix "L/")"},
      {two(a, a), R"(3: queues[1]: name "a" is also the name of queues[0])"},
      {two(a, b + R"(, "dead_prefix": "lictor/a/dead/")"),
       R"(3: queues[1]: dead_prefix "lictor/a/dead/" overlaps dead_prefix "lictor/a/dead/" (the )"
       "default) of queues[0]"},
      {two(a + R"(, "tasks_prefix": "lictor/")", b),
       R"(2: queues[0]: control_key "lictor/a/control" (the default) overlaps tasks_prefix)"}};
  for (const auto& [text, error] : refused) {
    CAPTURE(text);
    CHECK(error_of(text).starts_with("lictor.json:" + error));
  }
  CHECK(error_of(two(a, b)).empty());
  // A name with the same beginning is another place.
  CHECK(error_of(queue_text(R"("tasks_prefix": "task/", "dead_prefix": "task.dead/", )"
                            R"("leader_key": "task")"))
            .empty());
}

}  // namespace lictor::app
