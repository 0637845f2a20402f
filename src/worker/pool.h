#pragma once

// Workers are programs that stay and take one task after the other, which saves the start of a
// program for each task. Room, pool and process share the work:
//
//   WorkerRunner  one for each executor: start() and stop() of attempts, on the loop's thread
//   Room          one for the daemon: the mutex, the thread that reads all pipes, the lease slots
//   Pool          one worker of the configuration: which attempt goes to which process, how many
//                 processes there are, and how the end of a process ends its attempts
//   Process       three pipes and a lease; it decides nothing
//
// The room's mutex is held in every call of a pool, so a pool has no lock of its own. Work that may
// wait for a disk, and each on_exit, goes into the Outbox and runs when the mutex is free.
//
// The code is in two files: pool.cpp gives attempts to processes, and starts and closes them;
// pool_replies.cpp reads what processes say and judges how they end.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/environment.h"
#include "exec/runner.h"
#include "worker/process.h"

namespace lictor::worker {

class Room;

/// Work for when the room's mutex is free: it may wait for a disk, or is foreign code.
using Outbox = std::vector<std::function<void()>>;

/// How many processes a worker has, and why others ended.
struct Figures {
  std::uint64_t starting = 0;
  std::uint64_t idle = 0;
  std::uint64_t busy = 0;
  std::uint64_t ending = 0;
  std::array<std::uint64_t, kEndReasons> ends{};
  std::string start_error;  ///< why the last one did not start or get ready; empty: it did

  void add(const Figures& other) {
    starting += other.starting;
    idle += other.idle;
    busy += other.busy;
    ending += other.ending;
    for (std::size_t i = 0; i < kEndReasons; ++i) ends.at(i) += other.ends.at(i);
    start_error = other.start_error;
  }
};

/// The processes of one worker, and the attempts that wait for one. The room calls it with its
/// mutex held; work that must not be done then goes to the outbox.
///
/// An attempt goes to a process that is ready and has fewer attempts than tasks_per_process.
/// Without one, a process is started, up to `processes`. The core runs no more attempts at a time
/// than fit into the processes, so an attempt waits here only for one to start or to end.
///
/// Nobody knows which of several attempts killed a process, so all of them have failed. They would
/// be tried again together, and die together once more. So an attempt of a task whose last one
/// ended with its process gets a process in which no other is under way.
///
///   start() --> waiting --"run"--> under way --"done", "failed"--> on_exit
///                  ^                   |
///                  +- the process ended before it read "run" -----+
///                                      +-- it ended --> on_exit
class Pool {
 public:
  /// `room` must outlive it.
  Pool(Room& room, WorkerOptions options);

  void start(Job job, Instant now, Outbox& out);
  /// Starts a process if there is none.
  void warm(Outbox& out);
  void stop(AttemptId attempt, Instant now, Duration grace, Outbox& out);
  [[nodiscard]] std::string progress(AttemptId attempt) const;
  void follow(exec::LeaseSlot lease);
  [[nodiscard]] Figures figures() const;

  /// A runner begins or ends its use of the pool. Without users the pool ends its processes once
  /// they have no attempts.
  void join() { ++users_; }
  void leave(Instant now);
  void end_all(Outbox& out);
  [[nodiscard]] bool has_users() const { return users_ > 0; }
  [[nodiscard]] bool is_empty() const { return processes_.empty() && waiting_.empty(); }
  /// Its queue and its type.
  [[nodiscard]] std::pair<std::string, std::string> name() const {
    return {options_.queue, options_.type};
  }
  /// Equal options give the same processes, so such a pool goes on after a reload.
  [[nodiscard]] const WorkerOptions& options() const { return options_; }

  // For the room's thread.

  [[nodiscard]] Process* find(std::uint64_t number);
  void on_event(Process& process, Process::Source source, Instant now, Outbox& out);
  void on_started(Process& process, Instant now, Outbox& out);
  void on_ended(Process& process, Instant now, Outbox& out);
  /// Does what is due; returns when to call it next.
  [[nodiscard]] Instant run_timers(Instant now, Outbox& out);

 private:
  using Jobs = std::map<std::string, Job, std::less<>>;

  /// Gives waiting attempts to processes, in their order except those that must be alone, and
  /// starts the processes that they lack. Called after each event that may have made one free.
  void pump(Instant now, Outbox& out);
  /// Null: each process is full, or not ready. `alone`: only one without attempts will do. `kept`
  /// gets none, so that it becomes free for an attempt that must be alone.
  [[nodiscard]] Process* find_process(bool alone, const Process* kept);
  [[nodiscard]] Process* emptiest_process();
  [[nodiscard]] bool is_usable(const Process& process) const;
  [[nodiscard]] bool must_be_alone(const Job& job) const;
  void hand_over(Process& process, Job job, Instant now, Outbox& out);
  void lose_input(Process& process, Instant now, Outbox& out);
  void take_back_unread(Process& process, const std::string& why, Outbox& out);
  [[nodiscard]] bool start_process(Outbox& out);
  /// No process can be started, so no attempt may wait for one: each ends as not started.
  void fail_waiting(const std::string& error, Outbox& out);

  void read_replies(Process& process, Instant now, Outbox& out);
  void on_line(Process& process, std::string_view line, Instant now, Outbox& out);
  void answer(Process& process, Jobs::iterator job, exec::Exit exit, std::string_view output,
              Instant now, Outbox& out);
  /// The process has no attempt any more: it waits, or is replaced, after max_tasks or a reload.
  void rest(Process& process, Instant now);
  void read_output(Process& process, bool all, Outbox& out);
  void keep_output(Process& process, std::string_view bytes, Outbox& out);

  // Three ways to end a process: close its standard input, at whose end it exits by itself; TERM,
  // and KILL half a second later; KILL at once, since no reply of it can be trusted any more.
  void close(Process& process, EndReason reason, Instant now);
  void end(Process& process, EndReason reason);
  void break_off(Process& process, const std::string& fault, std::string_view line);
  /// The end of `job` with its process. `judged`: the end of the process itself. An attempt beside
  /// one that did not end is stopped rather than failed.
  [[nodiscard]] exec::Exit verdict(const Process& process, const Job& job,
                                   const exec::Exit& judged) const;
  [[nodiscard]] std::string why_not_ready(const Process& process, const exec::Exit& judged) const;
  void conclude(Job job, exec::Exit exit, Outbox& out);
  void refuse(Job job, const std::string& why, Outbox& out);

  [[nodiscard]] std::shared_ptr<exec::LogWriter::Log> open_log(const std::string& path) const;
  void finish_log(std::shared_ptr<exec::LogWriter::Log> log, Outbox& out);

  Room& room_;
  const WorkerOptions options_;
  exec::Program program_;
  std::size_t users_ = 0;
  std::deque<Job> waiting_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::set<std::string> suspects_;  // keys of tasks whose last attempt ended with its process
  std::array<std::uint64_t, kEndReasons> ends_{};
  std::string start_error_;
};

}  // namespace lictor::worker
