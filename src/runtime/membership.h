#pragma once

// The daemon's own session and the keys that it holds with it.
//
// Consul deletes the keys when the session ends (its behavior is "delete"), so the entries of dead
// daemons vanish by themselves, within two of its TTLs.
//
//   none --renew the remembered one, or create--> held --renewal: gone--> destroyed --> none
//                                                   |
//                                                   +--withdraw()--> session destroyed, keys gone

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/transport.h"
#include "runtime/loop.h"
#include "runtime/session_file.h"

namespace lictor::runtime {

/// Holds `members/<node>` in each of the daemon's queues by a session that deletes them when it
/// ends, so that people and commands see which daemons take part and where their admin APIs are.
/// Nothing else relies on it: a failure is logged once and tried again.
class Membership : public LoopMember {
 public:
  struct Options {
    std::string node;
    std::string value;  ///< JSON object about this daemon; "seen" is added, by the clock
    std::vector<std::string> keys;  ///< one for each queue
    std::vector<std::string> session_checks;
    std::string state_dir;  ///< remembers the session, so that a restart takes it up again
  };

  /// `loop` and `transport` must outlive it.
  Membership(Options options, Loop& loop, net::Transport& transport);

  void step(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override { return next_at_; }

  /// Whether the daemon has a session.
  [[nodiscard]] bool joined() const { return held_; }
  /// Why the last try to join failed; empty: no failure, or joined.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

  /// Sets another value, written now, or after the requests that are under way.
  void set_value(std::string value);

  /// Destroys the session, and with it the keys; waits for the answer, at most a second.
  void withdraw();

 private:
  /// `on_reply` runs on the loop's thread, after a step. While a request is under way, no other
  /// round begins (waiting_).
  void send(http::Request request, std::function<void(const http::Response&)> on_reply);
  void create();
  /// Writes all entries, with the session as the holder of each.
  void acquire();
  void on_created(const http::Response& response);
  void on_renewed(const http::Response& response);
  void on_acquired(const std::string& key, const http::Response& response);
  void lose();
  void destroy_lost();
  void retry();
  void report_error(const std::string& about, const std::string& message, const std::string& error);
  void report_answered();

  Options options_;
  const SessionFile file_;
  Loop& loop_;
  net::Transport& transport_;

  Instant now_{};                                                           // of the last step
  const std::shared_ptr<const bool> alive_ = std::make_shared<bool>(true);  // ends with this
  bool held_ = false;
  bool changed_ = false;  // the value changed while requests were under way
  std::string trouble_;
  std::string session_;       // held, or remembered and not verified yet
  std::string lost_session_;  // reported gone; to be destroyed
  std::size_t waiting_ = 0;   // requests under way
  Duration backoff_{};
  Instant next_at_{};
  // The last failure of each kind, since its last success.
  std::map<std::string, std::string> reported_;
};

}  // namespace lictor::runtime
