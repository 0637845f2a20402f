#pragma once

#include <atomic>
#include <mutex>
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
  /// From now on nothing comes through, and nobody notices: bytes are swallowed, connections stay.
  void cut() { is_cut_ = true; }
  /// Connections from before the cut are reset; new ones come through.
  void heal() { is_cut_ = false; }
  [[nodiscard]] bool is_cut() const { return is_cut_; }

  enum class Before { kRequest, kReply };
  /// Cuts when a client next sends `word`: that message, or the reply to it, is the first that does
  /// not come through.
  void cut_at(std::string word, Before before);

 private:
  void run();
  [[nodiscard]] bool pass_request(int from, int to, bool is_cut);

  int target_port_;
  int port_ = 0;
  int listener_ = -1;
  std::atomic<bool> is_cut_ = false;
  std::mutex mutex_;
  std::string word_;  // empty: none is waited for
  Before before_ = Before::kRequest;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace lictor::live
