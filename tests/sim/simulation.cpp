#include "simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace lictor::core::test {
namespace {

constexpr Duration kFaults = 120s;
// Lock-delay, session TTL, backoffs and the longest wait of a blocking query, one after the other,
// and the jobs of forty tasks.
constexpr Duration kSettles = 400s;

constexpr std::uint32_t kPartitions = 3;  // of a quarter of the runs

// A record of so many bytes can't be claimed where records are large (draw_options).
constexpr std::size_t kTooLarge = 2'500;

constexpr std::array<double, kMisfortunes> kLikely{
#define LICTOR_MISFORTUNE(name, what, p) p,
    LICTOR_MISFORTUNES(LICTOR_MISFORTUNE)
#undef LICTOR_MISFORTUNE
};

constexpr std::pair<Misfortune, Tamper> kTampering[] = {
    {Misfortune::kStale, Tamper::kStale},          {Misfortune::kRewound, Tamper::kRewound},
    {Misfortune::kNoIndex, Tamper::kNoIndex},      {Misfortune::kCut, Tamper::kCut},
    {Misfortune::kTooMany, Tamper::kTooMany},      {Misfortune::kError, Tamper::kError},
    {Misfortune::kBadGateway, Tamper::kBadGateway}};

}  // namespace

bool Simulation::strikes(Misfortune m) {
  if (!chance(mix(m))) return false;
  ++struck_[static_cast<std::size_t>(m)];
  return true;
}

std::array<std::size_t, kMisfortunes> Simulation::misfortunes() const {
  auto struck = struck_;
  for (const auto& [misfortune, tamper] : kTampering) {  // what was drawn may find nothing to spoil
    const auto tampered = cluster_.store.tampered();
    const auto it = tampered.find(tamper);
    struck[static_cast<std::size_t>(misfortune)] = it == tampered.end() ? 0 : it->second;
  }
  return struck;
}

Duration Simulation::between(Duration least, Duration most) {
  const auto span = static_cast<double>((most - least).count());
  return least + Duration{static_cast<Duration::rep>(span * random_.fraction())};
}

Simulation::Simulation(std::uint64_t seed, bool trace)
    : seed_(seed), random_(seed), cluster_(seed), oracle_(cluster_) {
  cluster_.trace = trace;
  cluster_.exclusive = false;  // the oracle checks that itself
  cluster_.divides = true;
  cluster_.stop_at_violation = true;
  draw_mix();
  options_ = draw_options();
  if (Random{~seed}.next() % 4 == 0) {  // of its own, so that the other seeds are as they were
    // Now and then more than the fences of one transaction could name: such a run takes seconds.
    const bool many = Random{~seed + 1}.next() % 200 == 0;
    options_.partitions = many ? kMostPartitions : kPartitions;
    // Their number is changed under as many checks as any real Consul takes.
    std::size_t& operations = cluster_.store.most_operations;
    if (many) operations = std::max(operations, limits::kLeastOperations);
    // Otherwise the daemons change the number of partitions themselves.
    if (many || Random{~seed + 2}.next() % 2 == 0) {
      static_cast<void>(cluster_.store.make_partitions(options_.partitions));
    }
    remaps_ = cluster_.store.has_other = !many && Random{~seed + 4}.next() % 3 == 0;
    auto& most = cluster_.store.most_bytes;  // the fences take some of it
    if (most != std::numeric_limits<std::size_t>::max()) most += 500;
  }
  if (rated_) {
    options_.rate_limit = Rate{4s, 2};
    oracle_.watch_rate(options_.rate_limit);
  }
  restores_ = Random{~seed + 5}.next() % 16 == 0;
  if (restores_) oracle_.look_away();
  cluster_.one_host = restores_ && options_.partitions == 1;
  // With every Consul some ids that newer ones refuse in a path.
  if (Random{~seed ^ 1}.next() % 2 == 0) prefix_ = "t: ~";
  cluster_.plan = [this](const Task& task) { return plan(task); };
  cluster_.stopping = [this](Duration grace) {
    return chance(0.2) ? grace : between(1ms, grace);  // some ignore TERM
  };
  cluster_.fault = [this](const Daemon& daemon, const Effect& effect) {
    return fault(daemon, effect);
  };
  cluster_.warden = [this](const Daemon&) { return warden(); };
  if (chance(0.5)) cluster_.hang_timeout = between(1s, 4s);
  const bool drifts = chance(0.5);
  const int daemons = chance(0.5) ? 2 : 3;
  QueueOptions first = options_;
  // Some hosts first serve it as one partition, and then learn another number.
  const bool is_made = options_.partitions == 1 || cluster_.store.partitions() != 1;
  if (!is_made && Random{~seed + 3}.next() % 3 != 0) first.partitions = 1;
  for (int i = 0; i < daemons; ++i) {
    first.node = std::string(1, static_cast<char>('a' + i));
    Daemon& daemon = cluster_.add(first);
    if (drifts && !rated_) daemon.drift = static_cast<std::int64_t>(random_.next() % 201) - 100;
  }
}

// Each seed has its own mix: if all runs had all faults, a fault that needs the absence of others
// would stay unseen.
void Simulation::draw_mix() {
  for (std::size_t i = 0; i < static_cast<std::size_t>(Misfortune::kOverwriteCount); ++i) {
    mix_[i] = chance(0.6) ? kLikely[i] * 2 * random_.fraction() : 0.0;
  }
  // The one hole in the lock: after its use nothing else is checked for a while.
  if (!chance(0.3)) mix(Misfortune::kDeleteLeader) = 0;
  if (Random{seed_ + 79}.next() % 4 != 0) mix(Misfortune::kDeleteAll) = 0;
  // Drawn apart, so that the other seeds are as they were.
  overwrites_count_ = Random{seed_ + 80}.next() % 2 == 0;
  mix(Misfortune::kOverwriteCount) = kLikely.back();
  rated_ = Random{seed_ + 78}.next() % 8 == 0;  // drawn apart, too
  if (rated_) {
    for (const Misfortune m : {Misfortune::kClockStep, Misfortune::kClockDays,
                               Misfortune::kStandStill, Misfortune::kDeleteAll}) {
      mix(m) = 0;
    }
  }
  cluster_.store.remembers = mix(Misfortune::kStale) > 0;
  if (cluster_.store.remembers) oracle_.allow_stale();
  draw_link();
  large_ = chance(0.15);
  // The store takes less than the daemons think.
  if (large_ && chance(0.5)) cluster_.store.most_bytes = 3'000 + random_.next() % 6'000;
}

// Drawn from a generator of its own, so that the other seeds are as they were.
void Simulation::draw_link() {
  Random random{seed_ + 77};
  crowded_ = random.fraction() < 0.02;
  if (random.fraction() < 0.8) return;
  if (crowded_) return;
  cluster_.link = 200'000 * std::pow(20.0, random.fraction());  // up to 4 MB/s
  // One such record comes within half of the request's time-out; in base64 it is larger by a third.
  largest_record_ = static_cast<std::size_t>(std::min(cluster_.link / 3, 100'000.0));
}

std::string Simulation::draw_record() {
  std::string bytes = "record " + std::to_string(++serial_);
  if (large_ && chance(0.3)) bytes += std::string(chance(0.3) ? kTooLarge : 1'200, '.');
  if (!large_ && largest_record_ != 0 && chance(0.3)) {
    bytes += std::string(random_.next() % largest_record_, '.');
  }
  return bytes;
}

// Makes all of them due in the day after the simulation.
void Simulation::produce_crowd(std::size_t count, Duration interval) {
  for (std::size_t i = 0; i < count && !failed(); ++i) {
    // Where the link is slow, a few names take as long as many do elsewhere.
    const std::string more(cluster_.link == 0 ? 0 : 200, '.');
    Task& task = make("crowd" + std::to_string(random_.next()) + more);
    task.execute_at = cluster_.wall() + std::chrono::hours{24 * 30} +
                      std::chrono::seconds{random_.next() % 100'000};
    put(task);
    if (interval != Duration::zero()) cluster_.run_for(interval);
  }
}

QueueOptions Simulation::draw_options() {
  QueueOptions options = options_of("");
  if (chance(0.3)) options.concurrency = 3;
  if (chance(0.3)) options.prefetch = 2;
  if (chance(0.5)) options.prefetch_horizon = between(1ms, 10s);
  if (chance(0.3)) options.preload = 8s;
  if (chance(0.2)) options.max_unacked = 2;
  // The daemons learn it from refusals. Sixteen hold any one task's end with the fences of a
  // partition; a crowd is read by the batches of a real Consul.
  if (chance(0.2)) {
    cluster_.store.most_operations = crowded_ ? limits::kLeastOperations : 16;
  } else if (seed_ % 2 == 0) {
    cluster_.store.most_operations = limits::kLeastOperations;
  }
  options.transactions_in_flight = 1 + random_.next() % 16;
  if (chance(0.3)) options.distance = between(100ms, 8s);
  if (large_) options.max_transaction_bytes = 9'600;  // of a record 1,200 bytes and more
  // Short, so that leadership is lost and taken over many times within a run; in the relations
  // that the configuration demands.
  options.session_ttl = 10s;
  options.renew_interval = 3s;
  options.request_timeout = 1s;
  options.lock_delay = 10s;
  options.kill_grace = 2s;
  options.margin = 500ms;
  options.standoff = between(1s, 8s);
  options.drain_timeout = between(1s, 10s);
  // Otherwise unlucky tasks end as dead letters, rightly, and little is left to be checked.
  options.max_losses = chance(0.3) ? 3 : 1'000;
  options.any_type->max_attempts = 1'000;
  options.any_type->backoff.max = 3s;
  if (chance(0.3)) options.history = HistoryLimits{5, 1h};
  if (chance(0.2)) options.rate_limit = Rate{100ms, 3};
  if (chance(0.3)) options.serialize_retries = false;
  options.types["once"] = *options.any_type;
  options.types["once"].delivery = Delivery::kAtMostOnce;
  options.types["once"].max_attempts = 1;
  options.types["brittle"] = *options.any_type;
  options.types["brittle"].max_attempts = 3;
  if (chance(0.3)) {
    options.concurrency = 3;
    options.any_type->concurrency = chance(0.5) ? 1 : 2;
  }
  return options;
}

JobPlan Simulation::plan(const Task& task) {
  if (phase_ == Phase::kHang) return {};
  if (phase_ == Phase::kOrder || phase_ == Phase::kAnew || phase_ == Phase::kRest)
    return {between(1ms, 50ms), JobEnding::kDone, {}};
  if (phase_ == Phase::kFaults && strikes(Misfortune::kUnstarted)) {
    return {between(Duration::zero(), 5ms), JobEnding::kNotStarted, "no process"};
  }
  const bool hangs = phase_ == Phase::kFaults && (restores_ || strikes(Misfortune::kHang));
  JobPlan plan{between(1ms, hangs ? 60s : 300ms), JobEnding::kDone, {}};
  if (strikes(Misfortune::kFail)) plan = {between(1ms, 100ms), JobEnding::kRetry, "no luck"};
  if (task.type == "brittle") plan.ending = JobEnding::kRetry;
  if (task.type == "effects") {  // writes what it did, exactly once, whatever happens
    plan.writes.push_back(
        {"app/" + std::to_string(++serial_ % 7), origin(*task.record), false, {}});
    if (chance(0.2)) plan.writes.back().cas = random_.next() % 2 == 0 ? 0 : 1'000'000'000;
    if (!large_ && phase_ == Phase::kFaults && chance(0.3)) {
      KvWrite write = follower();
      if (write.key != task.key)
        plan.writes.push_back(std::move(write));  // its own it may not write
    }
  }
  return plan;
}

// A task that a job writes: a new one, or one that replaces a task that may be under way.
KvWrite Simulation::follower() {
  const bool is_new = options_.partitions > 1 || chance(0.5);
  Task task;
  task.id = is_new ? "follows" + std::to_string(++serial_)
                   : prefix_ + std::to_string(random_.next() % 24);
  task.key = std::string{kTasks} + task.id;
  task.type = "Any";
  task.record = std::make_shared<const std::string>("record " + std::to_string(++serial_));
  return {task.key, cluster_.store.value_of(task), false, {}};
}

// The warden dies before it asks Consul for anything, or after each of its requests.
Warden Simulation::warden() {
  Warden warden{100, {}};
  if (phase_ != Phase::kFaults) return warden;
  if (strikes(Misfortune::kWarden)) warden.requests = random_.next() % 4;
  if (chance(0.3)) warden.late = between(1ms, chance(0.5) ? 1s : 40s);
  return warden;
}

Fault Simulation::fault(const Daemon& daemon, const Effect& effect) {
  Fault f;
  f.out = between(100us, 3ms);
  f.back = between(100us, 3ms);
  // Sooner, and later than a name that we deleted is doubted.
  if (phase_ == Phase::kAnew && std::holds_alternative<Commit>(effect)) {
    f.back = chance(0.5) ? 100ms : 600ms;
  }
  if (phase_ != Phase::kFaults) return f;
  if (const auto it = outage_until_.find(&daemon);
      it != outage_until_.end() && cluster_.now < it->second) {
    f.lose_request = chance(0.7);
    f.lose_reply = chance(0.5);
    f.refused = chance(0.3);
    return f;
  }
  f.no_leader = cluster_.now < leaderless_until_;
  f.lose_request = strikes(Misfortune::kLoseRequest);
  f.lose_reply = strikes(Misfortune::kLoseReply);
  f.refused = strikes(Misfortune::kRefuse);
  f.spurious = strikes(Misfortune::kSpurious) || cluster_.now < look_until_;
  f.tampering = tampering();
  if (strikes(Misfortune::kLate)) f.back = between(1ms, 4s);
  if (strikes(Misfortune::kLate)) f.out = between(1ms, 2s);
  // A frozen server: the write lands long after its sender gave up (consul.md 6.5).
  if (strikes(Misfortune::kZombie)) f.out = between(1s, 60s);
  // A late release is rare, and only then does its check-index matter.
  if (std::holds_alternative<ReleaseLock>(effect) && chance(0.3)) f.out = between(1s, 60s);
  return f;
}

Tampering Simulation::tampering() {
  for (const auto& [misfortune, tamper] : kTampering) {
    if (chance(mix(misfortune))) return {tamper, random_.fraction()};
  }
  return {};
}

void Simulation::misfortune() {
  const auto& daemons = cluster_.daemons();
  misfortune_of_daemon(*daemons[random_.next() % daemons.size()]);
  misfortune_of_store();
  strangers();
}

void Simulation::misfortune_of_daemon(Daemon& daemon) {
  if (strikes(Misfortune::kCrash)) {
    if (daemon.is_up()) cluster_.crash(daemon);
    cluster_.restart_after(daemon, between(10ms, 30s));
  }
  if (strikes(Misfortune::kPause)) cluster_.pause(daemon, between(100ms, chance(0.5) ? 3s : 50s));
  if (strikes(Misfortune::kStandStill)) {
    cluster_.stand_still(daemon, between(100ms, chance(0.5) ? 3s : 50s));
  }
  if (strikes(Misfortune::kOutage)) {
    const Instant until = cluster_.now + between(100ms, chance(0.5) ? 4s : 60s);
    const bool all = chance(0.3);
    for (const auto& each : cluster_.daemons()) {
      if (all || each.get() == &daemon) outage_until_[each.get()] = until;
    }
    if (chance(0.3)) cluster_.kill_session();
  }
  if (strikes(Misfortune::kStop)) {
    cluster_.stop(daemon);
    cluster_.restart_after(daemon, between(15s, 60s));
  }
  if (strikes(Misfortune::kReload)) reload(daemon, !daemon.options.any_type || chance(0.5));
  const auto either_way = [this](std::chrono::milliseconds by) { return chance(0.5) ? by : -by; };
  if (strikes(Misfortune::kClockStep)) {
    cluster_.step_clock(daemon, either_way(std::chrono::milliseconds{random_.next() % 5'000}));
  }
  if (strikes(Misfortune::kClockDays)) {
    const auto off = either_way(std::chrono::hours{48 + random_.next() % 200});
    cluster_.step_clock(daemon, off + daemon.wall_missed - daemon.wall_offset);
  }
}

// Without all of its executors the daemon runs "once" and "brittle" alone.
void Simulation::reload(Daemon& daemon, bool all_executors) {
  daemon.options.any_type = all_executors ? options_.any_type : std::nullopt;
  const bool limited = all_executors && options_.any_type->concurrency != 0;
  if (limited && phase_ == Phase::kFaults) {
    daemon.options.any_type->concurrency = static_cast<std::uint32_t>(random_.next() % 3);
  }
  if (!daemon.queue) return;
  cluster_.tell(daemon, Reconfigured{std::make_shared<const QueueOptions>(daemon.options)});
}

void Simulation::misfortune_of_store() {
  if (strikes(Misfortune::kKillSession)) cluster_.kill_session();
  if (strikes(Misfortune::kFailOver)) {
    leaderless_until_ = cluster_.now + between(10ms, chance(0.5) ? 3s : 20s);
    cluster_.store.fail_over(cluster_.now);
  }
  if (strikes(Misfortune::kReap)) cluster_.store.reap();
  if (strikes(Misfortune::kForgetLockDelay)) cluster_.store.forget_lock_delay();
}

void Simulation::control(bool paused, const std::string& step_down) {
  cluster_.store.control(paused, step_down);
  oracle_.control(paused);
}

void Simulation::strangers() {
  if (strikes(Misfortune::kControl)) {
    control(chance(0.2), "step-down " + std::to_string(random_.next()));
  }
  if (strikes(Misfortune::kOverwriteControl)) {
    cluster_.store.overwrite_control();
    oracle_.control(true);
  }
  if (strikes(Misfortune::kDeleteControl)) {
    cluster_.store.remove_control();
    oracle_.control(false);
  }
  if (strikes(Misfortune::kOverwriteLeader)) cluster_.store.overwrite_leader_key();
  if (strikes(Misfortune::kDeleteLeader)) {
    cluster_.store.remove_leader_key();
    // Two may lead from the last proof before the deletion until the lock-delay would have ended.
    cluster_.unguarded_until = cluster_.now + options_.lock_delay;
  }
  if (strikes(Misfortune::kDeleteAll)) delete_all();
  if (strikes(Misfortune::kTouch)) touch();
  if (options_.partitions > 1 && strikes(Misfortune::kResize)) {
    cluster_.resize(1 + static_cast<std::uint32_t>(random_.next() % 4));
  }
  const bool divides = options_.partitions > 1 && overwrites_count_;
  // The earlier leaders go on until they notice, and nobody leads beside them.
  if (divides && strikes(Misfortune::kOverwriteCount)) {
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random_.next() % 5);
    static_cast<void>(cluster_.store.make_partitions(count));
  }
}

// Deletes all keys of the queue, as "consul kv delete -recurse" does.
void Simulation::delete_all() {
  for (const std::string& key : cluster_.store.task_keys()) withdraw(key);
  cluster_.store.remove_all();
  oracle_.control(false);
  cluster_.unguarded_until = cluster_.now + options_.lock_delay;
}

void Simulation::touch() {
  const std::vector<std::string> keys = cluster_.store.task_keys();
  if (keys.empty()) return;
  const std::string& key = keys[random_.next() % keys.size()];
  const Task* task = cluster_.store.task(key);
  // A rewrite adds its bytes to the record, and all of it must come within the time-out.
  if (task == nullptr || task->record->size() > 10'000) return;
  const std::string record = origin(*task->record) + '+' + std::to_string(++serial_);
  cluster_.store.touch(key, record);
  oracle_.touched(key, record);
}

void Simulation::withdraw(const std::string& key) {
  if (const Task* old = cluster_.store.task(key)) oracle_.withdrawn(*old->record);
}

// A producer takes the task back.
void Simulation::remove(const std::string& key) {
  withdraw(key);
  cluster_.store.remove(key);
}

Task& Simulation::make(const std::string& id) {
  Task& task = cluster_.make(id);
  task.record = std::make_shared<const std::string>("record " + std::to_string(++serial_));
  return task;
}

void Simulation::put(Task& task) {
  withdraw(task.key);
  if (chance(0.2)) task.flags = random_.next() % 1'000;
  cluster_.store.put(task);
  oracle_.produced(task);
}

void Simulation::produce() {
  const std::string number = std::to_string(random_.next() % 24);
  const std::string id = prefix_ + number;
  const std::string key = std::string{kTasks} + id;
  if (cluster_.store.has(key) && strikes(Misfortune::kWithdraw)) {
    remove(key);
    return;
  }
  if (strikes(Misfortune::kNonsense)) {
    withdraw(key);
    const std::string bytes = "nonsense " + std::to_string(++serial_);
    cluster_.store.write(key, bytes);
    oracle_.touched(key, bytes);
    return;
  }
  Task& task = cluster_.make(id);
  std::string bytes = draw_record();
  const bool small = bytes.size() < 1'000;
  task.record = std::make_shared<const std::string>(std::move(bytes));
  if (chance(0.5)) task.task_time = cluster_.wall() - std::chrono::seconds{random_.next() % 100};
  if (chance(0.2)) task.execute_at = cluster_.wall() + std::chrono::seconds{random_.next() % 20};
  if (chance(0.1)) task.expire_at = cluster_.wall() + std::chrono::seconds{random_.next() % 20};
  if (chance(0.3)) task.serial_key = "db" + std::to_string(random_.next() % 3);
  // With another serialKey it may move to another partition while its old version still runs.
  if (options_.partitions > 1) {
    task.serial_key = number.size() == 1 ? "db" + std::to_string(number.back() % 3) : "";
  }
  if (chance(0.1)) task.timeout = between(10ms, 1s);
  if (chance(0.2) && small) {  // its write is its record, and must fit
    task.type = "effects";
  } else if (chance(0.2)) {
    task.type = chance(0.5) ? "once" : "brittle";
  }
  put(task);
}

// A daemon that has not seen the leader from before a restore may lead at once (operating.md).
bool Simulation::all_know_leaders() {
  const std::uint32_t count = cluster_.store.partitions();
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto read = ReadLeader{{}, true, 0, {count, i}};
    const LeaderRead lock = cluster_.store.serve(cluster_.now, read);
    for (const auto& daemon : cluster_.daemons()) {
      const auto& held = daemon->held_indexes;
      const bool knows = i < held.size() && held[i] >= lock.modify_index;
      if (!lock.session.empty() && !knows) return false;
    }
  }
  return true;
}

void Simulation::run_with_faults() {
  const Instant end = cluster_.now + kFaults;
  Instant divide_at = cluster_.now + between(2s, 40s);
  Instant crowd_at = cluster_.now + kFaults / 3;
  Instant restore_at = restores_ ? cluster_.now + between(5s, 30s) : Instant::max();
  Instant remap_at = remaps_ ? cluster_.now + kFaults / 2 : Instant::max();
  while (cluster_.now < end && !failed()) {
    cluster_.run_for(between(1ms, 1s));
    if (options_.partitions > 1 && divide_at <= cluster_.now) {
      divide_at = Instant::max();
      cluster_.resize(options_.partitions);
    }
    if (restore_at <= cluster_.now) {
      restore_at = cluster_.now + between(1s, 30s);
      if (snapshot_) {
        if (!all_know_leaders()) cluster_.unguarded_until = cluster_.now + options_.lock_delay;
        cluster_.restore(*std::exchange(snapshot_, std::nullopt));
        if (chance(0.5)) look_until_ = cluster_.now + 1s;
      } else {
        const bool is_free = chance(0.5);  // the lock, in the snapshot
        if (!is_free) snapshot_ = cluster_.store.snapshot();
        if (chance(0.7)) control(false, "step-down " + std::to_string(random_.next()));
        if (is_free) {
          cluster_.run_until([&] { return cluster_.store.leader_session().empty(); }, 10s);
          snapshot_ = cluster_.store.snapshot();
        }
      }
    }
    if (remap_at <= cluster_.now) {
      remap_at = Instant::max();
      cluster_.remap();
    }
    if (crowd_at <= cluster_.now) {
      crowd_at = Instant::max();
      if (cluster_.link != 0 && Random{~seed_ + 6}.next() % 4 == 0) produce_crowd(200, {});
      if (crowded_) produce_crowd(1'000 + random_.next() % 2'000, {});
    }
    misfortune();
    while (chance(0.4)) produce();
  }
  oracle_.check_books();
}

void Simulation::heal() {
  phase_ = Phase::kHealed;
  cluster_.store.most_bytes = std::numeric_limits<std::size_t>::max();
  control(false, "");
  for (const auto& daemon : cluster_.daemons()) {
    cluster_.pause(*daemon, Duration::zero());
    cluster_.step_clock(*daemon, daemon->wall_missed - daemon->wall_offset);
    reload(*daemon, true);
    if (std::exchange(daemon->remaps, remaps_) != remaps_) cluster_.crash(*daemon);
    if (!daemon->is_up()) cluster_.restart_after(*daemon, 0s);
  }
  const auto& store = cluster_.store;
  for (const auto& key : store.task_keys()) {  // is left where it is, as it was
    const Task* task = store.task(key);
    const bool waits = key.starts_with(std::string{kTasks} + "crowd");
    if (task == nullptr || (!waits && (!large_ || task->record->size() < kTooLarge))) continue;
    if (!waits && task->stamp != Stamp{}) {
      fail(key + " was claimed, and is too large to be");
    }
    remove(key);
  }
  if (!cluster_.run_until([&] { return !store.has_tasks(); }, kSettles) && !failed()) {
    std::string left = "not ended although nothing fails any more:";
    for (const auto& key : store.task_keys()) {
      left += ' ' + key;
      if (Daemon* leader = cluster_.leader(); leader != nullptr)
        left += " (" + leader->queue->state_text(key) + ')';
    }
    fail(left);
  }
  oracle_.check_books();
  oracle_.check_nothing_lost();
  if (!rated_) return;
  oracle_.watch_rate({});
  for (const auto& daemon : cluster_.daemons()) {
    daemon->options.rate_limit.reset();
    reload(*daemon, true);
  }
}

// The leader learns all of them, and lets them go at once: they must start in order.
void Simulation::try_order() {
  phase_ = Phase::kOrder;
  // Late writes may still land; and daemons that were stopped have come back.
  cluster_.run_for(70s);
  cluster_.run_until([&] { return cluster_.leader() != nullptr; }, 60s);
  control(true, "");
  cluster_.run_for(3s);
  const std::size_t before = cluster_.started.size();
  for (int i = 0; i < 8; ++i) {
    Task& task = cluster_.make("o" + std::to_string(random_.next() % 1'000));
    if (cluster_.store.has(task.key)) continue;
    task.record = std::make_shared<const std::string>("record " + std::to_string(++serial_));
    // Far from the present on either side, whatever the leader's clock reads: a task without a time
    // has the time at which it is first seen.
    const std::chrono::seconds away{86'400 + random_.next() % 100};
    if (chance(0.7)) task.task_time = cluster_.wall() + (chance(0.7) ? -away : away);
    if (chance(0.4)) task.serial_key = "db" + std::to_string(random_.next() % 2);
    if (chance(0.3)) task.type = "once";
    put(task);
  }
  cluster_.run_for(3s);
  if (cluster_.started.size() != before) fail("a task started in a paused queue");
  using Order = std::tuple<WallTime, std::uint64_t, std::string>;  // time, CreateIndex, key
  std::map<std::string, Order> orders;
  std::map<std::string, std::string> lanes;
  for (const std::string& key : cluster_.store.task_keys()) {
    const Task& task = *cluster_.store.task(key);
    const WallTime time = task.execute_at.value_or(task.task_time.value_or(cluster_.wall()));
    orders[key] = {time, task.create_index, task.key};  // as the manual says, not as the core does
    lanes[key] = task.serial_key;
  }
  control(false, "");
  if (!cluster_.run_until([&] { return !cluster_.store.has_tasks(); }, 60s) && !failed()) {
    fail("eight tasks did not end within a minute without faults");
  }
  std::map<std::string, Order> last;  // by lane; all are one lane where one runs at a time
  for (std::size_t i = before; i < cluster_.started.size(); ++i) {
    const std::string& key = cluster_.started[i];
    const bool one_by_one = options_.concurrency == 1 && options_.partitions == 1;
    const std::string lane = one_by_one ? "all" : lanes[key];
    if (lane.empty()) continue;
    const auto it = last.find(lane);
    if (it != last.end() && orders[key] < it->second) {
      fail(key + " starts after " + std::get<2>(it->second) + ", out of order");
    }
    last[lane] = orders[key];
  }
}

// Jobs that hang: no more is claimed than allowed, and a withdrawn task's job is stopped.
void Simulation::try_limits() {
  phase_ = Phase::kHang;
  for (int i = 0; i < 10; ++i) {
    Task& task = make("h" + std::to_string(i));
    put(task);
  }
  cluster_.run_for(5s);
  std::size_t taken = 0;
  for (const std::string& key : cluster_.store.task_keys()) {
    if (const Task* task = cluster_.store.task(key); task != nullptr && task->stamp.taken) ++taken;
  }
  const std::size_t hosts = options_.partitions == 1 ? 1 : cluster_.daemons().size();
  if (taken > hosts * most_claimed(options_)) {
    fail(std::to_string(taken) + " tasks are claimed, beyond the limit");
  }
  std::size_t slots = options_.concurrency;
  if (const std::size_t limit = options_.any_type->concurrency; limit != 0) {
    slots = std::min(slots, limit);
  }
  const bool all_slots = cluster_.running() >= slots && cluster_.running() <= hosts * slots;
  if (!all_slots && !failed()) {
    fail("there are tasks to run, and " + std::to_string(cluster_.running()) + " of " +
         std::to_string(slots) + " slots are taken");
  }
  for (const std::string& key : cluster_.store.task_keys()) remove(key);
  cluster_.run_for(5s);
  if (cluster_.running() != 0) fail("a job of a withdrawn task runs on");
}

// A producer takes the name of a task whose finish is not acknowledged yet; no other event would
// make a daemon read it.
void Simulation::try_anew() {
  phase_ = Phase::kAnew;
  // The number may have changed back to one of whose locks some were lost in its last use: the
  // daemons wait for them again.
  const auto all_led = [&] {
    for (std::uint32_t i = 0; i < cluster_.store.partitions(); ++i) {
      if (cluster_.leader(i) == nullptr) return false;
    }
    return true;
  };
  static_cast<void>(cluster_.run_until(all_led, kMostLockDelay));
  for (int i = 0; i < 2; ++i) {
    Task& task = make("again");
    const std::string key = task.key;
    put(task);
    if (!cluster_.run_until([&] { return !cluster_.store.has(key); }, 10s) && !failed()) {
      fail("a task alone did not end within ten seconds without faults");
    }
  }
}

// A producer writes distant tasks as fast as it can: the lists of names keep their pace.
void Simulation::try_pace() {
  phase_ = Phase::kRest;
  if (!crowded_) return;
  produce_crowd(3'000, {});
  produce_crowd(500, 2ms);
  for (const std::string& key : cluster_.store.task_keys()) remove(key);
  cluster_.run_for(5s);
}

// Nothing happens for a while: few requests, and a new task is picked up at once.
void Simulation::try_rest() {
  phase_ = Phase::kRest;
  Task& later = make("later");
  later.execute_at = cluster_.wall() + std::chrono::hours{24 * 30};
  const std::string later_key = later.key;
  put(later);
  cluster_.run_for(10s);
  std::map<const Daemon*, std::size_t> before;
  for (const auto& daemon : cluster_.daemons()) before[daemon.get()] = daemon->requests;
  constexpr std::chrono::seconds kRest{60};
  cluster_.run_for(kRest);
  for (const auto& daemon : cluster_.daemons()) {
    const std::size_t requests = daemon->requests - before[daemon.get()];
    if (requests > 2 * kRest.count()) {
      fail(daemon->name + " at rest makes " + std::to_string(requests) + " requests a minute");
    }
  }
  Task& task = make("quiet");
  const std::string key = task.key;
  const std::size_t started = cluster_.started.size();
  put(task);
  if (!cluster_.run_until([&] { return cluster_.started.size() > started; }, 500ms) && !failed()) {
    fail("after a quiet minute a task is not picked up within 500 ms");
  }
  cluster_.run_until([&] { return !cluster_.store.has(key); }, 10s);
  remove(later_key);
  cluster_.run_for(1s);
}

void Simulation::check_leftovers() {
  for (const std::string& key : cluster_.store.strays()) fail("left behind: " + key);
  if (cluster_.store.sessions() > cluster_.daemons().size()) {
    fail(std::to_string(cluster_.store.sessions()) + " sessions, of " +
         std::to_string(cluster_.daemons().size()) + " daemons");
  }
  if (!cluster_.is_resized()) fail("the number of partitions is not what all want");
  const Daemon* leader = cluster_.leader(0);
  const std::string holder =
      cluster_.store.serve(cluster_.now, ReadLeader{{}, true, 0, {cluster_.store.partitions(), 0}})
          .holder;
  if (leader != nullptr && holder != leader->name) {
    fail(leader->name + " leads, and the leader key names " + holder);
  }
}

std::string Simulation::run() {
  using Step = void (Simulation::*)();
  for (const Step step : {&Simulation::run_with_faults, &Simulation::heal, &Simulation::try_order,
                          &Simulation::try_limits, &Simulation::try_anew, &Simulation::try_pace,
                          &Simulation::try_rest, &Simulation::check_leftovers}) {
    (this->*step)();
    if (failed()) return cluster_.violations().front();
  }
  return {};
}

}  // namespace lictor::core::test
