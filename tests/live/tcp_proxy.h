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
  /// From now on nothing comes through, and nobody is told: bytes are swallowed, connections stay.
  void cut() { is_cut_ = true; }
  /// Connections from before the cut are reset; new ones come through.
  void heal() { is_cut_ = false; }
  [[nodiscard]] bool is_cut() const { return is_cut_; }

  enum class Before { kRequest, kReply };
  /// Cuts when a client next says `word`: what says it, or the reply to it, is the first that does
  /// not come through.
  void cut_at(std::string word, Before before);

  /// From now on every `from` in what the server says reads `to`, where one piece of it holds it
  /// whole; an empty `from` ends that.
  void alter_replies(std::string from, std::string to);
  /// How often it was altered since alter_replies().
  [[nodiscard]] int altered() const { return altered_; }

 private:
  void run();
  [[nodiscard]] bool pass_request(int from, int to, bool is_cut);
  [[nodiscard]] bool pass_reply(int from, int to, bool is_cut);

  int target_port_;
  int port_ = 0;
  int listener_ = -1;
  std::atomic<bool> is_cut_ = false;
  std::mutex mutex_;
  std::string word_;  // empty: none is waited for
  Before before_ = Before::kRequest;
  std::string altered_from_;  // empty: nothing is altered
  std::string altered_to_;
  std::atomic<int> altered_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace lictor::live
