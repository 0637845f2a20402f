#include "oracle.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace lictor::core::test {
namespace {

constexpr std::size_t kMostRequests = 24;  // of one daemon, at once

bool deletes(const Op& op) {
  return std::holds_alternative<FinishOp>(op) || std::holds_alternative<BuryOp>(op);
}

std::pair<std::string, std::uint64_t> version_of(const Op& op) {
  return std::visit(
      [](const auto& o) -> std::pair<std::string, std::uint64_t> {
        using O = std::decay_t<decltype(o)>;  // of a finished task there is no version any more
        if constexpr (requires { o.index; } && !std::is_same_v<O, PruneOp>) {
          return {o.key, o.index};
        } else {
          return {};
        }
      },
      op);
}

}  // namespace

Oracle::Oracle(Cluster& cluster) : cluster_(cluster) {
  cluster.on_effect = [this](const Daemon& d, const Effect& e) { on_effect(d, e); };
  cluster.on_step = [this](const Daemon& d) { on_step(d); };
  cluster.on_served = [this](const Daemon& d, const Effect& e, const Event& r) {
    on_served(d, e, r);
  };
  cluster.on_delivered = [this](const Daemon& d, const Effect& e, const Event& r, Instant sent) {
    on_delivered(d, e, r, sent);
  };
  cluster.on_job_end = [this](const Daemon& d, const Job& job, JobEnding how) {
    on_job_end(d, job, how);
  };
}

void Oracle::look_away() {
  looks_away_ = true;
  cluster_.on_effect = {};
  cluster_.on_step = {};
  cluster_.on_served = {};
  cluster_.on_delivered = {};
  cluster_.on_job_end = {};
}

void Oracle::produced(const Task& task) {
  history(*task.record).task = task;
  written_.insert(*task.record);
  latest_[task.key] = *task.record;
  tasks_[task.key] = task;
}

void Oracle::control(bool paused) {
  paused_since_ = paused ? std::min(paused_since_, cluster_.now) : Instant::max();
}

void Oracle::on_effect(const Daemon& daemon, const Effect& effect) {
  Term& term = terms_[&daemon];
  if (daemon.waiting.size() > kMostRequests + 3 * (daemon.options.partitions - 1)) {
    fail(daemon.name + " waits for " + std::to_string(daemon.waiting.size()) + " replies");
  }
  if (const auto* fact = std::get_if<Fact>(&effect)) {
    if (fact->kind == Fact::Kind::kLeading) {
      // Keys shown earlier in partitions that it already led still count as shown.
      Term won;
      won.number = ++term_count_;
      won.answers = term.answers;
      won.answered_index = term.answered_index;
      won.shown = std::move(term.shown);
      const std::uint32_t count = daemon.options.partitions;
      std::erase_if(won.shown, [&](const auto& each) {
        const Task* task = cluster_.store.task(each.first);
        return count == 1 || task == nullptr ||
               partition_of(task->serial_key, task->id, count) == fact->partition;
      });
      if (count == 1) won.answered_index = 0;
      term = std::move(won);
      led_since_[{&daemon, fact->partition}] = cluster_.now;
    } else if (fact->kind == Fact::Kind::kLost) {
      ++losses_;
    }
  } else if (const auto* start = std::get_if<StartJob>(&effect)) {
    on_start(daemon, *start);
  } else if (const auto* commit = std::get_if<Commit>(&effect)) {
    on_commit(daemon, *commit);
  } else if (const auto* lease = std::get_if<ExtendLease>(&effect)) {
    // Clocks drift by up to 1%, each: 2% against each other.
    const Instant proof = proof_of(daemon);
    const Instant bound = proof + daemon.options.lease_span() * 102 / 100;
    if (proof == Instant::min() || Cluster::true_time(daemon, lease->until) > bound) {
      fail(daemon.name + " trusts its lease for longer than its proof allows");
    }
  }
}

// The warden would end them; but not every running job has one.
void Oracle::on_step(const Daemon& daemon) {
  if (daemon.queue) check_bounds(daemon);
  for (const auto& [id, job] : daemon.jobs) {
    if (cluster_.now < Daemon::end_of(daemon.trusted_until, job.partition)) continue;
    if (daemon.policy_of(*job.task).on_lease_lost == OnLeaseLost::kStop && !job.told_to_stop) {
      fail(daemon.name + " does not stop " + job.task->key + " at the end of its lease");
    }
  }
}

void Oracle::on_start(const Daemon& daemon, const StartJob& start) {
  ++starts_;
  const Task& task = *start.task;
  const std::string who = daemon.name + " starts " + task.key;
  on_alone(daemon, start);
  check_overtaken(daemon, task);
  if (cluster_.now >= Daemon::end_of(daemon.trusted_until, start.partition)) {
    fail(who + " after its lease ran out");
  }
  if (proof_of(daemon) < daemon.stepped_at) fail(who + " without a proof since its clock stepped");
  if (!stale_ && paused_since_ < led_since_[{&daemon, start.partition}]) {
    fail(who + " in a queue that was paused before it led");
  }
  const Duration tolerance = daemon.clock_stepped ? 1s : 0s;  // a smaller step changes no place
  if (task.execute_at && Cluster::wall_of(daemon, cluster_.now) + tolerance < *task.execute_at) {
    fail(who + " before its executeAt");
  }
  if (!task.stamp.claim || !started_claims_.insert(task.stamp.claim->nonce).second) {
    fail(who + " twice under one claim");
  }

  if (!records_.contains(origin(*task.record))) fail(who + ", as nobody wrote it: " + *task.record);
  History& history = this->history(*task.record);
  const TypePolicy& policy = daemon.policy_of(task);
  if (policy.delivery == Delivery::kAtMostOnce && history.starts > 0) {
    fail(who + " again, which may run at most once");
  }
  if (history.crashed >= daemon.options.max_losses) {
    fail(who + " although it was lost with its owner " + std::to_string(history.crashed) +
         " times");
  }
  if (history.failures >= policy.max_attempts) {
    fail(who + " although it failed " + std::to_string(history.failures) + " times");
  }
  if (terms_[&daemon].done.contains(origin(*task.record))) {
    fail(who + " again, which ended well in the same term");
  }
  ++history.starts;
}

// The task has an executor, and no other task of its serialKey has begun: runs, or awaits a retry.
bool Oracle::may_be_claimed(const Daemon& daemon, const Task& task) const {
  if (daemon.options.policy_of(task.type) == nullptr) return false;
  if (task.serial_key.empty()) return true;
  for (const std::string& key : cluster_.store.task_keys()) {
    const Task* other = cluster_.store.task(key);
    if (other == nullptr || key == task.key || other->serial_key != task.serial_key) continue;
    if (other->stamp.taken || other->stamp.attempt != 0) return false;
  }
  return true;
}

// With concurrency 1 the tasks that a daemon gave back come before those behind them, whatever else
// fails; except tasks that could not be claimed when the other was.
std::set<std::string> Oracle::overtaken_by(const Daemon& daemon, const Task& task) const {
  std::set<std::string> overtaken;
  const bool one_by_one = daemon.options.concurrency == 1 && daemon.options.partitions == 1;
  const bool takes_all = cluster_.store.most_bytes == std::numeric_limits<std::size_t>::max();
  if (!one_by_one || !takes_all || !task.task_time || task.execute_at) return overtaken;
  for (const auto& [key, returned] : returned_) {
    const Task* other = cluster_.store.task(key);
    if (returned.daemon != &daemon || returned.term != terms_.at(&daemon).number) continue;
    if (other == nullptr || other->modify_index != returned.index || key == task.key) continue;
    if (touched_.contains(key)) continue;
    if (!other->task_time || other->execute_at || other->expire_at) continue;
    if (std::tie(*other->task_time, other->create_index, other->key) <
        std::tie(*task.task_time, task.create_index, task.key)) {
      overtaken.insert(key);
    }
  }
  return overtaken;
}

// A returned task that cannot be claimed now holds up nothing that is claimed meanwhile.
void Oracle::excuse(const Daemon& daemon, const Task& claimed) {
  std::set<std::string>& excused = terms_[&daemon].excused[claimed.key];
  excused.clear();
  for (const std::string& key : overtaken_by(daemon, claimed)) {
    if (!may_be_claimed(daemon, *cluster_.store.task(key))) excused.insert(key);
  }
}

void Oracle::check_overtaken(const Daemon& daemon, const Task& task) {
  const std::set<std::string>& excused = terms_[&daemon].excused[task.key];
  for (const std::string& key : overtaken_by(daemon, task)) {
    if (excused.contains(key) || !may_be_claimed(daemon, *cluster_.store.task(key))) continue;
    fail(daemon.name + " starts " + task.key + " before " + key + ", which it gave back and is " +
         daemon.queue->state_text(key));
  }
}

// Only the leader of a partition runs its jobs.
void Oracle::on_alone(const Daemon& starting, const StartJob& start) {
  const Task& task = *start.task;
  const std::string who = starting.name + " starts " + task.key;
  for (const auto& [id, job] : starting.jobs) {
    if (!task.serial_key.empty() && job.task->serial_key == task.serial_key) {
      fail(who + " beside " + job.task->key + ", both of " + task.serial_key);
    }
  }
  if (starting.jobs.size() >= starting.options.concurrency) fail(who + " beyond its concurrency");
  const auto executor = starting.options.executor_of(task.type);
  const auto of_it =
      std::count_if(starting.jobs.begin(), starting.jobs.end(), [&](const auto& job) {
        return starting.options.executor_of(job.second.task->type) == executor;
      });
  const TypePolicy* policy = starting.options.policy_of(task.type);
  if (policy != nullptr && policy->concurrency != 0 && of_it >= policy->concurrency) {
    fail(who + " beyond the concurrency of its executor");
  }
  for (const auto& daemon : cluster_.daemons()) {
    const bool runs = std::any_of(daemon->jobs.begin(), daemon->jobs.end(), [&](const auto& job) {
      return job.second.partition == start.partition && !job.second.stood_still;
    });
    if (daemon.get() != &starting && runs && cluster_.now >= cluster_.unguarded_until) {
      fail(who + " beside a job of " + daemon->name);
    }
  }
}

void Oracle::on_commit(const Daemon& daemon, const Commit& commit) {
  Term& term = terms_[&daemon];
  std::set<std::string> keys;
  const auto writes = [&](const std::string& key) {
    if (key.empty() || keys.insert(key).second) return;
    fail(daemon.name + " writes " + key + " twice in one transaction");
  };
  for (const Op& op : commit.ops) {
    const bool prunes = std::holds_alternative<PruneOp>(op);
    const auto* finish = std::get_if<FinishOp>(&op);
    if (!prunes) writes(key_of(op));
    if (prunes || (finish != nullptr && finish->done)) writes("the history of " + key_of(op));
    for (const KvWrite& each : finish == nullptr ? std::vector<KvWrite>{} : finish->writes) {
      writes(each.key);
    }
  }
  for (const Op& op : commit.ops) {
    if (term.acknowledged.contains(version_of(op))) {
      // A write from an old listing is tried, and refused; a finished job is not done again.
      if (!stale_ || std::holds_alternative<FinishOp>(op)) {
        fail(daemon.name + (deletes(op) ? " ends " : " claims ") + version_of(op).first +
             " again, whose end was acknowledged");
      }
    }
    const auto* restamp = std::get_if<RestampOp>(&op);
    if (restamp == nullptr) continue;
    const Owner self{&daemon, daemon.incarnation};
    if (restamp->stamp.taken && restamp->stamp.claim) {
      const bool is_new = claims_.emplace(restamp->stamp.claim->nonce, self).second;
      // A claim sent again keeps its place.
      const bool is_first = term.tried.insert(restamp->key).second;
      const Task* claimed = cluster_.store.task(restamp->key);
      if (claimed != nullptr && is_new) excuse(daemon, *claimed);
      if (is_first && restamp->stamp.attempt == 1 && restamp->stamp.lost == 0) {
        check_order(daemon, *restamp);
      }
    }
    // The writer lives.
    const Task* stored = cluster_.store.task(restamp->key);
    if (stored == nullptr || stored->modify_index != restamp->index || !stored->stamp.claim) {
      continue;
    }
    if (stored->stamp.taken) check_owner(daemon, commit, *restamp, stored->stamp);
  }
}

// A task is taken over. Its owner counts as lost, unless it has given up the claim and the leader
// could read that before it led.
void Oracle::check_owner(const Daemon& daemon, const Commit& commit, const RestampOp& op,
                         const Stamp& stored) {
  const std::string& nonce = stored.claim->nonce;
  const auto owner = claims_.find(nonce);
  const bool counts = op.stamp.lost > stored.lost;
  if (owner == claims_.end() || (!counts && !op.stamp.taken)) return;
  const auto& [claimant, incarnation] = owner->second;
  const bool is_self = claimant == &daemon && daemon.life <= incarnation;
  const std::optional<Instant> given_up = cluster_.given_up_at(nonce);
  if (!counts) {
    if (!is_self && !given_up) {
      fail(daemon.name + " takes over " + op.key + ", and does not count " + claimant->name +
           " as a lost owner");
    }
    return;
  }
  if (is_self) fail(daemon.name + " counts itself as the lost owner of " + op.key);
  if (!given_up || !claimant->is_up() || claimant->life > incarnation) return;
  for (const std::uint32_t partition : commit.partitions) {
    if (led_since_[{&daemon, partition}] < *given_up) return;
  }
  fail(daemon.name + " counts " + claimant->name + " as the lost owner of " + op.key +
       ", which lives and has given up the claim");
}

void Oracle::on_names(const Daemon& daemon, const TasksListed& names) {
  Term& term = terms_[&daemon];
  ++term.answers;
  for (auto& [key, at] : term.ended) {
    if (at >= term.answered_at) at = cluster_.now;
  }
  term.answered_at = cluster_.now;
  if (names.consul_index < term.answered_index) {
    // A key that an old answer does not show may still exist. But a key that it is the first to
    // show was seen before those that only the next one shows.
    for (const std::string_view key : names.keys.in_order()) {
      term.shown.try_emplace(std::string{key}, Term::Shown{term.answers, names.consul_index});
    }
    return;
  }
  term.answered_index = names.consul_index;
  std::map<std::string, Term::Shown, std::less<>> shown;
  for (const std::string_view key : names.keys.in_order()) {
    const auto before = term.shown.find(key);
    const std::string state = daemon.queue->state_text(key);
    const bool was_read = state != "unknown" && state != "unread" && state != "deleted";
    shown.emplace(key, before != term.shown.end()
                           ? before->second
                           : Term::Shown{term.answers, names.consul_index, was_read});
  }
  term.shown = std::move(shown);
}

// Among the keys that one answer showed, and that were not rewritten since, no task is claimed
// before its predecessor of the same serialKey; with concurrency 1 before any. Tasks that wait for
// a time of their own, or for an executor, hold up nothing.
void Oracle::check_order(const Daemon& daemon, const RestampOp& claim) {
  // A little after an answer the core knows whether a name was used again, or its deletion is not
  // shown yet.
  constexpr Duration kDoubted = 10s;
  const Term& term = terms_[&daemon];
  const auto order_of = [](const Task& task) {
    return std::tuple{*task.task_time, task.create_index, task.key};
  };
  const auto first_answer = [&](const Task& task) -> std::optional<std::uint64_t> {
    const bool is_plain = task.task_time && !task.execute_at && task.stamp == Stamp{} &&
                          task.create_index == task.modify_index;
    const auto shown = term.shown.find(task.key);
    if (!is_plain || shown == term.shown.end()) return std::nullopt;
    if (shown->second.index < task.create_index) return std::nullopt;
    return shown->second.answer;
  };
  const Task* stored = cluster_.store.task(claim.key);
  if (stored == nullptr || stored->modify_index != claim.index) return;
  const Task task = *stored;
  const auto answer = first_answer(task);
  if (answer && term.shown.at(task.key).was_read) return;
  const bool one_by_one = daemon.options.concurrency == 1 && daemon.options.partitions == 1;
  if (!answer || (task.serial_key.empty() && !one_by_one)) return;
  for (const auto& [key, shown] : term.shown) {
    if (shown.answer > *answer || term.tried.contains(key)) continue;
    const auto ended = term.ended.find(key);
    if (ended != term.ended.end() && cluster_.now < ended->second + kDoubted) continue;
    const Task* other = cluster_.store.task(key);
    if (other == nullptr || !first_answer(*other)) continue;
    // Its key had another task, whose dead letter is in doubt, or is refused again and again.
    if (daemon.queue->state_text(key) == "burying") continue;
    // A task of another serialKey may wait behind a failed task of it.
    const bool has_order =
        other->serial_key == task.serial_key || (one_by_one && other->serial_key.empty());
    if (!has_order || other->expire_at || order_of(*other) >= order_of(task)) continue;
    const std::size_t most =
        cluster_.store.costs()->record_limit(key, daemon.options.max_transaction_bytes);
    if (daemon.options.policy_of(other->type) != nullptr && other->record->size() <= most) {
      fail(daemon.name + " claims " + task.key + " before " + key +
           ", which comes first, was listed with it, and is " + daemon.queue->state_text(key));
    }
  }
}

// Lists of names take a tenth of Consul's time and of the link's at most, whoever writes, plus a
// burst. `cost`: of one list, for one of the two, which `spent` counts.
void Oracle::check_pace(const Daemon& daemon, Duration cost, Spent& spent) {
  constexpr Duration kBurst = 1s;
  if (std::exchange(spent.incarnation, daemon.incarnation) != daemon.incarnation) spent.paid = {};
  spent.paid = std::max(spent.paid, cluster_.now);
  if (spent.paid > cluster_.now + kBurst) fail(daemon.name + " lists the names too often");
  spent.paid += 10 * cost;
}

// A read with ?consistent must show the present state.
void Oracle::check_read(const Daemon& daemon, const Effect& effect, const Event& reply) {
  const auto& store = cluster_.store;
  if (const auto* read = std::get_if<LeaderRead>(&reply)) {
    if (std::get<ReadLeader>(effect).consistent && read->ok &&
        read->session != store.session_of(std::get<ReadLeader>(effect).partition)) {
      fail(daemon.name + " is told by a consistent read who leads, and it is not so");
    }
  } else if (const auto* fetched = std::get_if<TasksFetched>(&reply)) {
    for (const StoredRecord& record : fetched->records) {
      const auto* read_task = std::get_if<Task>(&record);
      const Task* task = read_task == nullptr ? nullptr : store.task(read_task->key);
      if (task != nullptr && task->modify_index != read_task->modify_index) {
        fail(daemon.name + " reads a version of " + task->key + " that there is not");
      }
    }
  }
}

void Oracle::on_served(const Daemon& daemon, const Effect& effect, const Event& reply) {
  if (const auto* names = std::get_if<TasksListed>(&reply)) {
    const auto count = static_cast<Duration::rep>(names->keys.size());
    return check_pace(daemon, 200us + 400ns * count, spent_[&daemon]);
  }
  const auto* commit = std::get_if<Commit>(&effect);
  if (commit == nullptr) return check_read(daemon, effect, reply);
  const Outcome told = std::get<Committed>(reply).outcome;
  const bool applied = cluster_.store.applied();
  if (told == (applied ? Outcome::kRejected : Outcome::kApplied)) {
    fail(daemon.name + " is told that its write was " +
         (applied ? "refused, and it was applied" : "applied, and it was not"));
  }
  if (!applied) return;
  if (const std::string partition = unfenced(*commit); !partition.empty()) {
    fail("a transaction of " + daemon.name +
         " was accepted, which does not lead, or does not fence, " + partition);
  }
  if (const std::string fault = cluster_.store.fence_fault(); !fault.empty()) {
    fail("a transaction of " + daemon.name + " was accepted: " + fault);
  }
  if (const std::string fault = cluster_.store.cost_fault(); !fault.empty()) {
    fail("a transaction of " + daemon.name + " has " + fault);
  }
  for (const Op& op : commit->ops) {
    if (const auto* bury = std::get_if<BuryOp>(&op)) on_buried(*bury);
    if (const auto* finish = std::get_if<FinishOp>(&op)) on_written(*finish);
    const auto* restamp = std::get_if<RestampOp>(&op);
    if (restamp == nullptr) continue;
    check_restamp(daemon, *restamp);
    if (rate_ && restamp->stamp.taken) check_rate(daemon, *restamp);
    const Task* now = cluster_.store.task(restamp->key);
    if (!restamp->stamp.taken && !restamp->stamp.retry_at && now != nullptr) {
      returned_[restamp->key] = {&daemon, terms_[&daemon].number, now->modify_index};
    } else {
      returned_.erase(restamp->key);
    }
    if (!restamp->stamp.taken && restamp->stamp.retry_at) {
      // A task that was claimed ahead and is given back keeps its time, and has not failed again.
      std::uint32_t& failures = history(*restamp->record).failures;
      if (restamp->stamp.attempt > failures + restamp->stamp.lost) ++failures;
    }
  }
}

// The claims of all leaders take tokens of one bucket, and no more than it has.
void Oracle::check_rate(const Daemon& daemon, const RestampOp& claim) {
  constexpr std::chrono::milliseconds kRounding{5};
  const std::string who = daemon.name + " claims " + claim.key;
  if (!claim.rate) {
    if (--reserved_ < 0) fail(who + " beyond the rate: no token was taken for it");
    return;
  }
  const auto interval = std::chrono::floor<std::chrono::milliseconds>(rate_->interval);
  const WallTime since = claim.stamp.claim->since;
  if (since + kRounding < full_at_ - interval * (rate_->burst - 1)) {
    fail(who + " beyond the rate, which other claims have used up");
  }
  full_at_ = std::max(full_at_, since);
  reserved_ += (claim.rate->full_at - full_at_ + kRounding) / interval - 1;
  full_at_ = claim.rate->full_at;
}

// Names a partition that the transaction writes for, and whose lock its session does not hold.
std::string Oracle::unfenced(const Commit& commit) const {
  const std::uint32_t count = commit.partition_count;
  if (count != cluster_.store.partitions()) {
    // Without a number, nothing fences off one that another client writes.
    const bool had_none = count == 1 && commit.count_index == 0;
    if (had_none && cluster_.store.session_of({}) == commit.session) return {};
    return "another number of partitions";
  }
  const std::set<std::uint32_t> fenced{commit.partitions.begin(), commit.partitions.end()};
  std::set<std::uint32_t> written = fenced;
  for (const Op& op : commit.ops) {
    const auto task = tasks_.find(version_of(op).first);
    const bool is_bad = task == tasks_.end() || latest_.at(task->first).starts_with("nonsense");
    if (!is_bad) written.insert(cluster_.store.partition_of(task->second));
  }
  for (const std::uint32_t partition : written) {
    const bool is_fenced = fenced.contains(partition);
    if (!is_fenced || cluster_.store.leader_session(partition) != commit.session) {
      return "partition " + std::to_string(partition);
    }
  }
  return {};
}

// The fields that are not lictor's must be unchanged.
void Oracle::check_restamp(const Daemon& daemon, const RestampOp& op) {
  const std::string what = daemon.name + " rewrites " + op.key + " without ";
  const Task* task = cluster_.store.task(op.key);
  if (task == nullptr || *task->record != latest_[op.key]) {
    fail(what + "what others wrote");
  } else if (task->flags != history(*task->record).task.flags) {
    fail(what + "its flags");
  }
}

void Oracle::check_bounds(const Daemon& daemon) {
  const Queue::Stats held = daemon.queue->stats();
  const QueueOptions& options = daemon.options;
  const std::size_t keys = latest_.size();
  const auto bound = [&](std::size_t is, std::size_t most, const char* what) {
    if (is <= most) return;
    fail(daemon.name + " holds " + std::to_string(is) + what + ", and not more than " +
         std::to_string(most) + " are to be held");
  };
  const std::size_t claimed = most_claimed(options);
  bound(held.tasks, keys, " tasks");
  bound(held.notes, 5 * keys, " notes");
  bound(held.claimed, claimed, " claims");
  bound(held.unacked, options.max_unacked + claimed, " tasks that end");
  bound(held.in_flight, options.transactions_in_flight, " transactions in flight");
  bound(held.writes, held.claimed + held.unacked + keys + limits::kMostOperations, " writes");
}

// Checks that dead letters come only when due, and never from a missing task.
void Oracle::on_buried(const BuryOp& op) {
  const auto it = records_.find(origin(*op.record));
  if (it == records_.end()) {
    if (op.readable) fail("a dead letter of nothing that was written: " + op.key);
    return;
  }
  const History& history = it->second;
  const Daemon& any = *cluster_.daemons().front();
  const TypePolicy& policy = any.policy_of(history.task);
  const std::string what = "a dead letter of " + op.key + ", " + op.reason + ": ";
  if (!written_.contains(origin(*op.record))) fail(what + "it was withdrawn");
  if (op.reason == "failed" && history.failures + 1 < policy.max_attempts) {
    fail(what + "it failed " + std::to_string(history.failures) + " times");
  }
  if (op.reason == "owner lost" && policy.delivery != Delivery::kAtMostOnce &&
      op.stamp.lost < any.options.max_losses) {
    fail(what + "it was lost " + std::to_string(op.stamp.lost) + " times");
  }
  if (op.reason == "expired" && (!history.task.expire_at || history.task.expire_at > op.at)) {
    fail(what + "before its time");
  }
}

// One refusal shows how many operations a transaction holds. Transactions under way with it may be
// refused as well.
void Oracle::check_learnt(const Daemon& daemon, const Event& reply) {
  constexpr std::size_t kUnderWay = 25;
  const bool is_too_many = std::visit(
      [](const auto& e) {
        if constexpr (requires { e.most_operations; }) {
          return e.most_operations != 0;
        } else {
          return false;
        }
      },
      reply);
  if (!is_too_many) return;
  if (++too_many_[{&daemon, daemon.incarnation}] > kUnderWay) {
    fail(daemon.name + " does not learn how many operations a transaction holds");
  }
}

void Oracle::on_delivered(const Daemon& daemon, const Effect& effect, const Event& reply,
                          Instant sent) {
  check_learnt(daemon, reply);
  // All its locks depend on one session.
  const auto proves = [&] {
    Instant& proof = proofs_.try_emplace(&daemon, Instant::min()).first->second;
    proof = std::max(proof, sent);
  };
  if (const auto* names = std::get_if<TasksListed>(&reply)) {
    const Duration transfer = std::min<Duration>(cluster_.transfer_of(reply), 1s);
    check_pace(daemon, transfer, spent_of_link_[&daemon]);
    if (names->ok) on_names(daemon, *names);
  } else if (const auto* lock = std::get_if<LockReplied>(&reply)) {
    if (lock->answer == LockReplied::Answer::kAcquired) proves();
  } else if (const auto* read = std::get_if<LeaderRead>(&reply)) {
    const auto& asked = std::get<ReadLeader>(effect);
    if (asked.consistent && read->ok && !read->session.empty()) proves();
  } else if (const auto* committed = std::get_if<Committed>(&reply)) {
    const auto& commit = std::get<Commit>(effect);
    if (committed->outcome != Outcome::kApplied) return;
    proves();
    for (const Op& op : commit.ops) {
      if (!deletes(op)) continue;
      Term& term = terms_[&daemon];
      term.acknowledged.insert(version_of(op));
      term.tried.erase(version_of(op).first);
      term.ended[version_of(op).first] = cluster_.now;
    }
  }
}

void Oracle::on_job_end(const Daemon& daemon, const Job& job, JobEnding how) {
  const std::string record = origin(*job.task->record);
  History& history = records_[record];
  const bool by_itself = job.ends <= job.dies;
  if (!daemon.queue && !by_itself) ++history.crashed;
  if (how == JobEnding::kNotStarted) --history.starts;
  // A condition of its writes may not hold, or it was asked to stop: then it may run again.
  const bool conditional = std::any_of(job.plan.writes.begin(), job.plan.writes.end(),
                                       [](const KvWrite& write) { return write.cas.has_value(); });
  if (how == JobEnding::kDone && daemon.queue && !conditional && !job.told_to_stop) {
    terms_[&daemon].done.insert(record);
  }
}

// A task that a job wrote with its finish must end like any other.
void Oracle::on_written(const FinishOp& op) {
  for (const KvWrite& write : op.writes) {
    if (!write.key.starts_with(kTasks)) continue;
    const Task* task = cluster_.store.task(write.key);
    if (task == nullptr) {
      fail("a job wrote " + write.key + ", and it is not there");
      continue;
    }
    const auto before = latest_.find(write.key);
    if (before != latest_.end()) withdrawn(before->second);
    touched_.insert(write.key);
    produced(Task{*task});
  }
}

void Oracle::check_books() {
  if (looks_away_) return;
  constexpr std::size_t kMostBytes = 4'000'000;
  if (cluster_.largest_answer > kMostBytes) {
    fail("an answer of " + std::to_string(cluster_.largest_answer) + " bytes");
  }
  const auto& store = cluster_.store;
  std::set<std::string> finished, done, wrote;
  for (const std::string& record : store.finished) finished.insert(origin(record));
  for (const std::string& record : cluster_.done) done.insert(origin(record));
  for (const auto& [write, times] : store.app_writes) {
    const std::string record = write.substr(write.find('=') + 1);
    wrote.insert(record);
    if (times != 1) fail(write + " was written " + std::to_string(times) + " times");
    if (!finished.contains(record)) fail(record + " wrote, but did not finish");
  }
  for (const std::string& record : finished) {
    if (!done.contains(record)) fail(record + " finished, but never done");
    const auto it = records_.find(record);
    if (it != records_.end() && it->second.task.type == "effects" && !wrote.contains(record)) {
      fail(record + " finished without its writes");
    }
  }
}

void Oracle::check_nothing_lost() {
  if (looks_away_) return;
  std::set<std::string> ended;
  for (const std::string& record : cluster_.store.finished) ended.insert(origin(record));
  for (const auto& [key, op] : cluster_.store.dead) ended.insert(origin(*op.record));
  for (const std::string& record : written_) {
    if (!ended.contains(record)) fail(record + " of " + history(record).task.key + " is lost");
  }
}

}  // namespace lictor::core::test
