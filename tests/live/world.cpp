#include "world.h"

#include <cstdlib>
#include <optional>
#include <utility>

#include <doctest/doctest.h>

namespace lictor::live {
namespace {

std::unique_ptr<ConsulAgent>& shared() {
  static std::unique_ptr<ConsulAgent> agent;
  return agent;
}

int& count_of_nodes() {
  static int count = 0;
  return count;
}

std::string next_root() {
  static int count = 0;
  return "live-" + std::to_string(++count) + "/";
}

}  // namespace

ConsulAgent& shared_consul() {
  if (!shared()) shared() = std::make_unique<ConsulAgent>();
  return *shared();
}

void stop_shared_consul() { shared().reset(); }

Strictness rules_of_this_run() {
  const char* named = std::getenv("LICTOR_LIVE_RULES");
  return Strictness::parse(named == nullptr ? "" : named);
}

World::World(ConsulAgent& agent, std::string root_or_empty, const Strictness& rules)
    : consul(agent),
      newer_(rules == Strictness{} ? nullptr : std::make_unique<NewerConsul>(agent.port(), rules)),
      kv(agent.address()),
      journal(folder.file("journal")),
      root(root_or_empty.empty() ? next_root() : std::move(root_or_empty)) {}

World::~World() { keep_for_failure("journal", read_text(journal.file())); }

DaemonSettings World::settings(const std::string& node, const json& queue,
                               const std::string& lock) const {
  DaemonSettings settings;
  // Sessions of earlier tests may still be there: no two tests share a name.
  settings.node = node + "." + std::to_string(++count_of_nodes());
  settings.root = root;
  settings.consul = {address()};
  settings.queue["executors"]["*"]["exec"] = {LICTOR_JOB_RECORDER, journal.file(), settings.node,
                                              lock};
  if (!queue.is_null()) settings.queue.merge_patch(queue);
  return settings;
}

DaemonSettings World::settings_with_admin(const std::string& node, const json& queue) const {
  DaemonSettings settings = this->settings(node, queue);
  settings.admin = {"127.0.0.1:0"};
  return settings;
}

std::unique_ptr<LictorDaemon> World::daemon(const std::string& node, const json& queue,
                                            const std::string& lock) {
  return std::make_unique<LictorDaemon>(settings(node, queue, lock));
}

std::unique_ptr<LictorDaemon> World::leading_daemon(const std::string& node, const json& queue,
                                                    const std::string& lock) {
  auto started = daemon(node, queue, lock);
  REQUIRE(eventually([&] { return leads(*started); }));
  return started;
}

std::unique_ptr<LictorDaemon> World::standby_daemon(const std::string& node, const json& queue,
                                                    const std::string& lock) {
  auto started = daemon(node, queue, lock);
  REQUIRE(eventually([&] { return stands_by(*started); }));
  return started;
}

Run World::begun(const std::string& task, int attempt) const {
  std::optional<Run> run;
  REQUIRE(eventually([&] { return (run = journal.run(task, attempt)).has_value(); }));
  return *run;
}

void World::submit_done(const std::string& id, long time, const json& para) {
  submit(id, time, para);
  REQUIRE(eventually([&] { return all_done(); }));
}

Run World::begun_with_child(const std::string& task) const {
  std::optional<Run> run;
  REQUIRE(eventually([&] { return (run = journal.run(task)) && run->child != 0; }));
  return *run;
}

void World::submit(const std::string& id, long time, const json& para) {
  json task{{"taskId", id},
            {"taskTime", std::to_string(time)},
            {"taskTaken", "false"},
            {"taskType", "Record"}};
  if (!para.is_null()) task["taskPara"] = para;
  kv.put_json(task_key(id), task);
}

std::string World::leader() {
  const auto entry = kv.get(leader_key());
  if (!entry || entry->session.empty()) return {};
  const json value = json::parse(entry->value, nullptr, false);
  return value.is_object() ? value.value("node", "") : "";
}

std::string World::admin_url(const LictorDaemon& daemon) {
  const auto entry = kv.get(member_key(daemon));
  return entry && !entry->session.empty() ? json::parse(entry->value).at("admin").at(0) : "";
}

bool World::stands_by(const LictorDaemon& daemon) {
  return !kv.sessions(daemon.session_name()).empty() && !leads(daemon);
}

std::vector<std::string> command_line(const World& world, const std::vector<std::string>& arguments,
                                      const std::string& consul) {
  const std::string config = world.folder.file("client.json");
  write_text(config, "{}");
  std::vector<std::string> line{LICTOR_COMMAND, "--config", config, "--root",
                                world.root,     "--consul", consul};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return line;
}

Output lictor(const World& world, const std::vector<std::string>& arguments) {
  return run(command_line(world, arguments, world.address()));
}

Output lictor(const LictorDaemon& daemon, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), LICTOR_COMMAND);
  arguments.insert(arguments.end(), {"--config", daemon.config_file()});
  return run(arguments);
}

bool says(const Output& output, const std::string& text) {
  INFO(output.out);
  const bool found = contains(output.out, text);
  CHECK(found);
  return found;
}

std::string ends(const Output& output, int exit_code, std::initializer_list<std::string> texts) {
  INFO(output.out);
  CHECK(output.exit_code == exit_code);
  for (const std::string& text : texts) says(output, text);
  return output.out;
}

}  // namespace lictor::live
