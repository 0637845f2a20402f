#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "process.h"
#include "support.h"

namespace lictor::live {

/// CONSUL_BIN, or the binary that consul/get-consul.sh finds or fetches.
[[nodiscard]] const std::string& consul_binary();

/// The command that starts an agent with only the ports of its configuration, whatever its version.
[[nodiscard]] std::vector<std::string> agent_command(const std::string& config_file);

/// One Consul server on the loopback, on ports of its own, its data on disk.
class ConsulAgent {
 public:
  /// `extra` is laid over the agent's configuration. Returns when writes are taken, or with ACLs
  /// on, when there is a leader.
  explicit ConsulAgent(const json& extra = {});
  ~ConsulAgent();
  ConsulAgent(const ConsulAgent&) = delete;
  ConsulAgent& operator=(const ConsulAgent&) = delete;

  [[nodiscard]] std::string address() const;  ///< "http://127.0.0.1:port"
  [[nodiscard]] int port() const { return http_port_; }
  [[nodiscard]] const std::string& node() const { return node_; }
  [[nodiscard]] pid_t pid() const { return process_->pid(); }

  void pause() { process_->signal(SIGSTOP); }
  void resume() { process_->signal(SIGCONT); }
  /// TERM, as a service manager does it; its data stay.
  void stop();
  void start();

 private:
  [[nodiscard]] bool starts();

  TemporaryFolder folder_;
  json extra_;
  std::string node_;
  int http_port_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace lictor::live
