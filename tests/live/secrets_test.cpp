// What jobs, logs and answers must not hold, and what a task's parameters cannot do.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "guarded_consul.h"
#include "skip.h"
#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;

// NUL-separated, as in /proc.
std::vector<std::string> parts_of(const std::string& bytes) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\0', begin), bytes.size());
    parts.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// A job that writes down what it was started with.
struct Witness {
  const World& world;
  const std::string script = world.folder.file("job.sh");
  const std::vector<std::string> argv{"/bin/sh", script, "one argument", world.folder.file("seen")};

  explicit Witness(const World& of) : world(of) {
    write_text(script,
               "cp /proc/$$/environ \"$2.environ\" && cp /proc/$$/cmdline \"$2.args\" && "
               "mv \"$2.args\" \"$2\"\n");
  }
  [[nodiscard]] bool ran() const { return std::filesystem::exists(argv.back()); }
  [[nodiscard]] std::vector<std::string> arguments() const {
    return parts_of(read_text(argv.back()));
  }
  [[nodiscard]] std::map<std::string, std::string> environment() const {
    std::map<std::string, std::string> variables;
    for (const std::string& entry : parts_of(read_text(argv.back() + ".environ"))) {
      const std::size_t equals = entry.find('=');
      variables[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
    return variables;
  }
};

TEST_SUITE_BEGIN("live");

TEST_CASE("parameters reach a job as LICTOR_PARA_ variables and as nothing else") {
  World world;
  const Witness witness{world};
  DaemonSettings settings = world.settings("a");
  settings.queue["executors"] = {{"*", {{"exec", witness.argv}}}};
  settings.environment = {{"PATH", "/usr/bin:/bin"}, {"LD_LIBRARY_PATH", "/nowhere"}};
  LictorDaemon daemon{settings};
  const std::string trap = world.folder.file("trap");
  const std::string evil = "x'\"; touch " + trap + "; $(touch " + trap + ") `touch " + trap +
                           "`\nLICTOR_ATTEMPT=99\nPATH=/evil";
  const json record{{"taskType", "Any\nLD_PRELOAD=/evil.so; touch " + trap},
                    {"exec", {"/bin/touch", trap}},
                    {"env", {{"LD_PRELOAD", "/evil.so"}}},
                    {"taskPara",
                     {{"value", evil},
                      {"LD_PRELOAD", "/evil.so"},
                      {"PATH", "/evil"},
                      {"BASH_ENV", trap},
                      {"=X", "1"},
                      {"a=b", "2"},
                      {"line\nLICTOR_ATTEMPT=99\nX", "3"},
                      {std::string{"nul\0LD_PRELOAD=/evil.so", 23}, "4"},
                      {"../../LICTOR_COMMIT", "/etc/passwd"}}}};
  world.kv.put_json(world.task_key("1"), record);
  REQUIRE(eventually([&] { return witness.ran(); }));

  CHECK(witness.arguments() == witness.argv);
  CHECK_FALSE(std::filesystem::exists(trap));
  const auto environment = witness.environment();
  for (const auto& [name, value] : environment) {
    INFO(name, "=", value);
    const bool is_word = name.find_first_not_of(
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                             "0123456789_") == std::string::npos;
    CHECK(is_word);
    CHECK_FALSE(name.starts_with("LD_"));
    CHECK(name != "BASH_ENV");
  }
  CHECK(environment.at("PATH") == "/usr/bin:/bin");
  CHECK(environment.at("LICTOR_ATTEMPT") == "1");
  CHECK(environment.at("LICTOR_PARA_value") == evil);
  CHECK(environment.at("LICTOR_PARA_LD_PRELOAD") == "/evil.so");
  CHECK(environment.at("LICTOR_PARA_PATH") == "/evil");
  CHECK(environment.at("LICTOR_COMMIT") != "/etc/passwd");
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 0);
}

TEST_CASE("the token is in no job, log, answer or key") {
  GuardedConsul consul;
  World world{consul.agent, "lictor/"};
  const Witness witness{world};
  const std::string secret = consul.make_token_of("daemon");
  const std::string admin = "http://127.0.0.1:" + std::to_string(free_port());
  DaemonSettings settings = world.settings("a");
  settings.queue["executors"] = {{"*", {{"exec", witness.argv}}}};
  settings.environment = {{"CONSUL_HTTP_TOKEN", secret}, {"LICTOR_LOG_LEVEL", "trace"}};
  settings.registers = true;
  settings.admin = {admin.substr(7)};
  LictorDaemon daemon{settings};
  consul.kv.put_json("lictor/default/tasks/1", json{{"taskType", "Any"}});
  consul.kv.put("lictor/default/tasks/bad", "bad");
  REQUIRE(eventually([&] {
    return witness.ran() && consul.kv.list("lictor/default/tasks/").empty() &&
           consul.kv.has("lictor/default/members/" + daemon.node());
  }));

  for (const auto& [name, value] : witness.environment()) {
    CHECK_FALSE(name.starts_with("CONSUL_"));
    CHECK(value.find(secret) == std::string::npos);
  }
  std::map<std::string, std::string> texts{{"log", daemon.log()}};
  for (const KvEntry& entry : consul.kv.list("")) texts["key " + entry.key] = entry.value;
  Kv face{admin};
  for (const char* path : {"/v1/status", "/healthz", "/readyz", "/v1/tasks/1/why?queue=default",
                           "/v1/logs?queue=default&id=1"}) {
    const HttpAnswer answer = face.request("GET", path);
    CHECK(answer.status != 0);
    texts[path] = answer.body;
  }
  for (const char* command : {"check", "leader", "members", "list", "version"}) {
    const std::vector<std::string> line{LICTOR_COMMAND, "--config", daemon.config_file(), command,
                                        "--json"};
    const Output output = run(line, {{"CONSUL_HTTP_TOKEN", secret}});
    CHECK_MESSAGE(output.exit_code == 0, command << ": " << output.out);
    texts[command] = output.out;
  }
  for (const auto& [where, text] : texts) {
    CHECK_FALSE(text.empty());
    CHECK_MESSAGE(text.find(secret) == std::string::npos, where);
  }
}

TEST_CASE("files that give a token away are warned of, in the log once and by check") {
  World world;
  DaemonSettings settings = world.settings("a");
  settings.token_file = world.folder.file("token");
  write_text(settings.token_file, "00000000-0000-0000-0000-000000000000\n");
  std::filesystem::permissions(settings.token_file, std::filesystem::perms{0644});
  LictorDaemon daemon{settings};
  REQUIRE(eventually([&] { return world.leads(daemon); }));
  const std::string warning = "token: readable by every user (mode 0644); chmod o-r it";
  const std::string log = daemon.log();
  CHECK(log.find(warning) != std::string::npos);
  CHECK(log.find(warning) == log.rfind(warning));
  const Output report = run({LICTOR_COMMAND, "--config", daemon.config_file(), "check"});
  CHECK_MESSAGE(report.out.find(warning) != std::string::npos, report.out);
}

TEST_CASE("a state folder that others may write to is warned of, in the log and by check") {
  World world;
  const auto daemon = world.leading_daemon("a");
  const std::string warning = " may be written by everybody: ";
  CHECK_FALSE(daemon->logged(warning));
  REQUIRE(daemon->stop() == 0);
  std::filesystem::permissions(daemon->state_dir(), std::filesystem::perms{0777});
  daemon->start();
  REQUIRE(eventually([&] { return daemon->logged(warning); }));
  const Output report = run({LICTOR_COMMAND, "--config", daemon->config_file(), "check"});
  CHECK_MESSAGE(report.out.find(warning) != std::string::npos, report.out);
}

TEST_CASE("a daemon of root does not start with a configuration that others could change") {
  if (!is_root()) return;
  World world;
  const auto daemon = world.leading_daemon("a");
  REQUIRE(daemon->stop() == 0);
  std::filesystem::permissions(daemon->config_file(), std::filesystem::perms{0666});
  daemon->start();
  CHECK(daemon->wait() == 2);
  CHECK(daemon->logged("may be written by others than root, and lictor runs as root"));
  const Output report = run({LICTOR_COMMAND, "--config", daemon->config_file(), "check"});
  CHECK(report.exit_code == 2);
  CHECK_MESSAGE(report.out.find("may be written by others than root") != std::string::npos,
                report.out);
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
