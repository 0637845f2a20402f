#include "fake_store.h"

#include <algorithm>
#include <utility>

#include "core/commits/write_batcher.h"
#include "fault.h"
#include "simple_costs.h"

namespace lictor::core::test {
namespace {

std::uint64_t& index_of(StoredRecord& record) {
  return std::visit([](auto& r) -> std::uint64_t& { return r.modify_index; }, record);
}

using Failure = Committed::Failure;

// A deposed leader's server that was frozen for as long (consul.md 5).
constexpr Duration kMostStale = 30s;

}  // namespace

SessionCreated FakeStore::create_session(Instant now, const CreateSession& effect, Duration ttl,
                                         Duration lock_delay) {
  const std::string id = "s" + std::to_string(++last_session_);
  sessions_[id] = {ttl, lock_delay, {}};
  start_timer(now, sessions_[id]);
  return {effect.request, Outcome::kApplied, id, {}};
}

SessionRenewed FakeStore::renew(Instant now, const RenewSession& effect) {
  const auto it = sessions_.find(effect.session);
  if (it == sessions_.end()) return {effect.request, SessionRenewed::Answer::kGone, {}};
  start_timer(now, it->second);
  return {effect.request, SessionRenewed::Answer::kAlive, {}};
}

SessionDestroyed FakeStore::destroy(Instant now, const DestroySession& effect) {
  invalidate(now, effect.session);
  return {effect.request, Outcome::kApplied};
}

void FakeStore::start_timer(Instant now, Session& session) {
  // Consul promises no more than "not before the TTL, and at twice of it".
  const auto ttl = static_cast<double>(session.ttl.count());
  session.expires = now + Duration{static_cast<Duration::rep>(ttl * (1.0 + random_.fraction()))};
}

void FakeStore::invalidate(Instant now, const std::string& session) {
  const auto node = sessions_.extract(session);
  if (node.empty()) return;
  for (auto& [partition, lock] : locks_) {
    if (lock.session != session) continue;
    lock.session.clear();
    lock.modify_index = ++index_;
    lock.barred_until =
        std::max(lock.barred_until, now + std::min(node.mapped().lock_delay, kMostLockDelay));
  }
}

void FakeStore::fail_over(Instant now) {
  for (auto& [id, session] : sessions_) start_timer(now, session);
}

void FakeStore::expire_sessions(Instant now) {
  std::vector<std::string> over;
  for (const auto& [id, session] : sessions_) {
    if (session.expires <= now) over.push_back(id);
  }
  for (const std::string& id : over) invalidate(now, id);
}

Instant FakeStore::next_expiry() const {
  Instant next = Instant::max();
  for (const auto& [id, session] : sessions_) next = std::min(next, session.expires);
  return next;
}

LockReplied FakeStore::lock(Instant now, const AcquireLock& effect, const std::string& node,
                            std::uint64_t incarnation) {
  using Answer = LockReplied::Answer;
  if (no_right.contains("leader")) {
    return {effect.request, Answer::kRefused, 0, "Permission denied"};
  }
  if (!session_lives(effect.session)) return {effect.request, Answer::kSessionGone, 0, {}};
  const bool is_divided = effect.if_undivided && count_index_ != 0;
  if (!is_count(effect.count_index) || is_divided) {
    return {effect.request, Answer::kCountChanged, 0, {}};
  }
  Key& leader = locks_[lock_of(effect.partition)];
  if (effect.held_at != 0 &&
      (leader.session != effect.session || leader.modify_index != effect.held_at)) {
    return {effect.request, Answer::kChanged, 0, "current modify index does not match"};
  }
  const std::string value = node + '#' + std::to_string(incarnation);
  if (leader.session == effect.session) {
    if (effect.held_at == 0) {
      return {effect.request, Answer::kChanged, 0, {}};
    }
    if (std::exchange(leader.value, value) != value) leader.modify_index = ++index_;
    return {effect.request, Answer::kAcquired, leader.modify_index, {}};
  }
  if (now < leader.barred_until) return {effect.request, Answer::kLockDelay, 0, {}};
  if (!leader.session.empty()) return {effect.request, Answer::kHeld, 0, {}};
  const bool as_seen = leader.exists ? leader.modify_index == effect.free_at : effect.free_at == 0;
  if (!as_seen) {
    return {effect.request, Answer::kChanged, 0, {}};
  }
  leader = {true, effect.session, value, ++index_, sessions_[effect.session].lock_delay};
  return {effect.request, Answer::kAcquired, index_, {}};
}

UnlockReplied FakeStore::unlock(const ReleaseLock& effect) {
  Key& leader = locks_[lock_of(effect.partition)];
  const bool checked = !FAULT(UnlockUnchecked);
  if (leader.session != effect.session || (checked && leader.modify_index != effect.index)) {
    return {effect.request, Outcome::kRejected};
  }
  leader.session.clear();
  leader.value = leader.value.substr(0, leader.value.find('#'));
  leader.modify_index = ++index_;
  return {effect.request, Outcome::kApplied};
}

LeaderRead FakeStore::read_leader(const ReadLeader& effect) const {
  const auto it = locks_.find(lock_of(effect.partition));
  const Key leader = it == locks_.end() ? Key{} : it->second;
  LeaderRead reply;
  reply.request = effect.request;
  reply.ok = true;
  reply.found = leader.exists;
  reply.session = leader.session;
  reply.holder = leader.value.substr(0, leader.value.find('#'));
  reply.released = leader.exists && leader.session.empty() && reply.holder == leader.value;
  reply.holder_lock_delay = leader.lock_delay;
  reply.modify_index = leader.modify_index;
  reply.consul_index = leader_index(effect.partition);
  return effect.consistent ? reply
                           : spoiled(std::move(reply), leader_reads_[lock_of(effect.partition)]);
}

ControlRead FakeStore::read_control(const WatchControl& effect) const {
  ControlRead reply;
  reply.request = effect.request;
  reply.ok = true;
  reply.unreadable = control_unreadable_;
  reply.found = control_.exists;
  reply.paused = paused_ || control_unreadable_;
  if (control_unreadable_) reply.by = "nonsense";
  reply.step_down = step_down_;
  reply.consul_index = control_index();
  return spoiled(std::move(reply), control_reads_);
}

TasksListed FakeStore::list(const ListTasks& effect) const {
  TasksListed reply;
  reply.request = effect.request;
  reply.ok = true;
  reply.consul_index = unreadable ? index_ : tasks_index();
  if (unreadable) return reply;
  reply.marker = marker_.exists;
  std::vector<std::string> names;
  names.reserve(tasks_.size());
  for (const auto& [key, record] : tasks_) names.push_back(key);
  reply.keys = KeyList{names};
  if (effect.index == 0) return reply;  // by a quorum
  return spoiled(std::move(reply), lists_);
}

// A server that lags answers with what was true a while ago.
template <class Reply>
Reply FakeStore::spoiled(Reply reply, std::deque<std::pair<Instant, Reply>>& earlier) const {
  constexpr std::size_t kMost = 8;
  const Tamper how = tampering_.how;
  while (!earlier.empty() && earlier.front().first < now_ - kMostStale) earlier.pop_front();
  std::optional<Reply> old;
  if (how == Tamper::kStale && !earlier.empty()) {
    const auto which = tampering_.where * static_cast<double>(earlier.size());
    old = earlier[static_cast<std::size_t>(which)].second;
    old->request = reply.request;
  }
  const bool spoils = old || how == Tamper::kRewound || how == Tamper::kNoIndex;
  if (spoils) ++tampered_[how];
  if (remembers) {
    earlier.emplace_back(now_, reply);
    if (earlier.size() > kMost) earlier.pop_front();
  }
  if (old) return *std::move(old);
  if (how == Tamper::kRewound) {
    reply.consul_index = 1 + static_cast<std::uint64_t>(
                                 tampering_.where * static_cast<double>(reply.consul_index - 1));
  } else if (how == Tamper::kNoIndex) {
    reply.consul_index = 0;
  }
  return reply;
}

std::optional<LeaderRead> FakeStore::poll(const ReadLeader& effect, bool over) const {
  if (!over && leader_index(effect.partition) <= effect.index) return std::nullopt;
  return read_leader(effect);
}

std::optional<ControlRead> FakeStore::poll(const WatchControl& effect, bool over) const {
  if (!over && control_index() <= effect.index) return std::nullopt;
  return read_control(effect);
}

std::optional<TasksListed> FakeStore::poll(const ListTasks& effect, bool over) const {
  if (!over && (unreadable ? index_ : tasks_index()) <= effect.index) return std::nullopt;
  return list(effect);
}

TasksFetched FakeStore::fetch(const FetchTasks& effect) const {
  TasksFetched reply;
  reply.request = effect.request;
  if (effect.keys.size() > most_operations) {
    reply.error = "too many operations";
    reply.most_operations = most_operations;
    return reply;
  }
  reply.ok = true;
  for (const std::string& key : effect.keys) {
    if (!tasks_.contains(key)) reply.missing.push_back(key);
  }
  if (!reply.missing.empty()) return reply;  // one get that fails spoils the transaction
  for (const std::string& key : effect.keys) {
    StoredRecord record = tasks_.at(key);
    std::visit(
        [&](auto& r) {
          reply.bytes += 150 + key.size() + r.record->size() / 3 * 4;
          r.record = std::make_shared<const std::string>(*r.record);  // each answer has its own
        },
        record);
    reply.records.push_back(std::move(record));
  }
  return reply;
}

TasksChecked FakeStore::check(const CheckTasks& effect) const {
  TasksChecked reply;
  reply.request = effect.request;
  reply.ok = true;
  for (const auto& [key, index] : effect.versions) {
    const auto it = tasks_.find(key);
    if (it == tasks_.end()) {
      reply.missing.push_back(key);
    } else if (core::index_of(it->second) != index) {
      reply.changed.push_back(key);
    }
  }
  return reply;
}

RateRead FakeStore::read(const ReadRate& effect) const {
  RateRead reply;
  reply.request = effect.request;
  reply.denied = no_right.contains("rate, to read");
  reply.ok = !reply.denied;
  if (!reply.ok) reply.error = "Permission denied";
  reply.modify_index = rate.index;
  if (rate.index != 0) reply.full_at = rate.full_at;
  return reply;
}

HistoryListed FakeStore::list(const ListHistory& effect) const {
  HistoryListed reply;
  reply.request = effect.request;
  reply.ok = true;
  for (const auto& [key, done] : history) {
    reply.entries.push_back({key, done.second, done.first->at});
  }
  return reply;
}

SchedulesListed FakeStore::list(const ListSchedules& effect) const {
  SchedulesListed reply;
  reply.request = effect.request;
  reply.ok = reply.marker = true;
  reply.consul_index = schedules_index_;
  if (unreadable) {
    reply.marker = false;
    return reply;
  }
  reply.unchanged = effect.index == schedules_index_;
  if (reply.unchanged) return reply;
  for (const auto& [name, entry] : schedules) reply.entries.push_back(entry);
  return reply;
}

std::optional<SchedulesListed> FakeStore::poll(const ListSchedules& effect, bool over) const {
  if (!over && schedules_index_ <= effect.index) return std::nullopt;
  return list(effect);
}

// Made if there is none.
SchedulesListed::Entry& FakeStore::entry_of(const std::string& name) {
  const auto [it, is_new] = schedules.try_emplace(name);
  SchedulesListed::Entry& entry = it->second;
  if (!is_new) return entry;
  entry.create_index = index_;
  entry.name = name;
  entry.key = "schedules/" + name;
  entry.tasks_prefix = kTasks;
  entry.record = std::make_shared<const std::string>(name);
  return entry;
}

void FakeStore::put_schedule(const std::string& name,
                             std::shared_ptr<const schedule::Definition> what) {
  ++index_;
  SchedulesListed::Entry& entry = entry_of(name);
  schedules_index_ = entry.modify_index = index_;
  entry.error = what ? "" : "it cannot be read";
  entry.last_task_key =
      what && !what->last_task.empty() ? std::string{kTasks} + what->last_task : std::string{};
  entry.definition = std::move(what);
}

void FakeStore::remove_schedule(const std::string& name) {
  if (schedules.erase(name) != 0) schedules_index_ = ++index_;
}

// The transaction was checked before.
void FakeStore::apply(const ScheduleOp& op) {
  if (op.erases) {
    if (schedules.erase(op.name) != 0) schedules_index_ = index_;
    return;
  }
  auto next = *op.definition;
  next.last_tick = op.last;
  next.last_task = op.last_task;
  next.paused = op.definition->paused || op.pauses;
  if (op.makes_task) {
    Task task;
    task.id = schedule::tick_id(op.name, op.last);
    task.key = std::string{kTasks} + task.id;
    task.type = "T";
    task.execute_at = op.last;
    task.record = std::make_shared<const std::string>(task.id);
    ++ticks[task.id];
    templates_.insert_or_assign(*task.record, task);
    task.modify_index = task.create_index = index_;
    tasks_.insert_or_assign(task.key, std::move(task));
  }
  SchedulesListed::Entry& entry = entry_of(op.name);
  schedules_index_ = entry.modify_index = index_;
  entry.last_task_key = op.last_task.empty() ? "" : std::string{kTasks} + op.last_task;
  entry.definition = std::make_shared<const schedule::Definition>(std::move(next));
}

std::string FakeStore::dead_key(const BuryOp& op) {
  return "dead/" + op.key.substr(kTasks.size()) + op.name_end();
}

Committed FakeStore::commit(const Commit& commit) {
  Committed reply;
  reply.request = commit.request;
  auto& failures = reply.failures;
  for (const std::uint32_t partition : commit.partitions) {
    if (FAULT(DropFence)) continue;
    const bool ours = !commit.session.empty() && is_count(commit.count_index) &&
                      locks_[{commit.partition_count, partition}].session == commit.session;
    if (ours) continue;
    failures.push_back({Committed::kFence, OpFailure::kNotLeader, Committed::Part::kTask,
                        "not the leader", partition});
  }
  const Cost cost = cost_of(commit);
  const bool too_many = cost.operations > most_operations;
  if (too_many || cost.bytes > most_bytes) {
    applied_ = false;
    return {commit.request,
            Outcome::kRejected,
            0,
            {{Committed::kFence, OpFailure::kTooLarge, Committed::Part::kTask, "too large"}},
            {},
            too_many ? most_operations : 0};
  }
  std::map<std::string_view, std::uint64_t> within;  // operations see earlier ones
  for (std::size_t i = 0; i < commit.ops.size(); ++i) {
    const Op& op = commit.ops[i];
    using Part = Committed::Part;
    const auto fail = [&](OpFailure why, Part part, const char* text) {
      failures.push_back({i, why, part, text});
    };
    if (const auto* mark = std::get_if<MarkOp>(&op)) {
      const bool folder = mark->what == MarkOp::What::kTasksFolder;
      if (no_right.contains(folder ? kTasks : "control")) {
        fail(OpFailure::kDenied, Part::kTask, "Permission denied");
      } else if ((folder ? marker_ : control_).exists) {
        fail(OpFailure::kStale, Part::kTask, "exists");
      }
      continue;
    }
    if (const auto* prune = std::get_if<PruneOp>(&op)) {
      const auto it = history.find(prune->key);
      if (it != history.end() && it->second.second != prune->index) {
        fail(OpFailure::kStale, Part::kTask, "index is stale");
      }
      continue;
    }
    if (const auto* tick = std::get_if<ScheduleOp>(&op)) {
      const auto it = schedules.find(tick->name);
      const std::string task = std::string{kTasks} + schedule::tick_id(tick->name, tick->last);
      if (no_right.contains(tick->key)) {
        fail(OpFailure::kDenied, Part::kTask, "Permission denied");
      } else if (it == schedules.end()
                     ? tick->index != 0 && !tick->erases
                     : it->second.modify_index != tick->index && !FAULT(TickUnchecked)) {
        fail(OpFailure::kStale, Part::kTask, "index is stale");
      } else if (tick->makes_task && tasks_.contains(task)) {
        fail(OpFailure::kStale, Part::kNewTask, "index is stale");
      }
      continue;
    }
    const std::string& key = core::key_of(op);
    if (no_right.contains(key)) {
      fail(OpFailure::kDenied, Part::kTask, "Permission denied");
      continue;
    }
    const auto it = tasks_.find(key);
    const std::uint64_t before = it == tasks_.end() ? 0 : index_of(it->second);
    const std::uint64_t after = std::holds_alternative<RestampOp>(op) ? index_ + 1 : 0;
    const std::uint64_t index = std::exchange(within.try_emplace(key, before).first->second, after);
    if (const auto* restamp = std::get_if<RestampOp>(&op)) {
      const bool is_stale = index == 0 || (index != restamp->index && !FAULT(NoCas));
      if (is_stale) fail(OpFailure::kStale, Part::kTask, "index is stale");
      if (is_stale || !restamp->rate) continue;
      if (no_right.contains("rate")) {
        fail(OpFailure::kDenied, Part::kRate, "Permission denied");
      } else if (restamp->rate->index != rate.index && !FAULT(BucketUnchecked)) {
        fail(OpFailure::kStale, Part::kRate, "index is stale");
      }
    } else if (const auto* finish = std::get_if<FinishOp>(&op)) {
      const bool all_or_nothing = !finish->writes.empty() || finish->done;
      if ((all_or_nothing || index != 0) && index != finish->index && !FAULT(PlainDelete)) {
        fail(OpFailure::kStale, Part::kTask, "index is stale");
      }
      for (const KvWrite& write : finish->writes) {
        const auto entry = app.find(write.key);
        const std::uint64_t have = entry == app.end() ? 0 : entry->second.second;
        if (no_right.contains(write.key)) {
          fail(OpFailure::kDenied, Part::kJobWrite, "Permission denied");
        } else if (write.cas && *write.cas != have) {
          fail(OpFailure::kStale, Part::kJobWrite, "index is stale");
        }
      }
    } else if (const auto* bury = std::get_if<BuryOp>(&op)) {
      if (index != bury->index && !FAULT(BuryUnchecked)) {
        fail(OpFailure::kStale, Part::kTask, "index check");
      } else if (dead.contains(dead_key(*bury))) {
        fail(OpFailure::kStale, Part::kDeadLetter, "index is stale");
      }
    }
  }
  if (!failures.empty() && FAULT(WritesOutside)) {
    for (const Op& op : commit.ops) {
      const auto* finish = std::get_if<FinishOp>(&op);
      if (finish == nullptr) continue;
      for (const KvWrite& write : finish->writes) ++app_writes[write.key + "=" + write.value];
    }
  }
  applied_ = failures.empty();
  if (!applied_) {
    reply.outcome = Outcome::kRejected;
    return reply;
  }

  reply.outcome = Outcome::kApplied;
  const std::uint64_t next = ++index_;
  for (const Op& op : commit.ops) {
    if (const auto* mark = std::get_if<MarkOp>(&op)) {
      const bool folder = mark->what == MarkOp::What::kTasksFolder;
      (folder ? marker_ : control_) = {true, {}, {}, next};
      reply.modify_index = next;
    } else if (const auto* prune = std::get_if<PruneOp>(&op)) {
      history.erase(prune->key);
    } else if (const auto* tick = std::get_if<ScheduleOp>(&op)) {
      apply(*tick);
      reply.modify_index = next;
    } else if (const auto* restamp = std::get_if<RestampOp>(&op)) {
      Task task = templates_.at(*restamp->record);
      StoredRecord& stored = tasks_.at(restamp->key);
      task.key = restamp->key;
      task.flags = restamp->flags;
      task.stamp = restamp->stamp;
      task.create_index = std::visit([](const auto& r) { return r.create_index; }, stored);
      task.modify_index = next;
      stored = std::move(task);
      if (restamp->rate) rate = {next, restamp->rate->full_at};
      reply.modify_index = next;
    } else if (const auto* finish = std::get_if<FinishOp>(&op)) {
      if (const Task* ended = task(finish->key)) finished.push_back(*ended->record);
      for (const KvWrite& write : finish->writes) {
        if (write.erase) {
          app.erase(write.key);
        } else if (write.key.starts_with(kTasks)) {
          Task task = templates_.at(write.value);
          task.key = write.key;
          store(std::move(task), next);
        } else {
          app[write.key] = {write.value, next};
          ++app_writes[write.key + "=" + write.value];
        }
        reply.modify_index = next;
      }
      if (finish->done) {
        history[finish->key] = {finish->done, next};
        reply.modify_index = next;
      }
      erase(finish->key);
    } else if (const auto* bury = std::get_if<BuryOp>(&op)) {
      dead.emplace(dead_key(*bury), *bury);
      erase(bury->key);
      reply.modify_index = next;
    }
  }
  return reply;
}

void FakeStore::erase(const std::string& key) {
  if (tasks_.erase(key) != 0) last_erased_ = index_;
}

void FakeStore::store(StoredRecord record, std::uint64_t index) {
  index_of(record) = index;
  const std::string key = key_of(record);
  const auto it = tasks_.find(key);
  const std::uint64_t created =
      it == tasks_.end() ? index
                         : std::visit([](const auto& r) { return r.create_index; }, it->second);
  std::visit([&](auto& r) { r.create_index = created; }, record);
  tasks_.insert_or_assign(key, std::move(record));
}

void FakeStore::put(Task task) {
  static_cast<void>(value_of(task));
  store(std::move(task), ++index_);
}

std::string FakeStore::value_of(const Task& task) {
  templates_.insert_or_assign(*task.record, task);
  return *task.record;
}

void FakeStore::put_bad(const std::string& key, const std::string& bytes,
                        const std::string& error) {
  BadRecord bad;
  bad.key = key;
  bad.error = error;
  bad.record = std::make_shared<const std::string>(bytes);
  store(std::move(bad), ++index_);
}

void FakeStore::touch(const std::string& key, const std::string& bytes) {
  Task task = std::get<Task>(tasks_.at(key));
  task.record = std::make_shared<const std::string>(bytes);
  put(std::move(task));
}

void FakeStore::remove(const std::string& key) {
  ++index_;
  erase(key);
}

void FakeStore::remove_leader_key() {
  const Instant barred_until = locks_[lock_of(0)].barred_until;
  locks_[lock_of(0)] = {false, {}, {}, ++index_, {}, barred_until};
}

void FakeStore::overwrite_leader_key() {
  locks_[lock_of(0)].value = "a stranger#";
  locks_[lock_of(0)].lock_delay.reset();
  locks_[lock_of(0)].modify_index = ++index_;
}

void FakeStore::control(bool paused, const std::string& step_down) {
  paused_ = paused;
  control_unreadable_ = false;
  step_down_ = step_down;
  control_ = {true, {}, {}, ++index_};
}

void FakeStore::remove_control() {
  paused_ = control_unreadable_ = false;
  step_down_.clear();
  control_ = {false, {}, {}, ++index_};
}

const Task* FakeStore::task(const std::string& key) const {
  const auto it = tasks_.find(key);
  return it == tasks_.end() ? nullptr : std::get_if<Task>(&it->second);
}

std::vector<std::string> FakeStore::task_keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, record] : tasks_) keys.push_back(key);
  return keys;
}

// The index of a prefix is that of its newest key or tombstone; of one never used, and of a missing
// key, that of the whole table (consul.md 4.2).
std::uint64_t FakeStore::tasks_index() const {
  std::uint64_t index = std::max(marker_.modify_index, last_erased_);
  for (const auto& [key, record] : tasks_) index = std::max(index, core::index_of(record));
  return index == 0 ? index_ : index;
}

void FakeStore::remove_tree() {
  ++index_;
  tasks_.clear();
  marker_ = {};
}

void FakeStore::remove_all() {
  remove_tree();
  last_erased_ = index_;
  remove_control();
  for (auto& [id, lock] : locks_) lock = {false, {}, {}, index_, {}, lock.barred_until};
  make_partitions(1);
  history.clear();
}

bool FakeStore::is_count(std::uint64_t count_index) const {
  return FAULT(AnyCount) || count_index == 0 || count_index == count_index_;
}

namespace {

using Kind = DivisionReply::Answer;

std::string lock_name(const std::pair<std::uint32_t, std::uint32_t>& lock) {
  if (lock.first == 1) return "leader";
  return "leader/" + std::to_string(lock.first) + '/' + std::to_string(lock.second);
}

}  // namespace

FleetRead FakeStore::answer(const ReadFleet& ask) const {
  FleetRead read;
  if (count_index_ != 0) read.count = count_;
  read.count_index = count_index_;
  if (!ask.with_locks) return read;
  for (const auto& [id, lock] : locks_) {
    if (!lock.exists) continue;
    read.locks.push_back(
        {lock_name(id), read_leader({{}, true, 0, {id.first, id.second}}), id.first});
  }
  return read;
}

DivisionReply FakeStore::answer(const ReadCount&) const {
  return {count_index_ == 0 ? Kind::kNo : Kind::kYes, {}};
}

DivisionReply FakeStore::answer(const ProbeUndivided&) const {
  return {count_index_ == 0 ? Kind::kYes : Kind::kUnknown, {}};
}

DivisionReply FakeStore::answer(const CreateCount& ask) {
  if (count_index_ != 0) return {Kind::kNo, "there is a number"};
  std::uint64_t leader_index = 0;
  for (const FleetRead::Lock& lock : ask.locks) {
    if (lock.key == lock_name({1, 0})) leader_index = lock.read.modify_index;
    for (const auto& [id, held] : locks_) {
      if (lock_name(id) == lock.key && held.modify_index != lock.read.modify_index) {
        return {Kind::kNo, "a lock has changed"};
      }
    }
  }
  Key& leader = locks_[{1, 0}];
  if ((leader.exists ? leader.modify_index : 0) != leader_index) {
    return {Kind::kNo, "the leader key has changed"};
  }
  make_partitions(ask.count);
  leader.exists = true;
  leader.value = "free";
  leader.modify_index = count_index_;
  return {Kind::kYes, {}};
}

DivisionReply FakeStore::answer(const DeleteLocks& ask) {
  std::vector<Key*> lost;
  for (const FleetRead::Lock& lock : ask.locks) {
    for (auto& [id, held] : locks_) {
      if (lock_name(id) != lock.key || !held.exists) continue;
      if (held.modify_index != lock.read.modify_index) return {Kind::kNo, "a lock has changed"};
      lost.push_back(&held);
    }
  }
  ++index_;
  for (Key* lock : lost) *lock = {false, {}, {}, index_, {}, lock->barred_until};
  return {Kind::kYes, {}};
}

DivisionReply FakeStore::answer(const ChangeCount& ask) {
  if (!is_count(ask.count_index)) return {Kind::kNo, "another number"};
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (ask.session.empty() || leader_session(i) != ask.session) return {Kind::kNo, "no lock"};
  }
  make_partitions(ask.to);
  return {Kind::kYes, {}};
}

std::uint64_t FakeStore::leader_index(const Partition& partition) const {
  const auto lock = locks_.find(lock_of(partition));
  return lock != locks_.end() && lock->second.exists ? lock->second.modify_index : index_;
}
std::uint64_t FakeStore::control_index() const {
  return control_.exists ? control_.modify_index : index_;
}

}  // namespace lictor::core::test
