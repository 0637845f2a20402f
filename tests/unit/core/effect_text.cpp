#include <algorithm>
#include <string_view>

#include "cluster.h"

namespace lictor::core::test {
namespace {

std::string text(const CreateSession&) { return "create a session"; }
std::string text(const RenewSession& e) { return "renew " + e.session; }
std::string text(const DestroySession& e) { return "destroy " + e.session; }
std::string text(const RememberSession& e) {
  return e.session.empty() ? "forget the session" : "remember " + e.session;
}
std::string text(const RememberHolder& e) { return "held at " + std::to_string(e.index); }
std::string of(const Partition& partition) {
  return partition.count == 1 ? std::string{} : " of partition " + std::to_string(partition.number);
}
std::string text(const AcquireLock& e) {
  return (e.held_at == 0 ? "acquire the lock with " : "restore the leader key of ") + e.session +
         of(e.partition);
}
std::string text(const ReleaseLock& e) {
  return "release the lock of " + e.session + of(e.partition);
}
std::string text(const ReadLeader& e) {
  return (e.consistent ? "prove leadership" : "watch the leader from " + std::to_string(e.index)) +
         of(e.partition);
}
std::string text(const WatchControl& e) { return "watch control from " + std::to_string(e.index); }
std::string text(const ListTasks& e) { return "list the tasks from " + std::to_string(e.index); }
std::string text(const FetchTasks& e) {
  std::string line = "read";
  for (const std::string& key : e.keys) line += ' ' + key;
  return line;
}
std::string text(const CheckTasks& e) {
  std::string line = "check";
  for (const auto& [key, index] : e.versions) line += ' ' + key + '@' + std::to_string(index);
  return line;
}
std::string text(const ListHistory&) { return "read the history"; }
std::string text(const ReadRate&) { return "read the bucket"; }
std::string text(const ReadOwners&) { return "read what the members have given up"; }
std::string text(const ListSchedules& e) {
  return "list the schedules from " + std::to_string(e.index);
}

std::string op_text(const RestampOp& op) {
  const Stamp& stamp = op.stamp;
  std::string line = stamp.taken ? "claim " : stamp.retry_at ? "put off " : "give back ";
  line += op.key + " at " + std::to_string(op.index) + " (attempt " + std::to_string(stamp.attempt);
  if (stamp.lost != 0) line += ", lost " + std::to_string(stamp.lost);
  if (op.rate) line += ", bucket at " + std::to_string(op.rate->index);
  return line + ")";
}
std::string op_text(const FinishOp& op) {
  std::string line = "finish " + op.key + " at " + std::to_string(op.index);
  for (const KvWrite& write : op.writes) line += (write.erase ? ", erase " : ", set ") + write.key;
  return line + (op.done ? ", keep it" : "");
}
std::string op_text(const PruneOp& op) { return "forget " + op.key; }
std::string op_text(const BuryOp& op) {
  std::string line = "bury " + op.key + " at " + std::to_string(op.index) + ": " + op.reason;
  if (op.taken > 0) line += " as " + op.name_end();
  return line;
}
std::string op_text(const MarkOp& op) {
  return op.what == MarkOp::What::kControl           ? "make the control key"
         : op.what == MarkOp::What::kSchedulesFolder ? "make the schedules' folder"
                                                     : "make the tasks' folder";
}
std::string op_text(const ScheduleOp& op) {
  if (op.erases) return "delete schedule " + op.name;
  return (op.makes_task ? "make the task of " : "note ") + schedule::tick_id(op.name, op.last);
}

std::string text(const Commit& e) {
  std::string line = "commit";
  const char* separator = " ";
  for (const Op& op : e.ops) {
    line += separator;
    line += std::visit([](const auto& o) { return op_text(o); }, op);
    separator = "; ";
  }
  return line;
}

std::string text(const CancelRequest&) { return "cancel a request"; }
std::string text(const StartJob& e) {
  return "start " + e.task->key + " (attempt " + std::to_string(e.task->stamp.attempt) +
         ", token " + std::to_string(e.fencing_token) + ")";
}
std::string text(const StopJob& e) { return "stop job " + std::to_string(e.attempt.value); }
std::string text(const ExtendLease&) { return "extend the lease"; }
std::string text(const EndLease&) { return "end the lease"; }
std::string fact_name(Fact::Kind kind) {
  constexpr std::string_view kNames =  // in the order of the kinds
      "campaigning, leading, lease lost, lease expired, lease regained, leader key restored, "
      "stepping down, stepped down, stopped, session created, session lost, lock-delay, claimed, "
      "started, done, failed, not started, dead, given back, owner lost, withdrawn, changed, "
      "too large, denied, store trouble, paused, control unreadable, resumed, no executor, "
      "result left out, unnameable, in a folder, unwritten, done late, result void, goes on, "
      "tick made, tick exists, ticks missed, ticks overlap, schedule fault, schedule ahead, "
      "schedule configured, schedule taken";
  static_assert(std::count(kNames.begin(), kNames.end(), ',') ==
                static_cast<std::ptrdiff_t>(Fact::Kind::kScheduleTaken));
  std::size_t begin = 0;
  for (int i = 0; i < static_cast<int>(kind); ++i) begin = kNames.find(", ", begin) + 2;
  return std::string{kNames.substr(begin, kNames.find(',', begin) - begin)};
}

std::string text(const Fact& e) {
  std::string line = "fact: " + fact_name(e.kind);
  if (!e.key.empty()) line += ' ' + e.key;
  if (e.partition != 0) line += " of partition " + std::to_string(e.partition);
  if (!e.text.empty()) line += ": " + e.text;
  return line;
}
std::string text(const Drained&) { return "drained"; }
std::string text(const Stopped&) { return "stopped"; }

}  // namespace

std::string effect_text(const Effect& effect) {
  return std::visit([](const auto& e) { return text(e); }, effect);
}

}  // namespace lictor::core::test
