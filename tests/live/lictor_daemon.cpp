#include "lictor_daemon.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <utility>

namespace lictor::live {
namespace {

std::string command() {
  const char* named = std::getenv("LICTOR_BIN");
  return named != nullptr && *named != '\0' ? named : LICTOR_COMMAND;
}

json config_of(const DaemonSettings& settings, const std::string& state_dir) {
  json queues = json::array();
  const auto add = [&](const json& queue) {
    // The shortest session that Consul allows, and the shortest lock-delay that leaves room for two
    // lost proofs of leadership.
    json full{
        {"name", "default"}, {"session_ttl", "10s"}, {"lock_delay", "12s"}, {"kill_grace", "1s"}};
    full.merge_patch(queue);
    queues.push_back(full);
  };
  add(settings.queue);
  for (const json& queue : settings.more_queues) add(queue);
  json config{{"node", settings.node},
              {"root", settings.root},
              {"state_dir", state_dir},
              {"log", {{"level", "debug"}}},
              {"consul", {{"addresses", settings.consul}, {"register", settings.registers}}},
              {"admin", {{"listen", settings.admin}}},
              {"queues", queues}};
  if (!settings.consul_extra.is_null()) config["consul"].merge_patch(settings.consul_extra);
  if (!settings.hang_timeout.empty()) config["hang_timeout"] = settings.hang_timeout;
  if (!settings.token_file.empty()) config["consul"]["token_file"] = settings.token_file;
  return config;
}

}  // namespace

LictorDaemon::LictorDaemon(DaemonSettings settings) : settings_(std::move(settings)) {
  write_text(folder_.file("lictor.json"), config_of(settings_, folder_.file("state")).dump(2));
  start();
}

LictorDaemon::~LictorDaemon() {
  if (process_) process_->signal(SIGKILL);
  process_.reset();
  // The warden of a dead daemon ends the jobs, and exits.
  if (!eventually([&] { return warden_is_gone(); }, 20s)) {
    std::cerr << "the warden of " << settings_.node << " is still there\n";
  }
  keep_for_failure("lictor " + settings_.node, log());
}

void LictorDaemon::start() {
  std::vector<std::string> argv = settings_.prefix;
  std::string program = command();
  if (!settings_.user.empty()) {
    // The build folder may be closed to that user.
    std::filesystem::copy_file(program, folder_.file("lictor"),
                               std::filesystem::copy_options::skip_existing);
    program = folder_.file("lictor");
    const passwd* user = getpwnam(settings_.user.c_str());
    if (user == nullptr) throw std::runtime_error{"no user " + settings_.user};
    for (const std::string& path : {folder_.path().string(), config_file()}) {
      if (chown(path.c_str(), user->pw_uid, user->pw_gid) != 0) {
        throw std::runtime_error{"cannot chown " + path};
      }
    }
    std::filesystem::permissions(folder_.path(), std::filesystem::perms{0755});
    // That user may not enter our folder either, which is the jobs' too.
    argv.insert(argv.end(), {"env", "-C", "/"});
    argv.insert(argv.end(), {"setpriv", "--reuid", std::to_string(user->pw_uid), "--regid",
                             std::to_string(user->pw_gid), "--clear-groups"});
    const std::string none = "-all";
    const std::string set =
        settings_.capabilities.empty() ? none : none + "," + settings_.capabilities;
    for (const char* which : {"--bounding-set", "--inh-caps", "--ambient-caps"}) {
      argv.insert(argv.end(), {which, set});
    }
  }
  argv.insert(argv.end(), {program, "run", "--config", folder_.file("lictor.json")});
  process_ = std::make_unique<Process>(argv, folder_.file("log"), settings_.environment);
}

void LictorDaemon::kill() {
  process_->signal(SIGKILL);
  static_cast<void>(process_->wait());
}

void LictorDaemon::kill_with_warden() {
  process_->signal(SIGSTOP);  // or it would see its warden die
  for (const pid_t child : children_of(pid())) ::kill(child, SIGKILL);
  kill();
}

void LictorDaemon::reload(const json& queue) { reload_text(config_with(queue)); }

std::string LictorDaemon::config_with(const json& queue) {
  settings_.queue.merge_patch(queue);
  return config_of(settings_, folder_.file("state")).dump(2);
}

void LictorDaemon::reload_text(const std::string& config) {
  write_text(folder_.file("lictor.json"), config);
  process_->signal(SIGHUP);
}

std::optional<int> LictorDaemon::stop() {
  terminate();
  return process_->wait();
}

// Daemon and warden both hold the lock of the state folder.
bool LictorDaemon::warden_is_gone() const {
  const int fd = open(folder_.file("state/lock").c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return true;
  const bool gone = flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return gone;
}

}  // namespace lictor::live
