#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/unique_fd.h"
#include "config_text.h"
#include "skip.h"
#include "temporary_folder.h"
#include "unit/refusal.h"

namespace lictor::app {
namespace {

class Folder : public unit::TemporaryFolder {
 public:
  Folder() {
    // For tests that drop root's rights.
    std::filesystem::permissions(path(), std::filesystem::perms{0755});
  }

  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    const std::string file = TemporaryFolder::write(name, text);
    REQUIRE(::chmod(file.c_str(), mode) == 0);
    return file;
  }
};

std::string message(const Result<Config>& config) { return config ? "" : config.error().message; }

const char* const kSmall = R"({"queues": [{"executors": {"*": {"noop": {}}}}]})";

}  // namespace

TEST_CASE("the flag names the file, else the variable, else the default") {
  const Folder folder;
  LoadRequest request{
      .mode = Mode::kClient,
      .default_path = folder.write("default.json", R"({"node": "default", "queues": [{}]})")};
  CHECK(load_config(request)->node == "default");
  CHECK(load_config(request)->file == request.default_path);
  request.environment["LICTOR_CONFIG"] = folder.write("variable.json", R"({"node": "variable"})");
  CHECK(load_config(request)->node == "variable");
  request.flags.config = folder.write("flag.json", R"({"node": "flag"})");
  CHECK(load_config(request)->node == "flag");
}

// "lictor check --config FILE" has to ask for the folder that the unit gives to the daemon.
TEST_CASE("the file of an instance has a state_dir and a node name of its own") {
  const auto config_of = [](const char* file, const char* text = R"({"queues": [{}]})") {
    return parse_config(text, file, request_for(Mode::kClient)).value();
  };
  const Config plain = config_of("/etc/lictor/lictor.json");
  CHECK(plain.state_dir == "/var/lib/lictor");
  const Config billing = config_of("/etc/lictor/billing.json");
  CHECK(billing.state_dir == "/var/lib/lictor/billing");
  CHECK(billing.node == plain.node + "-billing");
  CHECK(billing.queues.front().options.node == billing.node);
  const Config named = config_of("/etc/lictor/billing.json",
                                 R"({"node": "n", "state_dir": "/srv/l", "queues": [{}]})");
  CHECK(named.state_dir == "/srv/l");
  CHECK(named.node == "n");
  for (const char* other : {"/home/me/billing.json", "/etc/lictor/sub/a.json", "billing.json",
                            "/etc/lictor/billing.conf", "/etc/lictor/.json"}) {
    CHECK_MESSAGE(config_of(other).state_dir == "/var/lib/lictor", other);
    CHECK(config_of(other).node == plain.node);
  }
}

TEST_CASE("without the default file a client gets the defaults, the daemon an error") {
  const Folder folder;
  LoadRequest request{.mode = Mode::kClient, .default_path = folder / "none.json"};
  request.environment["LICTOR_ROOT"] = "jobs/";
  const auto client = load_config(request).value();
  CHECK(client.file.empty());
  CHECK_FALSE(client.node.empty());
  REQUIRE(client.queues.size() == 1);
  CHECK(client.queues[0].options.queue == "default");
  CHECK(client.queues[0].layout.tasks_prefix == "jobs/default/tasks/");
  CHECK(client.consul.options.addresses == std::vector<std::string>{"http://127.0.0.1:8500"});
  request.mode = Mode::kDaemon;
  const Error error = refusal_of(load_config(request));
  CHECK(error.code == ErrorCode::kInvalid);
  CHECK(error.message.starts_with(
      folder / "none.json" + ": no such file, and \"lictor run\" needs one; write for instance {"));
}

TEST_CASE("a named file must exist and be readable") {
  const Folder folder;
  LoadRequest request{.mode = Mode::kClient};
  request.environment["LICTOR_CONFIG"] = folder / "none.json";
  CHECK(
      message(load_config(request))
          .starts_with("LICTOR_CONFIG " + folder / "none.json" + ": No such file or directory; "));
  request.flags.config = folder / "";
  CHECK(message(load_config(request)).starts_with("--config " + folder / "" + ": Is a directory"));
  request.flags.config = folder.write("big.json", std::string((4U << 20U) + 1, ' '));
  CHECK(contains(message(load_config(request)), "at most 4194304 bytes, got more"));

  if (::geteuid() == 0) {
    request.flags.config = folder.write("secret.json", kSmall);
    REQUIRE(::seteuid(65534) == 0);
    const auto denied = load_config(request);
    REQUIRE(::seteuid(0) == 0);
    REQUIRE_FALSE(denied);
    CHECK(denied.error().code == ErrorCode::kPermissionDenied);
    CHECK(contains(denied.error().message, "secret.json: Permission denied; ask for the right"));
  }
}

TEST_CASE("errors in a file are named by its path as given") {
  const Folder folder;
  LoadRequest request;
  request.flags.config = folder.write("x.json", "{\n\"nodes\": 1}");
  CHECK(message(load_config(request)) ==
        folder / "x.json" + ":2: nodes: unknown key; did you mean \"node\"?");
}

TEST_CASE("variables override the file, and flags override both") {
  LoadRequest request;
  request.environment = {
      {"LICTOR_NODE", "n2"},           {"LICTOR_ROOT", "r2/"},
      {"LICTOR_STATE_DIR", "/state2"}, {"LICTOR_LOG_LEVEL", "debug"},
      {"LICTOR_LOG_FORMAT", "json"},   {"LICTOR_CONSUL_ADDRESSES", "127.0.0.1:1, https://b:2"},
      {"LICTOR_TOKEN_FILE", "/token2"}};
  const std::string text =
      R"({"node": "n1", "root": "r1/", "state_dir": "/state1", "log": {"level": "warn"},
          "consul": {"addresses": ["127.0.0.1:9"], "token": "t1"},
          "queues": [{"executors": {"*": {"noop": {}}}}]})";
  auto config = parse_config(text, "lictor.json", request);
  REQUIRE(config);
  CHECK(config->node == "n2");
  CHECK(config->queues[0].options.node == "n2");
  CHECK(config->queues[0].layout.tasks_prefix == "r2/default/tasks/");
  CHECK(config->state_dir == "/state2");
  CHECK(config->log.level == LogLevel::kDebug);
  CHECK(config->log.format == LogFormat::kJson);
  CHECK(config->consul.options.addresses == std::vector<std::string>{"127.0.0.1:1", "https://b:2"});
  CHECK(config->consul.options.token_file == "/token2");
  CHECK(config->consul.options.token.empty());
  CHECK(config->warnings.empty());

  request.flags.node = "n3";
  request.flags.log_level = "error";
  request.flags.state_dir = "state3";
  config = parse_config(text, "lictor.json", request);
  REQUIRE(config);
  CHECK(config->node == "n3");
  CHECK(config->log.level == LogLevel::kError);
  CHECK(config->log.format == LogFormat::kJson);
  CHECK(config->state_dir == (std::filesystem::current_path() / "state3").string());
}

TEST_CASE("the digest covers the settings that all hosts should share, however they are written") {
  const auto digest = [](const std::string& text) { return parsed(text).digest; };
  const std::string queues = R"("queues": [{"concurrency": 2, "executors": {"*": {"noop": {}}}}])";
  const std::string usual = digest("{" + queues + "}");
  CHECK(usual.size() == 16);
  CHECK(usual ==
        digest(R"({"queues":[ {"executors":{"*":{"noop":{}}}, /* two */ "concurrency":2}]})"));
  CHECK(usual == digest(R"({"node": "b", "state_dir": "/b", "log": {"level": "debug"},
                            "consul": {"addresses": ["127.0.0.1:9"]}, )" +
                        queues + "}"));
  CHECK(usual == digest(R"({"queues": [{"weight": 3, "concurrency": 2,
                                        "executors": {"*": {"noop": {}}}}]})"));
  CHECK(usual != digest(R"({"queues": [{"concurrency": 3, "executors": {"*": {"noop": {}}}}]})"));
  CHECK(usual != digest(R"({"queues": [{"concurrency": 2, "executors": {"A": {"noop": {}}}}]})"));
  CHECK(usual != digest(R"({"root": "r/", )" + queues + "}"));
}

TEST_CASE("an error in a variable or flag names it") {
  const auto with_variable = [](const std::string& name, const std::string& value) {
    LoadRequest request;
    request.environment[name] = value;
    return message(parse_config(kSmall, "lictor.json", request));
  };
  const std::pair<std::string, std::string> refused[] = {{"LICTOR_LOG_LEVEL", "loud"},
                                                         {"LICTOR_LOG_FORMAT", "xml"},
                                                         {"LICTOR_NODE", "a b"},
                                                         {"LICTOR_ROOT", "jobs"},
                                                         {"LICTOR_ROOT", "/jobs/"}};
  for (const auto& [name, value] : refused) {
    const std::string error = with_variable(name, value);
    CAPTURE(error);
    CHECK(error.starts_with(name + ": "));
    CHECK(contains(error, '"' + value + '"'));
  }
  CHECK(with_variable("LICTOR_CONSUL_ADDRESSES", "127.0.0.1:8500,,")
            .starts_with("LICTOR_CONSUL_ADDRESSES: Consul address \"\": "));
  LoadRequest request;
  request.flags.log_level = "";
  CHECK(message(parse_config(kSmall, "lictor.json", request))
            .starts_with("--log-level: expected one of \"trace\""));
}

TEST_CASE("an unknown LICTOR_ variable gives a warning; those of a job and a worker do not") {
  LoadRequest request;
  request.environment = {{"LICTOR_LOGLEVEL", "debug"}, {"CONSUL_HTTP_ADDR", "x"}};
  for (const char* name : {"LICTOR_TASK_ID", "LICTOR_RUN", "LICTOR_PARA_x", "LICTOR_SEED",
                           "LICTOR_WORKER_FD", "LICTOR_XYZZY_PLUGH", "LICTO", "PATH"}) {
    request.environment[name] = "1";
  }
  const auto config = parse_config(kSmall, "lictor.json", request).value();
  CHECK(config.warnings ==
        std::vector<std::string>{
            "LICTOR_LOGLEVEL: no such variable, ignored; did you mean LICTOR_LOG_LEVEL?",
            "LICTOR_XYZZY_PLUGH: no such variable, ignored"});
}

TEST_CASE("a token sent in clear text gives a warning") {
  const auto warnings_of = [](const std::string& consul,
                              const std::map<std::string, std::string>& environment = {}) {
    LoadRequest request;
    request.environment.insert(environment.begin(), environment.end());
    const auto config = parse_config(
        R"({"consul": )" + consul + R"(, "queues": [{"executors": {"*": {"noop": {}}}}]})",
        "lictor.json", request);
    REQUIRE_MESSAGE(config, message(config));
    return config->warnings;
  };
  const auto warns = [&](const std::string& part, const std::string& consul,
                         const std::map<std::string, std::string>& environment = {}) {
    const auto warnings = warnings_of(consul, environment);
    REQUIRE(warnings.size() == 1);
    CHECK_MESSAGE(contains(warnings.front(), part), warnings.front());
  };
  warns("tls_verify", R"({"tls_verify": false})");
  warns("without TLS", R"({"addresses": ["http://10.0.0.5:8500"], "token": "t"})");
  warns("without TLS", R"({"addresses": ["http://10.0.0.5:8500"]})", {{"CONSUL_HTTP_TOKEN", "t"}});
  warns("in place of consul.token_file", R"({"token_file": "/no/such"})",
        {{"CONSUL_HTTP_TOKEN", "t"}});
  for (const char* address : {"http://127.0.0.1:8500", "http://localhost:8500", "http://[::1]:8500",
                              "https://10.0.0.5:8501", "unix:///run/consul.sock"}) {
    CHECK(
        warnings_of(R"({"token": "t", "addresses": [")" + std::string{address} + R"("]})").empty());
  }
  CHECK(warnings_of(R"({"addresses": ["http://10.0.0.5:8500"]})").empty());
}

TEST_CASE("a path that newer Consuls refuse gives a warning") {
  LoadRequest request;
  const auto config =
      parse_config(R"({"root": "my tasks/", "queues": [{"executors": {"*": {"noop": {}}}}]})",
                   "lictor.json", request)
          .value();
  REQUIRE(config.warnings.size() == 1);
  CHECK(contains(config.warnings.front(),
                 R"(tasks_prefix "my tasks/default/tasks/": Consul 1.21.5 and newer refuse such)"));
}

TEST_CASE("a file that does not exist yet is no wrong text: a later start may find it") {
  const auto code_of = [](const std::string& executor) {
    const Error error = refusal_of(parse_config(
        R"({"queues": [{"executors": {"*": )" + executor + "}}]}", "lictor.json", LoadRequest{}));
    return error.code;
  };
  CHECK(code_of(R"({"exec": ["/no/such"]})") == ErrorCode::kFailed);
  CHECK(code_of(R"({"exec": ["/bin/true"], "cwd": "/no/such"})") == ErrorCode::kFailed);
  CHECK(code_of(R"({"exec": ["/bin/true"], "user": "no-such-user"})") == ErrorCode::kFailed);
  CHECK(code_of(R"({"plugin": "/no/such.so"})") == ErrorCode::kFailed);
  CHECK(code_of(R"({"http": {"url": "http://h/", "token_file": "/no/such"}})") ==
        ErrorCode::kFailed);
  CHECK(code_of(R"({"exec": ["true"]})") == ErrorCode::kInvalid);
  CHECK(code_of(R"({"plugin": "/etc/passwd"})") == ErrorCode::kInvalid);
}

TEST_CASE("a root daemon refuses a file, or a folder on its path, that others could change") {
  if (!is_root()) return;
  const Folder folder;
  const std::string file = folder.write("lictor.json", kSmall, 0644);
  const std::string below = folder / "below";
  REQUIRE(::mkdir(below.c_str(), 0755) == 0);
  const std::string deep = folder.write("below/lictor.json", kSmall, 0644);
  const std::string link = folder / "link.json";
  REQUIRE(::symlink(deep.c_str(), link.c_str()) == 0);
  const std::string fifo = below + "/fifo.json";
  REQUIRE(::mkfifo(fifo.c_str(), 0644) == 0);
  const UniqueFd writer{::open(fifo.c_str(), O_RDWR | O_CLOEXEC)};  // or it waits
  LoadRequest request;
  const auto refused = [&](const std::string& path) {
    request.flags.config = path;
    return message(load_config(request));
  };
  for (const std::string& path : {file, deep, link}) CHECK(refused(path).empty());

  REQUIRE(::chmod(file.c_str(), 0666) == 0);
  CHECK(refused(file) == "--config " + file + ": " + file +
                             " may be written by others than root, and lictor runs as root: they "
                             "could make root start programs; chown root and chmod go-w " +
                             file);
  REQUIRE(::chmod(file.c_str(), 0664) == 0);
  CHECK_FALSE(refused(file).empty());
  REQUIRE(::chmod(file.c_str(), 0644) == 0);
  REQUIRE(::chown(file.c_str(), 12345, 0) == 0);
  CHECK(contains(refused(file), file + " belongs to another user than root"));
  request.mode = Mode::kClient;  // a client starts nothing
  CHECK(load_config(request)->warnings.size() == 1);
  request.mode = Mode::kDaemon;
  request.refuse_untrusted = false;
  CHECK(load_config(request)->warnings.size() == 1);
  request.refuse_untrusted = true;

  REQUIRE(::chmod(below.c_str(), 0777) == 0);
  for (const std::string& path : {deep, link, fifo}) {
    CHECK(contains(refused(path), "the folder " + below + " may be written"));
  }
  REQUIRE(::chmod(below.c_str(), 01777) == 0);  // as /tmp is
  CHECK(refused(deep).empty());
  REQUIRE(::chown(below.c_str(), 12345, 0) == 0);
  CHECK_FALSE(refused(deep).empty());
}

TEST_CASE("a root daemon refuses a plug-in in a folder that others may write to") {
  if (!is_root()) return;
  const Folder folder;
  const std::string below = folder / "below";
  REQUIRE(::mkdir(below.c_str(), 0755) == 0);
  std::filesystem::copy_file("/proc/self/exe", below + "/some.so");  // any shared object
  REQUIRE(::chmod((below + "/some.so").c_str(), 0755) == 0);
  LoadRequest request;
  request.flags.config =
      folder.write("lictor.json",
                   R"({"queues": [{"executors": {"A": {"plugin": ")" + below + R"(/some.so"}}}]})");
  CHECK(message(load_config(request)).empty());
  REQUIRE(::chmod(below.c_str(), 0775) == 0);
  CHECK(message(load_config(request))
            .ends_with("they could make root load code; chown root and chmod go-w " + below));
}

TEST_CASE("a root daemon refuses a program that others could change") {
  if (!is_root()) return;
  const Folder folder;
  const std::string below = folder / "below";
  REQUIRE(::mkdir(below.c_str(), 0755) == 0);
  const std::string program = folder.write("below/job", "#!/bin/sh\n", 0755);
  const std::string link = folder / "link";
  REQUIRE(::symlink(program.c_str(), link.c_str()) == 0);
  LoadRequest request;
  const auto refused = [&](const std::string& path, const std::string& more = "") {
    request.flags.config =
        folder.write("lictor.json", R"({"queues": [{"executors": {"A": {"exec": [")" + path +
                                        "\"]" + more + "}}}]}");
    return message(load_config(request));
  };
  CHECK(refused(program).empty());
  CHECK(refused(link).empty());
  REQUIRE(::chmod(below.c_str(), 0775) == 0);
  CHECK(refused(link).starts_with(*request.flags.config +
                                  ": queue \"default\": executor \"A\": program \"" + link +
                                  "\": the folder " + below + " may be written by others"));
  request.refuse_untrusted = false;
  CHECK(refused(link).empty());
  request.refuse_untrusted = true;
  REQUIRE(::chmod(below.c_str(), 0755) == 0);
  REQUIRE(::chmod(program.c_str(), 0777) == 0);
  CHECK_FALSE(refused(program).empty());
  // A program that runs as another user may be that user's.
  REQUIRE(::chmod(program.c_str(), 0755) == 0);
  const passwd* const nobody = ::getpwnam("nobody");
  REQUIRE(nobody != nullptr);
  REQUIRE(::chown(program.c_str(), nobody->pw_uid, nobody->pw_gid) == 0);
  CHECK_FALSE(refused(program).empty());
  CHECK(refused(program, R"(, "user": "nobody")").empty());
}

TEST_CASE("a file with secrets that others can read or write gives a warning") {
  const Folder folder;
  LoadRequest request;
  request.flags.config = folder / "lictor.json";
  const std::string token = folder.write("token", "secret", 0644);
  const std::string rest = R"("queues": [{"executors": {"*": {"noop": {}}}}]})";
  folder.write("lictor.json", "{\"consul\": {\"token_file\": \"" + token + "\"}, " + rest);
  const auto config = load_config(request).value();
  CHECK(config.warnings ==
        std::vector<std::string>{"consul.token_file " + token +
                                 ": readable by every user (mode 0644); chmod o-r it"});

  REQUIRE(::chmod(token.c_str(), 0600) == 0);
  CHECK(load_config(request)->warnings.empty());
  REQUIRE(::chmod(token.c_str(), 0620) == 0);
  CHECK(load_config(request)->warnings.size() == (::geteuid() == 0 ? 1 : 0));
  REQUIRE(::chmod(token.c_str(), 0600) == 0);
  folder.write("lictor.json", R"({"consul": {"token": "secret"}, )" + rest, 0644);
  CHECK(load_config(request)->warnings ==
        std::vector<std::string>{folder / "lictor.json" +
                                 ": holds a secret and is readable by every user (mode 0644); move "
                                 "the token to consul.token_file, or chmod o-r it"});
}

TEST_CASE("the environment is read unchanged, and an empty variable counts as not set") {
  const std::array<const char*, 5> variables{"A=1", "B=x=y", "C=", "broken", nullptr};
  const Environment environment = read_environment(variables.data());
  CHECK(environment == Environment{{"A", "1"}, {"B", "x=y"}});
  CHECK(read_environment(nullptr).empty());
}

}  // namespace lictor::app
