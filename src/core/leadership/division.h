#pragma once

// How many partitions a queue has, and who shares them. The hosts' configurations say how many
// there should be, and the key `partitions` says how many there are; without the key there is one.
// The number changes when all members want the same:
//
//   from one:      all stop, and the first that sees that nobody leads writes the number
//   from several:  all hand over to one of them. It ends its jobs, writes the new number while it
//                  holds all locks, and lets go
//   from a written 1:  as from several, but by the leader: one partition is not handed over
//
// Then each host serves the queue with the new number. All of this is done under the old locks, so
// order by key and one run at a time are kept. The service of a queue has one number for its life:
//
//   unknown --the number is read--> serving --holds all, is to write--> finishing --> writing
//      ^                               |                                    |            |
//      |                               | another number, or to be divided   |            | answered
//      |                               v                                    |            |
//      +--- stopped, no job runs --- ending <-------------------------------+------------+
//
// A stranger may write the key, too. Then no job has ended before the number changes. So a host
// serves a number only when no lock of another number is held, or was lost less than a lock-delay
// ago. A lock that was acquired before the number was written is another number's, too. A leader of
// one partition checks for a number now and then. Consul does not say when a lock was lost. So the
// lock-delay begins when a host first sees the loss, and that host deletes the lock: no later start
// waits for it.
//
// The flags of the key say by which `serialize_by` tasks belong to partitions. Two hosts that
// differ in it would run the same task. So a host that differs waits until nobody has held a lock
// for a while, and then writes its own.
//
// A host asks for another number only when its token may write it. Otherwise all hosts would give
// up their partitions for a change that Consul refuses.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/event.h"
#include "core/leadership/balancer.h"

namespace lictor::core {

struct FleetMember {
  BalancerMember member;
  std::uint32_t desired_partitions = 1;  ///< the number of partitions in its configuration
};

/// The members and the number, read together.
struct FleetRead {
  std::string error;     ///< empty: the other members are valid
  bool refused = false;  ///< the error: the token may not read everything
  std::vector<FleetMember> members;
  std::optional<std::uint32_t> count;  ///< of partitions; empty: Consul has no number
  std::uint64_t count_index = 0;       ///< the ModifyIndex of that number; 0: none
  bool maps_otherwise = false;         ///< that number is for another serialize_by
  struct Lock {
    std::string key;
    LeaderRead read;
    std::uint32_t count = 1;  ///< the number of partitions that the lock belongs to
  };
  std::vector<Lock> locks;  ///< the leader key and all below it, of any number of partitions
};

// Requests to Consul, one at a time. Each but ReadFleet is answered by a DivisionReply.
struct ReadFleet {
  bool with_locks = false;
};
/// Asks whether there is a number. kYes, kNo; kRefused: the token may not read it.
struct ReadCount {};
/// Asks whether there is no number, by the consistent read that AcquireLock with if_single
/// makes. kYes; kRefused: the token may not ask.
struct ProbeSingle {};
/// Asks whether the token may change the number to `to`. kYes, kRefused.
struct ProbeChange {
  std::uint32_t to = 0;
};
/// Writes the first number, unless one of the locks has changed. kYes; kNo: a lock has changed, or
/// there is a number; kRefused: the same request would always be refused. With a `count_index`:
/// writes that number again, for this host's serialize_by.
struct CreateCount {
  std::uint32_t count = 0;
  std::vector<FleetRead::Lock> locks;
  std::uint64_t count_index = 0;
};
/// Deletes the locks, unless one of them has changed since. kYes; kNo: one has changed; kRefused.
struct DeleteLocks {
  std::vector<FleetRead::Lock> locks;
};
/// Changes the number (1: deletes it), while `session` holds all locks. Answers as above.
struct ChangeCount {
  std::uint32_t to = 0;
  std::uint32_t from = 0;
  std::uint64_t count_index = 0;
  std::string session;
};

struct DivisionReply {
  enum class Answer { kYes, kNo, kRefused, kUnknown };
  Answer answer = Answer::kUnknown;
  std::string error;
};

// Acts, which the owner carries out.
/// Serve the queue with so many partitions. `only_single`: see QueueOptions.
struct ServeQueue {
  std::uint32_t count = 1;
  std::uint64_t index = 0;
  bool only_single = false;
};
/// Request the stop of the queue's service.
struct EndService {
  bool keeps_locks = false;
};
/// The queue's service has stopped, and no job of it runs.
struct DropService {};

/// A note for people.
struct DivisionNote {
  enum class Kind {
    kRequestFailed,
    kCountUnreadable,
    kFleetUnreadable,
    kMayNotChange,
    kNotDivided,     // while not all members want it
    kWaits,          // until the number can be written
    kOldLocks,       // the locks of another number are not free yet
    kMapsOtherwise,  // the number is for another serialize_by
    kStays,          // until all members want another number
    kNotWritten,
    kNotChanged,
    kDivided,
    kMapped,  // the number is for this host's serialize_by now
    kFinishes,
    kChanged,
    kGone,
  };
  Kind kind;
  std::string error{};
  std::uint32_t partitions = 0;  ///< the new number, if there is one
};

using DivisionAct =
    std::variant<ReadFleet, ReadCount, ProbeSingle, ProbeChange, CreateCount, DeleteLocks,
                 ChangeCount, ServeQueue, EndService, DropService, MembersSeen, DivisionNote>;
using DivisionActs = std::vector<DivisionAct>;

/// The number that all members want; 0: they disagree, or there is no member.
[[nodiscard]] std::uint32_t agreed_partitions(const std::vector<FleetMember>& members);

/// This host's part in a change of the number.
struct CountChange {
  std::uint32_t to = 0;                 ///< 0: the number stays
  bool is_ours = false;                 ///< this host writes it
  std::vector<BalancerMember> members;  ///< for the core; this host is among them
};
/// `count`: Consul's number.
[[nodiscard]] CountChange plan_change(const std::vector<FleetMember>& members,
                                      const FleetMember& self, std::uint32_t count);

/// Pure, and not thread-safe. Acts are carried out in their order, before the next call.
class Division {
 public:
  /// `wanted`: the number of partitions in this host's configuration.
  Division(std::string node, std::uint32_t weight, std::uint32_t wanted)
      : node_(std::move(node)), weight_(weight), wanted_(wanted) {}

  void reconfigure(Instant now, std::uint32_t weight, std::uint32_t wanted);
  /// The daemon stops: whatever is answered from now on is ignored.
  void stop() { stopping_ = true; }

  void on(Instant now, const FleetRead& read, DivisionActs& out);
  void on(Instant now, const DivisionReply& reply, DivisionActs& out);

  /// The state of the queue's service, since the last ServeQueue.
  struct Service {
    bool count_changed = false;  // see Queue::count_changed()
    bool holds_all = false;      // asked for only if is_writer()
    bool stopped = false;
    bool any_job = false;
    std::optional<std::string> kept_by{};      // the session of its Drained
    Instant locks_free_from = Instant::min();  // see Queue::locks_free_from()
  };
  /// Call when any of these members has changed, and at next_deadline().
  void on_time(Instant now, const Service& service, DivisionActs& out);
  [[nodiscard]] Instant next_deadline() const;

  /// Whether this host must change the number as soon as it holds all locks.
  [[nodiscard]] bool is_writer() const { return change_.is_ours; }
  /// How many partitions there are; 0: unknown, and the queue is not served.
  [[nodiscard]] std::uint32_t count() const { return phase_ == Phase::kUnknown ? 0 : count_; }
  /// How many partitions this host asks for: the number in its configuration or, while its token
  /// may not change the number, the present one.
  [[nodiscard]] std::uint32_t desired_partitions() const { return may_change_ ? wanted_ : count_; }
  /// Why the number is not known; null if there is no note yet.
  [[nodiscard]] const DivisionNote* waits_for() const;

 private:
  enum class Phase { kUnknown, kServing, kFinishing, kWriting, kEnding };
  enum class Pending { kNothing, kFleet, kCount, kSingle, kRight, kCreate, kDelete, kChange };
  using Answer = DivisionReply::Answer;
  using Note = DivisionNote::Kind;

  void ask(Pending what, DivisionAct request, DivisionActs& out);
  void ask_next(Instant now, DivisionActs& out);
  void on_right(Instant now, const DivisionReply& reply, DivisionActs& out);
  void on_created(Instant now, const DivisionReply& reply, DivisionActs& out);
  void on_changed(Instant now, const DivisionReply& reply, DivisionActs& out);
  void on_refused(Instant now, const DivisionReply& reply, DivisionActs& out);
  void give_up_change(Instant now, const std::string& error, DivisionActs& out);
  void on_unserved(Instant now, const FleetRead& fleet, DivisionActs& out);
  void on_served(const FleetRead& fleet, DivisionActs& out);
  void send_members(const FleetRead& fleet, DivisionActs& out);
  void write(const Service& service, DivisionActs& out);
  void end(DivisionActs& out);
  void serve(ServeQueue with, DivisionActs& out);
  [[nodiscard]] Instant next_round(Instant now);
  void drop(Instant now, const Service& service, DivisionActs& out);
  void see_locks(Instant now, const FleetRead& fleet);
  [[nodiscard]] std::string why_locked(Instant now, std::uint32_t except,
                                       std::uint64_t count_index) const;
  void map_again(Instant now, const FleetRead& fleet, DivisionActs& out);
  [[nodiscard]] std::string why_not_create(Instant now, const FleetRead& fleet) const;
  void note_once(Note kind, std::string error, DivisionActs& out);

  const std::string node_;
  std::uint32_t weight_;
  std::uint32_t wanted_;

  Phase phase_ = Phase::kUnknown;
  bool stopping_ = false;
  std::uint32_t count_ = 1;  // the last one that was served
  std::uint64_t count_index_ = 0;
  bool has_count_ = false;  // Consul has a number
  CountChange change_;
  std::vector<BalancerMember> sent_members_;

  Pending asked_ = Pending::kNothing;
  Instant ask_at_ = Instant::min();
  Instant last_round_ = Instant::min();
  bool may_change_ = false;  // the token may change the number to wanted_
  Instant ask_right_at_ = Instant::min();
  Duration refused_pause_{};                  // after a change that Consul refused
  Instant locks_free_from_ = Instant::min();  // of the last number
  // Locks that were seen held or lost while the queue was not served.
  struct SeenLock {
    std::uint32_t count = 1;
    std::uint64_t modify_index = 0;
    std::optional<std::string> holder{};
    Instant lost_at{};  // when it was first seen without a holder
  };
  std::map<std::string, SeenLock, std::less<>> seen_locks_;
  bool may_delete_ = true;  // lost locks
  // When a number with another serialize_by, of that index, may be written again.
  std::uint64_t mapped_index_ = 0;
  Instant map_at_{};
  // The last note about each: the number, the members, the right to change it. Reported once.
  enum class About { kCount, kMembers, kRight };
  [[nodiscard]] static About about(Note kind);
  std::map<About, DivisionNote> notes_;
};

}  // namespace lictor::core
