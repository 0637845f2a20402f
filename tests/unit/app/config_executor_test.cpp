#include <variant>

#include "config_text.h"

namespace lictor::app {
namespace {

using namespace std::chrono_literals;

// The error for "http": `value`, without its place.
std::string http_error(const std::string& value, Mode mode = Mode::kDaemon) {
  const std::string error = error_of(executor_text("{\"http\": " + value + "}"), mode);
  const std::string start = "lictor.json:2: queues[0].executors.A.http";
  return error.starts_with(start) ? error.substr(start.size()) : error;
}

template <class Kind>
Kind executor_of(const std::string& text, Mode mode = Mode::kDaemon) {
  const Config config = parsed(executor_text(text), mode);
  const auto* kind = std::get_if<Kind>(&config.queues.front().executors.at("A"));
  REQUIRE(kind != nullptr);
  return *kind;
}

std::string queue_of(const std::string& executors, const std::string& more = {}) {
  return R"({"queues": [{)" + more + R"("executors": {)" + executors + "}}]}";
}

QueueConfig parsed_queue(const std::string& text) { return parsed(text).queues.front(); }

}  // namespace

TEST_CASE("an http executor is a URL, or an object with one") {
  CHECK(executor_of<HttpConfig>(R"({"http": "http://127.0.0.1:9000/notify"})").target.url ==
        "http://127.0.0.1:9000/notify");
  const auto http = executor_of<HttpConfig>(
      R"({"http": {"url": "https://host/x", "headers": {"X-A": "b", "Host": "c"},
          "token_file": "/etc/passwd", "ca_file": "/etc/passwd"}, "timeout": "5s"})");
  CHECK(http.target.url == "https://host/x");
  CHECK(http.headers ==
        std::vector<std::pair<std::string, std::string>>{{"Host", "c"}, {"X-A", "b"}});
  CHECK(http.token_file == "/etc/passwd");
  CHECK(http.ca_file == "/etc/passwd");
}

TEST_CASE("a bad http executor is refused without quoting its secrets") {
  const auto with = [](const std::string& rest) { return R"({"url": "http://h/", )" + rest + "}"; };
  const std::pair<std::string, std::string> refused[] = {
      {"7", ": expected a URL, or an object such as {\"url\": "},
      {"{}", ": has no \"url\"; add one such as"},
      {R"({"url": 7})", ".url: expected a URL such as \"http://127.0.0.1:9000/notify\", got the"},
      {R"("ftp://me:s3cret@h/")", ": expected a URL such as"},
      {with(R"("header": {})"), ".header: unknown key; did you mean \"headers\"?"},
      {with(R"("headers": [])"), ".headers: expected an object such as {\"X-Source\": \"lictor\"}"},
      {with(R"("headers": {"X A": "b"})"), ".headers[\"X A\"]: a header's name has letters"},
      {with(R"("headers": {"lictor-Attempt": "b"})"), ".headers.lictor-Attempt: lictor sets this"},
      {with(R"("headers": {"content-length": "b"})"), ".headers.content-length: lictor sets this"},
      {with(R"("headers": {"X-A": "s3cret\r\nX-B: c"})"),
       ".headers.X-A: expected text of one line"},
      {with(R"("token_file": "/no/such")"), ".token_file: \"/no/such\": No such file or directory"},
      {R"({"url": "http://me:s3cret@h/", "token_file": "/etc/passwd"})",
       ".token_file: the URL or a header already has credentials"}};
  for (const auto& [value, start] : refused) {
    CAPTURE(value);
    const std::string error = http_error(value);
    CAPTURE(error);
    CHECK(error.starts_with(start));
    CHECK_FALSE(contains(error, "s3cret"));
  }
  CHECK(http_error(with(R"("token_file": "/no/such")"), Mode::kClient) == "");
}

TEST_CASE("a plug-in is a file, or an object with a file, and only the daemon checks the file") {
  CHECK(executor_of<PluginConfig>(R"({"plugin": "/no/such.so"})", Mode::kClient).file ==
        "/no/such.so");
  const auto plugin = executor_of<PluginConfig>(
      R"({"plugin": {"file": "/no/such.so", "executor": "Resize"}})", Mode::kClient);
  CHECK(plugin.file == "/no/such.so");
  CHECK(plugin.executor == "Resize");
  const auto error = [](const std::string& value) {
    return error_of(executor_text("{\"plugin\": " + value + "}"));
  };
  const std::string start = "lictor.json:2: queues[0].executors.A.plugin";
  CHECK(error("\"/no/such.so\"").starts_with(start + ": plug-in \"/no/such.so\": No such file"));
  CHECK(error(R"({"file": "/etc/passwd"})")
            .starts_with(start + ".file: plug-in \"/etc/passwd\": expected a shared object"));
  CHECK(error("\"resize.so\"") == start + ": expected an absolute path, got \"resize.so\"");
  CHECK(error(R"({"executor": "x"})").starts_with(start + ": has no \"file\"; expected "));
  CHECK(error("[]").starts_with(start + ": expected an absolute path, or an object such as "));
}

TEST_CASE("a worker has the settings of a program and its own") {
  const QueueConfig plain = parsed_queue(queue_of(R"("A": {"worker": ["/bin/sh", "-c", "x"]})"));
  const auto& worker = std::get<WorkerConfig>(plain.executors.at("A"));
  CHECK(worker.program.argv == std::vector<std::string>{"/bin/sh", "-c", "x"});
  CHECK(worker.processes == 1);
  CHECK(worker.tasks_per_process == 1);
  CHECK(worker.max_tasks == 0);
  CHECK(worker.idle_timeout == 5min);
  CHECK(worker.start_timeout == 30s);
  const QueueConfig full = parsed_queue(queue_of(
      R"("A": {"worker": ["/bin/sh"], "processes": 4, "tasks_per_process": 8, "max_tasks": 1000,
      "idle_timeout": "1h", "start_timeout": "2m", "env": {"A": "b"}, "cwd": "/tmp",
      "output_limit": 100, "limits": {"open_files": 100}})"));
  const auto& other = std::get<WorkerConfig>(full.executors.at("A"));
  CHECK(other.processes == 4);
  CHECK(other.tasks_per_process == 8);
  CHECK(other.max_tasks == 1000);
  CHECK(other.idle_timeout == 1h);
  CHECK(other.start_timeout == 2min);
  CHECK(other.program.environment.size() == 1);
  CHECK(other.program.directory == "/tmp");
  CHECK(other.program.log_cap == 100);
  CHECK(other.program.limits.size() == 1);
}

TEST_CASE("as many tasks run at a time as the processes of a worker take") {
  const std::string worker =
      R"("A": {"worker": ["/bin/sh"], "processes": 2, "tasks_per_process": 3)";
  const std::string two = worker + R"(}, "B": {"noop": {}})";
  // Beside other executors it has a limit of its own, if the queue has a higher one.
  const QueueConfig shared = parsed_queue(queue_of(two, R"("concurrency": 16, )"));
  CHECK(shared.options.concurrency == 16);
  CHECK(shared.options.policy_of("A")->concurrency == 6);
  CHECK(parsed_queue(queue_of(two, R"("concurrency": 6, )")).options.policy_of("A")->concurrency ==
        0);
  // Alone it bounds the queue.
  const QueueConfig alone = parsed_queue(queue_of(worker + "}", R"("concurrency": 16, )"));
  CHECK(alone.options.concurrency == 6);
  CHECK(alone.options.policy_of("A")->concurrency == 0);
  const QueueConfig less =
      parsed_queue(queue_of(worker + R"(, "concurrency": 4})", R"("concurrency": 16, )"));
  CHECK(less.options.concurrency == 4);
  CHECK(parsed_queue(
            queue_of(R"("*": {"worker": ["/bin/sh"], "processes": 2})", R"("concurrency": 16, )"))
            .options.concurrency == 2);
  CHECK(error_of(queue_of(worker + R"(, "concurrency": 7})")) ==
        "lictor.json:1: queues[0].executors.A: concurrency 7 is more than its processes take (2 "
        "with 3 at a time each); set processes to 3 or more, or leave concurrency out");
  // No more than 256 processes are allowed.
  CHECK(contains(error_of(queue_of(worker + R"(, "concurrency": 1000})")),
                 "; raise processes and tasks_per_process, or leave"));
}

TEST_CASE("processes that concurrency leaves without work give a warning") {
  const std::string four = R"("A": {"worker": ["/bin/sh"], "processes": 4)";
  const auto warnings = [](const std::string& text, Mode mode = Mode::kDaemon) {
    return parsed(text, mode).warnings;
  };
  CHECK(
      warnings(queue_of(four + "}")) ==
      std::vector<std::string>{
          "queue \"default\": executor \"A\": processes is 4, but concurrency 1 lets no more than "
          "1 work; raise concurrency"});
  CHECK(warnings(queue_of(four + R"(, "concurrency": 2})", R"("concurrency": 8, )")).size() == 1);
  CHECK(warnings(queue_of(four + "}", R"("concurrency": 4, )")).empty());
  CHECK(warnings(queue_of(four + "}"), Mode::kClient).empty());
  LoadRequest trial{.only_type = "A"};
  CHECK(parse_config(queue_of(four + "}"), "lictor.json", trial).value().warnings.empty());
}

TEST_CASE("a trial needs nothing that only other executors name") {
  const std::string all = queue_of(
      R"("A": {"exec": ["/bin/sh"]}, "B": {"exec": ["/opt/none"], "cwd": "/opt/none", "user": "none"}, "*": {"worker": ["/opt/none"]})");
  const auto is_read = [&](const char* type) {
    LoadRequest request = request_for(Mode::kDaemon);
    request.only_type = type;
    return parse_config(all, "lictor.json", request).has_value();
  };
  CHECK(is_read("A"));
  CHECK_FALSE(is_read("B"));
  CHECK_FALSE(is_read("Other"));  // that is the worker's
}

TEST_CASE("a worker's settings are a worker's, and a host has so many processes") {
  CHECK(contains(error_of(queue_of(R"("A": {"exec": ["/bin/sh"], "processes": 2})")),
                 R"(.processes: is for "worker", this executor is "exec"; remove it)"));
  CHECK(contains(error_of(queue_of(R"("A": {"noop": {}, "idle_timeout": "1m"})")),
                 R"(.idle_timeout: is for "worker", this executor is "noop"; remove it)"));
  CHECK(contains(error_of(queue_of(R"("A": {"worker": ["/bin/sh"], "exec": ["/bin/sh"]})")),
                 R"(has "exec" and "worker", an executor is one of them)"));
  CHECK(contains(error_of(queue_of(R"("A": {"worker": []})")), "expected an array of program"));
  CHECK(contains(error_of(queue_of(R"("A": {"worker": ["sh"]})")), "absolute path"));
  const std::string many = R"({"worker": ["/bin/sh"], "processes": 256})";
  CHECK(error_of(queue_of(R"("A": )" + many + R"(, "B": )" + many)).empty());
  CHECK(error_of(queue_of(R"("A": )" + many + R"(, "B": )" + many +
                          R"(, "C": {"worker": ["/bin/sh"]})")) ==
        "lictor.json:1: queues: all workers together have up to 513 processes, and a host may have "
        "512; lower processes");
}

}  // namespace lictor::app
