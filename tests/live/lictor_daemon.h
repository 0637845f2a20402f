#pragma once

#include <signal.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "process.h"
#include "support.h"

namespace lictor::live {

struct DaemonSettings {
  std::string node;
  std::string root = "lictor/";
  std::vector<std::string> consul;
  std::string token_file;
  bool registers = false;             ///< the service in Consul's catalog
  std::vector<std::string> admin;     ///< what its admin API listens on
  json queue;                         ///< settings of the queue "default", laid over the tests' own
  std::vector<std::string> prefix{};  ///< of its command line
  std::vector<json> more_queues{};    ///< as `queue`, with names of their own
  json consul_extra{};                ///< laid over the section "consul"
  std::map<std::string, std::string> environment{};
  std::string hang_timeout{};  ///< "": by default, which is a third of session_ttl
  std::string user{};          ///< "": ours
  /// With `user`: ambient capabilities, as setpriv(1) names them ("+kill,+chown").
  std::string capabilities{};
};

/// The log text of a daemon that waits because Consul keeps the lock after its last owner.
inline constexpr const char* kWaitsForLockDelay = "waiting for its lock-delay";

/// A daemon of lictor with a state folder of its own.
class LictorDaemon {
 public:
  explicit LictorDaemon(DaemonSettings settings);
  /// Kills it, and waits for its warden, so that nothing is left behind.
  ~LictorDaemon();
  LictorDaemon(const LictorDaemon&) = delete;
  LictorDaemon& operator=(const LictorDaemon&) = delete;

  /// Starts it, also again.
  void start();
  void kill();  ///< SIGKILL, and waits for its end
  void freeze() { process_->signal(SIGSTOP); }
  void thaw() { process_->signal(SIGCONT); }
  /// Its process, then that of its warden: SIGKILL, as when the host dies.
  void kill_with_warden();
  /// Writes the configuration again, with `queue` laid over it, and HUP.
  void reload(const json& queue);
  void reload_text(const std::string& config);
  void hang_up() { process_->signal(SIGHUP); }
  /// Its configuration, with `queue` laid over it.
  [[nodiscard]] std::string config_with(const json& queue);
  /// Sends TERM; returns the exit code, or std::nullopt if the daemon does not end.
  std::optional<int> stop();
  void terminate() { process_->signal(SIGTERM); }
  std::optional<int> wait() { return process_->wait(); }

  [[nodiscard]] const std::string& node() const { return settings_.node; }
  [[nodiscard]] std::string config_file() const { return folder_.file("lictor.json"); }
  [[nodiscard]] std::string state_dir() const { return folder_.file("state"); }
  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  [[nodiscard]] bool runs() { return process_ && process_->runs(); }
  [[nodiscard]] std::string log() const { return read_text(folder_.file("log")); }
  [[nodiscard]] bool logged(const std::string& text) const {
    return log().find(text) != std::string::npos;
  }
  /// The name of its session in Consul.
  [[nodiscard]] std::string session_name() const { return "lictor default " + settings_.node; }

 private:
  [[nodiscard]] bool warden_is_gone() const;

  DaemonSettings settings_;
  TemporaryFolder folder_;
  std::unique_ptr<Process> process_;
};

}  // namespace lictor::live
