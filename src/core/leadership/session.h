#pragma once

// The session that holds the locks.
//
//   kNone ---start---> kOpening ---created---> kOpen ---close---> kClosing ---destroyed---> kClosed
//     |                 ^    ^                 |  ^ |
//     | start with a    |    +---- replace ----+--|-+
//     | kept one        | replace                 | alive
//     +-----------> kChecking --------------------+
//                       ^                      |
//                       +-------- check -------+
//
// A session that can't be destroyed in time is left to its TTL.

#include <optional>
#include <string>

#include "core/effect.h"
#include "core/event.h"
#include "core/options.h"
#include "core/requests.h"

namespace lictor::core {

class Session {
 public:
  enum class Change {
    kNone,
    kAlive,  // campaign with it; proves nothing about a lock
    kGone,   // says a renewal; a lagging server may say it of a live session
    kClosed,
  };

  Session(const QueueOptions& options, Requests& requests, StoreTrouble& trouble)
      : options_(options), requests_(requests), trouble_(trouble) {}

  /// `previous`: the session of an earlier daemon of this node; taken up if it still lives.
  void start(Instant now, const std::optional<std::string>& previous, Effects& out);
  /// Asks whether the session lives; kAlive or kGone follows.
  void check(Instant now, Effects& out);
  /// Opens another session, since this one is gone.
  void replace(Effects& out);
  /// Limits how long close() waits for Consul's answer.
  void close_until(Instant until) { close_until_ = until; }
  Change close(Effects& out);

  Change on(Instant now, const SessionCreated& reply, Effects& out);
  Change on(Instant now, const SessionRenewed& reply, Effects& out);
  Change on(Instant now, const SessionDestroyed& reply, Effects& out);
  Change on_time(Instant now, Effects& out);
  /// Renews again shortly, since the last answer may be wrong.
  void renew_soon(Instant now);

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] bool closed() const { return state_ == State::kClosed; }
  [[nodiscard]] Instant next_deadline() const;

 private:
  enum class State { kNone, kChecking, kOpening, kOpen, kClosing, kClosed };

  void open(Effects& out);
  void renew(Instant now, Effects& out);
  void destroy(Effects& out);
  Change give_up(Effects& out);

  const QueueOptions& options_;
  Requests& requests_;
  StoreTrouble& trouble_;
  State state_ = State::kNone;
  std::string id_;
  RequestId create_, renew_, destroy_;  // in flight; zero when none
  bool closing_ = false;                // destroy it as soon as its id is known
  Instant renew_at_ = Instant::max();
  Instant retry_at_ = Instant::max();  // of the creation or the destruction
  Instant close_until_ = Instant::max();
};

}  // namespace lictor::core
