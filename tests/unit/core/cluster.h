#pragma once

// Daemons, a store, and the network between them, on a virtual clock. A test sets the faults
// (`fault`) and how jobs end (`plan`). Safety is checked at every step; what breaks it ends up in
// violations(). LICTOR_TRACE=1 in the environment prints every effect.

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/leadership/division.h"
#include "core/leadership/lock_release.h"
#include "core/queue.h"
#include "model_store.h"

namespace lictor::core::test {

using namespace std::chrono_literals;

inline constexpr Instant kStart{1h};
inline constexpr WallTime kWallStart{std::chrono::seconds{1'800'000'000}};

/// The fate of one request.
struct Fault {
  bool refused = false;       // no connection: it never leaves
  bool lose_request = false;  // never arrives
  bool lose_reply = false;
  bool no_leader = false;  // Consul answers 500 and does nothing: unknown
  bool spurious = false;   // a blocking query is answered although nothing changed
  Tampering tampering{};
  Duration out = 1ms;  // past the request's time-out it lands all the same: a zombie
  Duration back = 1ms;
};

/// For Cluster::put(): a task with these bytes.
inline auto with_record(std::string bytes) {
  return [bytes = std::move(bytes)](Task& task) {
    task.record = std::make_shared<const std::string>(bytes);
  };
}

/// How a job ends by itself; without `after` it runs until it is ended or stopped.
struct JobPlan {
  std::optional<Duration> after;
  JobEnding ending = JobEnding::kDone;
  std::string error;
  std::vector<KvWrite> writes{};
  std::string result{};
  JobTaken taken = JobTaken::kYes;
  std::string result_fault{};
};

struct Job {
  AttemptId id;
  std::shared_ptr<const Task> task;
  std::uint64_t token = 0;
  std::uint32_t partition = 0;
  Instant started{};
  Instant ends = Instant::max();  // by itself
  Instant dies = Instant::max();  // because it was stopped
  JobPlan plan;
  bool told_to_stop = false;
  bool stood_still = false;  // with its host, while the others' time went on
};

/// The work of a dead daemon's warden: it releases the lock.
struct Warden {
  std::size_t requests = 0;  // of Consul; then it dies
  Duration late{};           // after the last job's death
};

struct Daemon {
  struct Logged {
    Instant at;
    Effect effect;
  };

  std::string name;
  QueueOptions options;
  TypePolicy any_type;  // of "*" at first
  std::uint64_t seed = 0;

  [[nodiscard]] bool is_up() const { return queue || division; }
  /// The beginning of the daemon's claims.
  [[nodiscard]] std::string queue_identity() const { return name + std::to_string(life); }
  /// A job may still run whose executor a reload has taken away.
  [[nodiscard]] const TypePolicy& policy_of(const Task& task) const {
    const TypePolicy* policy = options.policy_of(task.type);
    return policy != nullptr ? *policy : any_type;
  }

  std::unique_ptr<Queue> queue;  // none: down
  bool stopped = false;
  std::optional<Division> division;  // while the daemon lives, where the cluster divides
  bool divide_now = false;           // the division has news to handle
  bool stops = false;                // for good
  std::uint64_t life = 0;            // which of its processes it is
  bool is_remapped = false;          // it has another serialize_by than the daemons at first
  bool remaps = false;               // its next process has it
  std::optional<std::string> kept_by;
  std::uint64_t first_attempt = 1;
  Instant paused_until = Instant::min();
  std::uint64_t incarnation = 0;
  std::optional<Instant> restart_at;
  std::optional<std::string> remembered;
  std::vector<std::uint64_t> held_indexes;
  using ByPartition = std::map<std::uint32_t, Instant>;
  ByPartition lease_until;                  // what the warden goes by
  ByPartition trusted_until;                // what was promised last; none under no lease
  std::int64_t drift = 0;                   // of its monotonic clock, in 1/10,000
  std::chrono::milliseconds wall_offset{};  // of its wall clock
  bool clock_stepped = false;               // ever
  Instant stepped_at = Instant::min();      // when it last learned of that
  Duration stood_still{};                   // its host, so that its clocks are late by that
  bool is_standing = false;                 // its host, until paused_until
  std::chrono::milliseconds wall_missed{};  // of that, what its wall clock has made up for

  /// The end of the partition's lease, in one of the above.
  [[nodiscard]] static Instant end_of(const ByPartition& leases, std::uint32_t partition) {
    const auto found = leases.find(partition);
    return found == leases.end() ? Instant::max() : found->second;
  }

  std::vector<Event> inbox;
  std::set<RequestId> waiting;
  Instant link_free_at = Instant::min();
  std::size_t requests = 0;  // that it has made
  std::map<AttemptId, Job> jobs;
  std::vector<Logged> log;

  AcquireLock lock_asked;      // last, of partition 0
  std::uint64_t given_up = 0;  // the number of the last claim that it has given up
  std::string kept_session;    // what the warden knows of that lock, and the leader key's index
  std::uint64_t kept_index = 0;
  std::optional<Warden> warden;  // of a dead daemon, until it has given the lock back or is dead
  bool gives_back = false;
};

class Cluster {
 public:
  explicit Cluster(std::uint64_t seed = 1) : store(seed), random_(seed + 1'000) {}

  Daemon& add(QueueOptions options);
  void start(Daemon& daemon);
  void crash(Daemon& daemon);
  /// Whether the host must be emptied, as all hosts learn; for a queue with partitions.
  void drain(Daemon& daemon, bool draining);
  /// An orderly stop, as by a service manager.
  void stop(Daemon& daemon);
  /// All hosts' configurations ask for another number of partitions, one host after the other. Only
  /// where the cluster divides.
  void resize(std::uint32_t partitions);
  /// All hosts get a configuration with another serialize_by and are restarted, one by one.
  void remap();
  [[nodiscard]] bool is_resized() const { return wish_ == 0 || store.partitions() == wish_; }
  void restart_after(Daemon& daemon, Duration duration) { daemon.restart_at = now + duration; }
  void pause(Daemon& daemon, Duration duration);
  /// A hypervisor stops its host: daemon, warden and jobs, and the monotonic clock with them. When
  /// they go on, the wall clock is set right.
  void stand_still(Daemon& daemon, Duration duration);
  /// The wall clock of its host jumps.
  void step_clock(Daemon& daemon, std::chrono::milliseconds by);
  void tell(Daemon& daemon, Event event) { daemon.inbox.push_back(std::move(event)); }
  void end_job(Daemon& daemon, const std::string& key, JobEnding ending = JobEnding::kDone,
               std::string error = {});
  void kill_session() { store.destroy(now, store.leader_session()); }

  void run_for(Duration duration) { run_to(now + duration); }
  /// Whether `done` became true within `limit`.
  bool run_until(const std::function<bool()>& done, Duration limit);

  Task& make(const std::string& id);  // a template, to be changed before put()
  /// A producer writes a task, which `change` makes another than usual.
  void put(const std::string& id, const std::function<void(Task&)>& change = {}) {
    Task& task = make(id);
    if (change) change(task);
    store.put(task);
  }

  // Does put(), or another change of a task or the queue, and lets time pass.
  void put_and_run(const std::string& id, Duration duration,
                   const std::function<void(Task&)>& change = {}) {
    put(id, change);
    run_for(duration);
  }
  /// For put(): a task that is due so much later.
  [[nodiscard]] std::function<void(Task&)> due_in(std::chrono::milliseconds in) const {
    return [at = wall() + in](Task& task) { task.execute_at = at; };
  }
  void remove_and_run(const std::string& key, Duration duration) {
    store.remove(key);
    run_for(duration);
  }
  void pause_and_run(bool paused, Duration duration) {
    store.control(paused, "");
    run_for(duration);
  }
  void reload(Daemon& daemon, const QueueOptions& options, Duration duration = {}) {
    tell(daemon, Reconfigured{std::make_shared<const QueueOptions>(options)});
    run_for(duration);
  }

  /// Consul is restored: queries that wait are answered from before, and tokens fall.
  void restore(const dev::State& snapshot);

  [[nodiscard]] WallTime wall() const { return wall_at(now); }
  [[nodiscard]] static WallTime wall_at(Instant at) {
    return kWallStart + std::chrono::floor<std::chrono::milliseconds>(at - kStart);
  }
  /// The reading of its host's clock, and the time when the clock will read `local`.
  [[nodiscard]] static Instant local_time(const Daemon& daemon, Instant at);
  [[nodiscard]] static Instant true_time(const Daemon& daemon, Instant local);
  /// What its clock reads now.
  [[nodiscard]] WallClockRead clock_of(const Daemon& daemon) const;
  [[nodiscard]] static WallTime wall_of(const Daemon& daemon, Instant at) {
    return wall_at(local_time(daemon, at)) + daemon.wall_offset;
  }
  /// The leader of the partition, or of any; null: nobody.
  [[nodiscard]] Daemon* leader(std::optional<std::uint32_t> partition = {});
  [[nodiscard]] const Job* job(const std::string& key) const;
  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  void violation(const std::string& what);
  [[nodiscard]] const std::vector<std::unique_ptr<Daemon>>& daemons() const { return daemons_; }
  /// When a daemon's entry among the members first showed that it has given up the claim of this
  /// nonce; std::nullopt: it never did.
  [[nodiscard]] std::optional<Instant> given_up_at(const std::string& nonce) const;
  /// The steps between task states that the daemons have taken.
  [[nodiscard]] TaskTable::Walked walked() const;

  Instant now = kStart;
  ModelStore store;
  std::vector<std::string> started;  // keys, in the order in which their jobs started
  std::multiset<std::string> done;   // the records whose jobs ended well
  bool exclusive = true;             // one job at a time, whoever leads
  bool one_host = false;             // jobs of one host at a time
  /// Until then the former leader's jobs may run beside the new one's: the leader key was deleted
  /// by hand, the one hole in the lock (consul.md 2.3).
  Instant unguarded_until = Instant::min();
  std::function<Fault(const Daemon&, const Effect&)> fault = [](const Daemon&, const Effect&) {
    return Fault{};
  };
  /// From now on each effect that `which` picks suffers `what`, and no other.
  void spoil(const Fault& what, std::function<bool(const Daemon&, const Effect&)> which) {
    fault = [what, which = std::move(which)](const Daemon& daemon, const Effect& effect) {
      return which(daemon, effect) ? what : Fault{};
    };
  }
  /// From now on each effect of this kind suffers `what`.
  template <class E>
  void spoil(const Fault& what) {
    spoil(what,
          [](const Daemon&, const Effect& effect) { return std::holds_alternative<E>(effect); });
  }
  /// No effect suffers any more.
  void heal() {
    fault = [](const Daemon&, const Effect&) { return Fault{}; };
  }
  std::function<JobPlan(const Task&)> plan = [](const Task&) { return JobPlan{}; };
  /// How long a job takes to end when it is asked to; never over the grace.
  std::function<Duration(Duration grace)> stopping = [](Duration) { return Duration{10ms}; };
  /// The warden of a daemon that was killed.
  std::function<Warden(const Daemon&)> warden = [](const Daemon&) { return Warden{}; };
  /// A daemon that holds the lock and stands still for so long is killed by its warden; 0: never.
  Duration hang_timeout{};
  /// The daemons may not read the members' given-up claims.
  bool given_up_refused = false;
  /// Daemons find out how many partitions there are, and change the number (core::Division). Else
  /// each begins with that of the store at once. To be set before daemons are added.
  bool divides = false;
  std::function<void(const Daemon&, const Effect&)> on_effect;
  /// All acts of a daemon at this moment are done.
  std::function<void(const Daemon&)> on_step;
  /// The store answered `reply`, which may be lost yet.
  std::function<void(const Daemon&, const Effect&, const Event& reply)> on_served;
  /// A daemon heard the reply to what it sent at `sent`.
  std::function<void(const Daemon&, const Effect&, const Event& reply, Instant sent)> on_delivered;
  /// A job is over; `how` as its daemon would hear it, if it lives.
  std::function<void(const Daemon&, const Job&, JobEnding how)> on_job_end;
  /// Bytes a second that a daemon receives, its answers one after the other; 0: any number.
  double link = 0;
  /// How long the answer takes the whole link.
  [[nodiscard]] Duration transfer_of(const Event& reply) const;
  std::size_t largest_answer = 0;  // bytes of values that were asked for at once
  bool stop_at_violation = false;
  bool trace = std::getenv("LICTOR_TRACE") != nullptr;

 private:
  struct Waiter {
    Daemon* daemon;
    std::uint64_t incarnation;
    Effect effect;
    Fault fault;
    Instant until;
    Instant sent;
    bool fresh = true;  // not asked yet
  };

  [[nodiscard]] std::string timed(const std::string& what) const;
  void show(const std::string& what) const;  // by LICTOR_TRACE
  void run_to(Instant end);
  [[nodiscard]] Instant next_time() const;
  void work();
  void work_jobs();
  void step(Daemon& daemon);
  static void set_wall_right(Daemon& daemon);
  void carry_out(Daemon& daemon, const Effect& effect);
  template <class Request>
  void send(Daemon& daemon, const Request& request);
  void answer_waiters();
  bool answer(Waiter& waiter, bool changed);
  [[nodiscard]] std::optional<Event> ask(const Waiter& waiter, bool over);
  void tell_delivered(Daemon& daemon, std::uint64_t incarnation, const Effect& effect,
                      const Event& reply, Instant sent);
  [[nodiscard]] Duration travel(Daemon& daemon, Event& reply);
  void at(Instant when, std::function<void()> what);
  void deliver(Daemon& daemon, std::uint64_t incarnation, Event event);
  void start_job(Daemon& daemon, const StartJob& effect);
  void end_queue(Daemon& daemon);
  void tell_members();
  void serve_queue(Daemon& daemon, const QueueOptions& options);
  void divide(Daemon& daemon);
  void carry_out(Daemon& daemon, const DivisionActs& acts);
  template <class Ask>
  void ask_of_division(Daemon& daemon, const Ask& ask);
  void join(Daemon& daemon);
  [[nodiscard]] bool has_no_reason_to_end(const Daemon& daemon) const;
  void publish(Daemon& daemon);
  void give_up_claims(Daemon& daemon);
  void publish_given_up(Daemon& daemon, std::uint64_t life);
  void note_lock(Daemon& daemon, const Event& event);
  void give_back(Daemon& daemon);
  void ask_back(Daemon& daemon, const std::shared_ptr<LockRelease>& steps, Instant until);
  template <class Request>
  void send_back(Daemon& daemon, const std::shared_ptr<LockRelease>& steps, Instant until,
                 const Request& request);

  template <class Request>
  requires(requires(ModelStore& to, const Request& request) {
    to.serve(Instant{}, request);
  }) auto serve(Daemon& daemon, const Request& request) {
    store.speak_for(daemon.name, daemon.incarnation, daemon.options.session_ttl,
                    daemon.options.lock_delay);
    store.map_by_other(daemon.is_remapped);
    const auto reply = store.serve(now, request);
    store.map_by_other(false);
    return reply;
  }
  OwnersRead serve(Daemon&, const ReadOwners& effect);

  Random random_;
  std::vector<std::unique_ptr<Daemon>> daemons_;
  std::map<std::pair<Instant, std::uint64_t>, std::function<void()>> wires_;  // ties: in order
  std::uint64_t sequence_ = 0;
  std::vector<Waiter> waiters_;
  Instant waiters_due_ = Instant::max();  // one of them is to be asked, or has waited long enough
  std::uint64_t seen_index_ = 0;
  std::map<std::string, FleetMember> members_;  // by name, as their entries have it
  GivenUp given_up_;                            // likewise
  // All claims that ever were in an entry, by the daemon's process: the last number, and when.
  std::map<std::string, std::map<std::uint64_t, Instant>> given_up_log_;
  std::uint32_t wish_ = 0;              // of all configurations; 0: as it is
  Instant wished_at_ = Instant::min();  // when that was another one last
  std::map<std::string, Task> made_;
  std::map<std::string, std::uint64_t> last_token_;
  std::vector<std::string> violations_;
  TaskTable::Walked walked_{};  // of queues that are gone
};

/// One daemon with the options of the tests: concurrency 1, types "*".
[[nodiscard]] QueueOptions options_of(const std::string& node);
/// `options` of node "a" with a change.
[[nodiscard]] inline QueueOptions options_with(const std::function<void(QueueOptions&)>& change,
                                               QueueOptions options = options_of("a")) {
  change(options);
  return options;
}

// The effects of a daemon, from its log.
template <class E>
std::vector<E> all(const Daemon& daemon) {
  std::vector<E> found;
  for (const auto& logged : daemon.log) {
    if (const auto* effect = std::get_if<E>(&logged.effect)) found.push_back(*effect);
  }
  return found;
}
[[nodiscard]] std::size_t count(const Daemon& daemon, Fact::Kind kind);
/// An effect as one line for a person, without request ids: "commit finish tasks/a, claim tasks/b".
[[nodiscard]] std::string effect_text(const Effect& effect);
/// Whether it is a transaction that begins with such an operation.
template <class O>
bool begins_with(const Effect& effect) {
  const auto* commit = std::get_if<Commit>(&effect);
  return commit != nullptr && std::holds_alternative<O>(commit->ops.front());
}
[[nodiscard]] inline bool watches_leader(const Effect& effect) {
  const auto* read = std::get_if<ReadLeader>(&effect);
  return read != nullptr && !read->consistent;
}
[[nodiscard]] bool claims(const Effect& effect, const std::string& key);
[[nodiscard]] bool finishes(const Effect& effect, const std::string& key);

}  // namespace lictor::core::test
