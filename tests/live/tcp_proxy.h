#pragma once

#include <atomic>
#include <string>
#include <thread>

namespace lictor::live {

/// The network between a daemon and its Consul: forwards connections, until it is cut.
class TcpProxy {
 public:
  explicit TcpProxy(int target_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  [[nodiscard]] std::string address() const;
  /// From now on nothing comes through, and nobody is told: bytes are swallowed, connections stay.
  void cut() { is_cut_ = true; }
  /// Connections from before the cut are reset; new ones come through.
  void heal() { is_cut_ = false; }

 private:
  void run();

  int target_port_;
  int port_ = 0;
  int listener_ = -1;
  std::atomic<bool> is_cut_ = false;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace lictor::live
