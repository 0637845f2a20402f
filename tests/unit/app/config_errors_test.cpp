#include <doctest/doctest.h>

#include "config_text.h"

namespace lictor::app {
namespace {

// Texts for the tables below; `error` is without what every error begins with.
struct Case {
  std::string text;
  std::string error;
};

void check_all(const std::vector<Case>& cases, const std::string& start,
               Mode mode = Mode::kDaemon) {
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(error_of(c.text, mode) == start + c.error);
  }
}

}  // namespace

TEST_SUITE_BEGIN("app");

TEST_CASE("an unknown key is refused with the nearest known one") {
  CHECK(error_of("{\n\"queues\": [\n{\"name\": \"a\",\n\"execuctors\": {}}]}") ==
        "lictor.json:4: queues[0].execuctors: unknown key; did you mean \"executors\"?");
  CHECK(error_of(queue_text("\"concurency\": 2")) ==
        "lictor.json:2: queues[0].concurency: unknown key; did you mean \"concurrency\"?");
  CHECK(error_of("{\"log\": {\"lvel\": \"info\"}}") ==
        "lictor.json:1: log.lvel: unknown key; did you mean \"level\"?");
  CHECK(error_of("{\"log\": {\"compression\": true}}") ==
        "lictor.json:1: log.compression: unknown key; known here: format, level");
  CHECK(error_of("{\"consul\": {\"adresses\": []}}") ==
        "lictor.json:1: consul.adresses: unknown key; did you mean \"addresses\"?");
  CHECK(error_of(executor_text(R"({"noop": {"slep": "1s"}})")) ==
        "lictor.json:2: queues[0].executors.A.noop.slep: unknown key; did you mean \"sleep\"?");
  CHECK(error_of(executor_text(R"({"noop": {}, "retries": 1})"))
            .starts_with("lictor.json:2: queues[0].executors.A.retries: unknown key"));
}

TEST_CASE("a setting that this version does not support is refused, not ignored") {
  check_all({{queue_text("\"history\": 100"),
              "queues[0].history: expected true, false or an object such as {\"keep\": 1000, "
              "\"max_age\": \"168h\"}, got the number 100"},
             {queue_text("\"rate_limit\": {\"per\": \"1s\"}"),
              "queues[0].rate_limit: has no \"tasks\"; expected an object such as "
              "{\"tasks\": 100, \"per\": \"1s\"}"},
             {queue_text("\"serialize_by\": \"taskPara\""),
              "queues[0].serialize_by: expected a JSON pointer into the record, such as "
              "\"/taskPara/instanceId\", got \"taskPara\""},
             {queue_text("\"preload\": \"2h\""),
              "queues[0].preload: expected a duration from 0s to 1h, got \"2h\""}},
            "lictor.json:2: ");
}

TEST_CASE("a schedule of the configuration is refused for what is wrong with it") {
  const auto with = [](const std::string& record) {
    return queue_text("\"schedules\": {\n\"s\": " + record + "}");
  };
  const std::string task = R"("task": {"taskType": "T"}})";
  check_all(
      {{with("3"),
        R"(expected a schedule such as {"cron": "0 3 * * *", "task": {"taskType": "Backup"}}, )"
        "got the number 3"},
       {with("{\"every\": \"1h\"}"), "task: expected a task's record, got nothing"},
       {with("{\"cron\": \"0 0 30 2 *\", " + task),
        "cron: never fires: expected a day that one of the months has, got \"0 0 30 2 *\""},
       {with("{\"every\": \"1h\", \"lastTick\": 5, " + task),
        "lastTick: the leader writes it; remove it"},
       {with("{\"every\": \"1h\", \"overlp\": \"allow\", " + task),
        "\"overlp\" is no field of a schedule and has no effect; did you mean \"overlap\"?"}},
      "lictor.json:3: queues[0].schedules.s: ");
  CHECK(error_of(queue_text("\"schedules\": []"))
            .starts_with("lictor.json:2: queues[0].schedules: expected an object"));
  CHECK(error_of(queue_text(R"("schedules": {"a@b": {"every": "1h", )" + task + "}"))
            .starts_with("lictor.json:2: queues[0].schedules[\"a@b\"]: its name has \"@\""));
}

TEST_CASE("a wrong type is refused with the expected and the found type") {
  const auto wanted = [](const std::string& range, const std::string& like) {
    return "expected a duration from " + range + ", as text with a unit such as \"" + like +
           "\", got ";
  };
  const std::string timeouts = "0s to 8784h";
  const std::string delays = "0s to 1m (Consul bars a lock no longer, whatever it was asked)";
  check_all(
      {{queue_text("\"name\": 7"),
        "name: expected 1 to 128 letters, digits, \"_\", \"-\" and \".\", not \".\" or \"..\", got "
        "the number 7"},
       {queue_text("\"name\": \"a/b\""),
        "name: expected 1 to 128 letters, digits, \"_\", \"-\" and \".\", not \".\" or \"..\", got "
        "\"a/b\""},
       {queue_text("\"concurrency\": \"2\""),
        "concurrency: expected a whole number from 1 to 10000, got \"2\""},
       {queue_text("\"concurrency\": 0"),
        "concurrency: expected a whole number from 1 to 10000, got the number 0"},
       {queue_text("\"concurrency\": 10001"),
        "concurrency: expected a whole number from 1 to 10000, got the number 10001"},
       {queue_text("\"concurrency\": 1.5"),
        "concurrency: expected a whole number from 1 to 10000, got the number 1.5"},
       {queue_text("\"prefetch\": -1"),
        "prefetch: expected a whole number from 0 to 10000, got the number -1"},
       {queue_text("\"max_losses\": 4294967297"),
        "max_losses: expected a whole number from 1 to 1000, got the number 4294967297"},
       {queue_text("\"timeout\": 10"), "timeout: " + wanted(timeouts, "10s") + "the number 10"},
       {queue_text("\"timeout\": \"soon\""), "timeout: " + wanted(timeouts, "10s") + "\"soon\""},
       {queue_text("\"lock_delay\": \"-1s\""), "lock_delay: " + wanted(delays, "10s") + "\"-1s\""},
       {queue_text("\"lock_delay\": \"61s\""),
        "lock_delay: expected a duration from 0s to 1m (Consul bars a lock no longer, whatever it "
        "was asked), got \"61s\""},
       {queue_text("\"timeout\": null"), "timeout: " + wanted(timeouts, "10s") + "null"},
       {queue_text("\"session_ttl\": \"9.9s\""),
        "session_ttl: expected a duration from 10s to 24h (Consul's own limits), got \"9.9s\""},
       {queue_text("\"session_ttl\": \"25h\""),
        "session_ttl: expected a duration from 10s to 24h (Consul's own limits), got \"25h\""},
       {queue_text("\"session_checks\": \"serfHealth\""),
        "session_checks: expected an array such as [\"serfHealth\"], got \"serfHealth\""},
       {queue_text("\"session_checks\": [true]"), "session_checks[0]: expected text, got true"},
       {queue_text("\"delivery\": \"once\""),
        "delivery: expected one of \"at_least_once\", \"effectively_once\", "
        "\"at_most_once\", got \"once\""},
       {queue_text("\"backoff\": \"10s\""),
        R"(backoff: expected an object such as {"initial": "1s", "max": "5m"}, got "10s")"},
       {queue_text("\"backoff\": {\"jitter\": 2}"),
        "backoff.jitter: expected a number from 0 to 1, got the number 2"},
       {queue_text("\"max_attempts\": 0"),
        "max_attempts: expected a whole number from 1 to 1000, got the number 0"}},
      "lictor.json:2: queues[0].");
  check_all({{"[]", "expected an object, got an empty array"},
             {"{\"queues\": {}}", "queues: expected an array, got an object"},
             {"{\"queues\": []}", "queues: expected at least one queue, got an empty array"},
             {"{\"queues\": [1]}", "queues[0]: expected an object, got the number 1"},
             {"{\"log\": {\"level\": \"loud\"}}",
              "log.level: expected one of \"trace\", \"debug\", \"info\", \"warn\", \"error\", got "
              "\"loud\""},
             {"{\"state_dir\": \"here\"}", "state_dir: expected an absolute path, got \"here\""},
             {"{\"node\": \"\"}",
              "node: expected 1 to 128 letters, digits, \"_\", \"-\" and \".\", not \".\" or "
              "\"..\", got \"\""},
             {"{\"node\": \"..\"}",
              "node: expected 1 to 128 letters, digits, \"_\", \"-\" and \".\", not \".\" or "
              "\"..\", got \"..\""},
             {"{\"admin\": {\"listen\": [\"127.0.0.1:1\", \"8642\"]}}",
              "admin.listen[1]: \"8642\": expected host:port such as \"127.0.0.1:8642\" or "
              "\"[::1]:8642\", or \"unix:///path\""},
             {"{\"admin\": {\"listen\": [\"127.0.0.1:1\", \"0.0.0.0:2\"]}}",
              "admin.listen[1]: \"0.0.0.0:2\": the network would read tasks and output there "
              "without a token; set admin.token_file, or \"open\": true if everybody may"},
             {"{\"admin\": {\"names\": [\"http://a\"]}}",
              "admin.names[0]: \"http://a\": expected a host name such as \"lictor.example.com\""},
             {"{\"logs\": {\"max_age\": \"1s\"}}",
              "logs.max_age: expected a duration from 1m to 87600h, got \"1s\""},
             {"{\"consul\": {\"tls_verify\": \"no\"}}",
              "consul.tls_verify: expected true or false, got \"no\""}},
            "lictor.json:1: ");
}

TEST_CASE("contradictory settings of Consul are refused") {
  CHECK(error_of("{\"consul\": {\n\"token\": \"a\",\n\"token_file\": \"/b\"}}") ==
        "lictor.json:3: consul: has token and token_file; remove one, best the token");
  CHECK(error_of("{\"consul\": {\n\"client_cert\": \"/b\"}}") ==
        "lictor.json:2: consul: has client_cert without client_key; add client_key");
  CHECK(error_of("{\"consul\": {\n\"client_key\": \"/b\"}}") ==
        "lictor.json:2: consul: has client_key without client_cert; add client_cert");
  CHECK(error_of("{\"consul\": {\n\"basic_auth\": \"secret\"}}") ==
        "lictor.json:2: consul.basic_auth: expected \"user:password\", got no \":\"");
  CHECK(error_of("{\"consul\": {\n\"addresses\": []}}") ==
        "lictor.json:2: consul.addresses: expected at least one address such as "
        "\"127.0.0.1:8500\", got an empty array");
  CHECK(error_of("{\"consul\": {\n\"addresses\": [\"127.0.0.1:8500\",\n\"ftp://x:1\"]}}")
            .starts_with("lictor.json:3: consul.addresses[1]: Consul address \"ftp://x:1\": "));
}

TEST_CASE("keys and prefixes that Consul or a listing would misread are refused") {
  const auto prefix = [](const std::string& value) {
    return queue_text("\"tasks_prefix\": \"" + value + "\"");
  };
  const auto key = [](const std::string& value) {
    return queue_text("\"leader_key\": \"" + value + "\"");
  };
  check_all(
      {{prefix(""),
        "tasks_prefix: expected a KV prefix such as \"lictor/default/tasks/\", got \"\""},
       {prefix("tasks"), "tasks_prefix: \"tasks\": a prefix ends in \"/\"; write \"tasks/\""},
       {prefix("/tasks/"),
        "tasks_prefix: \"/tasks/\": a KV key does not begin with \"/\"; leave it out"},
       {prefix("a//b/"),
        "tasks_prefix: \"a//b/\": Consul cannot be asked for a key with \"//\" in it; write one "
        "\"/\""},
       {prefix("a/../b/"),
        "tasks_prefix: \"a/../b/\": Consul cannot be asked for a key with \"..\" as a segment; "
        "leave "
        "it out"},
       {prefix("./b/"),
        "tasks_prefix: \"./b/\": Consul cannot be asked for a key with \".\" as a segment; leave "
        "it "
        "out"},
       {prefix("a\\tb/"),
        "tasks_prefix: expected a KV prefix such as \"lictor/default/tasks/\" without control "
        "characters, got \"a\\x09b/\""},
       {key("leader/"),
        "leader_key: \"leader/\": a key does not end in \"/\", a prefix does; write \"leader\""},
       {key("a/."),
        "leader_key: \"a/.\": Consul cannot be asked for a key with \".\" as a segment; leave it "
        "out"},
       {key(std::string(513, 'k')),
        "leader_key: \"" + std::string(60, 'k') + "...\": expected at most 512 bytes, got 513"}},
      "lictor.json:2: queues[0].");
  CHECK(error_of("{\"root\": \"lictor\"}") ==
        "lictor.json:1: root: \"lictor\": a prefix ends in \"/\"; write \"lictor/\"");
}

TEST_CASE("a queue without executors is refused for the daemon") {
  CHECK(error_of("{\n}") ==
        "lictor.json:1: says nothing to run; add for instance \"queues\": [{\"executors\": {\"*\": "
        "{\"exec\": [\"/opt/jobs/any\"]}}}]");
  const std::string none =
      "queues[0]: has no executors, so it could run nothing; add for instance \"executors\": "
      "{\"*\": {\"exec\": [\"/opt/jobs/any\"]}}";
  CHECK(error_of("{\"queues\": [\n{}]}") == "lictor.json:2: " + none);
  CHECK(error_of("{\"queues\": [\n{\n\"executors\": {}}]}") == "lictor.json:3: " + none);
}

TEST_CASE("an executor has exactly one kind, and only that kind's settings") {
  check_all({{executor_text("{}"),
              ": says nothing to run; expected \"exec\", \"worker\", \"http\", \"noop\", \"cpp\" "
              "or \"plugin\", such as {\"exec\": "
              "[\"/opt/jobs/any\"]}"},
             {executor_text(R"({"exec": ["/bin/sh"], "noop": {}})"),
              ": has \"exec\" and \"noop\", an executor is one of them; remove the other"},
             {executor_text(R"({"noop": {}, "cwd": "/"})"),
              ".cwd: is for \"exec\" and \"worker\", this executor is \"noop\"; remove it"},
             {executor_text(R"({"cpp": "X", "env": {}})"),
              ".env: is for \"exec\" and \"worker\", this executor is \"cpp\"; remove it"},
             {executor_text("[]"), ": expected an object, got an empty array"},
             {executor_text(R"({"noop": {}, "concurrency": 0})"),
              ".concurrency: expected a whole number from 1 to 10000, got the number 0"},
             {executor_text(R"({"noop": {}, "on_lease_lost": "go on"})"),
              ".on_lease_lost: expected one of \"stop\", \"finish\", got \"go on\""}},
            "lictor.json:2: queues[0].executors.A");
  CHECK(error_of("{\"queues\": [{\"executors\": {\n\"*\": {}}}]}")
            .starts_with("lictor.json:2: queues[0].executors[\"*\"]: says nothing to run"));
  CHECK(error_of("{\"queues\": [{\"executors\": {\n\"\": {}}}]}") ==
        "lictor.json:2: queues[0].executors[\"\"]: expected a taskType of 1 to 256 bytes, or \"*\" "
        "for the rest");
}

TEST_CASE("loading refuses a program that cannot be started") {
  const auto exec = [](const std::string& rest) {
    return executor_text("{\"exec\": " + rest + "}");
  };
  check_all(
      {{exec("\"/bin/sh -c x\""),
        "exec: expected an array of program and arguments such as [\"/opt/jobs/any\", \"-v\"], got "
        "\"/bin/sh -c x\""},
       {exec("[]"),
        "exec: expected an array of program and arguments such as [\"/opt/jobs/any\", \"-v\"], got "
        "an empty array"},
       {exec("[\"sh\"]"), "exec[0]: expected a program's absolute path, got \"sh\""},
       {exec("[\"/bin/sh\", 5]"), "exec[1]: expected text, got the number 5"},
       {exec("[\"/bin/sh\", \"a\\u0000b\"]"),
        "exec[1]: expected text without NUL, got \"a\\x00b\""},
       {exec("[\"/no/such/program\"]"),
        "exec[0]: \"/no/such/program\": No such file or directory; install the program or correct "
        "the path"},
       {exec("[\"/\"]"), "exec[0]: \"/\": expected a program, got a folder"},
       {exec("[\"/dev/null\"]"),
        "exec[0]: \"/dev/null\": expected a program, got something else than a file"},
       {exec("[\"/etc/passwd\"]"),
        "exec[0]: \"/etc/passwd\": not executable (Permission denied); make it so with chmod +x"},
       {exec(R"(["/bin/sh"], "cwd": "/no/such")"),
        "cwd: \"/no/such\": No such file or directory; make the folder or correct the path"},
       {exec(R"(["/bin/sh"], "cwd": "/etc/passwd")"),
        "cwd: \"/etc/passwd\": expected a folder, got something else; correct the path"},
       {exec(R"(["/bin/sh"], "cwd": "tmp")"), "cwd: expected an absolute path, got \"tmp\""},
       {exec(R"(["/bin/sh"], "user": "no-such-user")"),
        "user: there is no user \"no-such-user\" on this host; create the user or correct the "
        "name"},
       {exec(R"(["/bin/sh"], "env": {"A-B": "x"})"),
        "env.A-B: a variable's name has letters, digits and \"_\" only, no digit first"},
       {exec(R"(["/bin/sh"], "env": {"LICTOR_TASK_ID": "x"})"),
        "env.LICTOR_TASK_ID: lictor sets LICTOR_ variables itself; choose another name"},
       {exec(R"(["/bin/sh"], "env": {"A": 1})"), "env.A: expected text, got the number 1"},
       {exec(R"(["/bin/sh"], "output_limit": "64KB")"),
        "output_limit: expected bytes such as 65536, \"64KiB\" or \"10MiB\", at most 16GiB, got "
        "\"64KB\""},
       {exec(R"(["/bin/sh"], "output_limit": "17GiB")"),
        "output_limit: expected bytes such as 65536, \"64KiB\" or \"10MiB\", at most 16GiB, got "
        "\"17GiB\""},
       {exec(R"(["/bin/sh"], "limits": {"files": 10})"),
        "limits.files: unknown key; known here: core, cpu_time, file_size, memory, open_files, "
        "processes"}},
      "lictor.json:2: queues[0].executors.A.");
}

TEST_CASE("broken JSON and duplicates are refused before anything else") {
  CHECK(error_of("{\n\"queues\": [{\"name\": \"a\",}]}") ==
        "lictor.json:2:25: a comma before \"}\"; remove the comma");
  CHECK(error_of("{\"root\": \"a/\",\n\"root\": \"b/\"}") ==
        "lictor.json:2: root: written twice, first on line 1; remove one of the two");
  CHECK(error_of("") == "lictor.json:1:1: not JSON: unexpected end of input; expected a value");
}

TEST_SUITE_END();

}  // namespace lictor::app
