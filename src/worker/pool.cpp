#include "worker/pool.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/time_text.h"
#include "worker/room.h"

namespace lictor::worker {
namespace {

// The time between TERM and KILL of a process that had kill_grace to answer "cancel", or to exit
// after the end of its standard input. The core counts on the end of an attempt within a second
// after kill_grace.
constexpr Duration kLastWords = std::chrono::milliseconds{500};

// A process that exits closes its descriptors a moment before the warden reports it.
constexpr Duration kMutePatience = std::chrono::seconds{2};

std::string log_stem(const WorkerOptions& options) {
  return exec::output_log_stem(options.program.log_directory, options.queue, options.type);
}

exec::Program program_of(const WorkerOptions& options) {
  const exec::ProcessOptions& configured = options.program;
  exec::Program program = exec::make_program(configured);
  exec::Variables variables =
      exec::base_environment(environ, configured.user ? &*configured.user : nullptr);
  for (const auto& [name, value] : configured.environment) variables[name] = value;
  variables["LICTOR_QUEUE"] = options.queue;
  variables["LICTOR_WORKER_FD"] = std::to_string(exec::kRepliesFd);
  for (const auto& [name, value] : variables) program.environment.push_back(name + '=' + value);
  return program;
}

}  // namespace

Pool::Pool(Room& room, WorkerOptions options)
    : room_(room), options_(std::move(options)), program_(program_of(options_)) {}

// ---- Attempts ----

void Pool::start(Job job, Instant now, Outbox& out) {
  waiting_.push_back(std::move(job));
  pump(now, out);
}

void Pool::warm(Outbox& out) {
  if (processes_.empty()) (void)start_process(out);
}

// Sends only "cancel". If no answer has come when the grace is over, run_timers() ends the process,
// and with it the other attempts that the process has.
void Pool::stop(AttemptId attempt, Instant now, Duration grace, Outbox& out) {
  const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Job& job) { return job.attempt.id == attempt; });
  if (waits != waiting_.end()) {
    Job job = std::move(*waits);
    waiting_.erase(waits);
    return refuse(std::move(job), "no process of the worker was ready for it", out);
  }
  const std::string name = std::to_string(attempt.value);
  for (const auto& process : processes_) {
    const auto found = process->jobs.find(name);
    if (found == process->jobs.end()) continue;
    Job& job = found->second;
    if (job.end_at != Instant::max()) return;
    job.end_at = now + grace;
    const char* reason = now >= job.deadline                           ? "timed out"
                         : !room_.host().board().holds(job.lease, now) ? "the lease ran out"
                                                                       : "stopped";
    (void)process->send(cancel_line(name, reason));  // One that reads no more is ended in time.
    return room_.wake();
  }
}

std::string Pool::progress(AttemptId attempt) const {
  const std::string name = std::to_string(attempt.value);
  for (const auto& process : processes_) {
    if (const auto job = process->jobs.find(name); job != process->jobs.end()) {
      return job->second.progress;
    }
  }
  const bool waits = std::any_of(waiting_.begin(), waiting_.end(),
                                 [&](const Job& job) { return job.attempt.id == attempt; });
  return waits ? R"({"fraction":0,"note":"it waits for a process of the worker"})" : "";
}

void Pool::follow(exec::LeaseSlot lease) {
  for (const auto& process : processes_) process->follow(lease);
}

void Pool::pump(Instant now, Outbox& out) {
  // An attempt that must be alone may find no process without attempts: then the others pass it,
  // and one process is kept free of them.
  const Process* kept = nullptr;
  for (std::size_t passed = 0; passed < waiting_.size();) {
    const bool alone = must_be_alone(waiting_[passed]);
    Process* process = find_process(alone, kept);
    if (process == nullptr && !alone) break;
    if (process == nullptr) {
      if (kept == nullptr) kept = emptiest_process();
      ++passed;
      continue;
    }
    Job job = std::move(waiting_[passed]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(passed));
    process->alone = alone;
    hand_over(*process, std::move(job), now, out);
  }
  std::size_t wanted = waiting_.size(), coming = 0;
  if (!suspects_.empty()) {
    for (const Job& job : waiting_)
      wanted += must_be_alone(job) ? options_.tasks_per_process - 1 : 0;
  }
  for (const auto& process : processes_) {
    if (process->state == Process::State::kStarting) coming += options_.tasks_per_process;
  }
  while (wanted > coming && processes_.size() < options_.processes) {
    if (!start_process(out)) return;
    coming += options_.tasks_per_process;
  }
}

bool Pool::must_be_alone(const Job& job) const {
  return !suspects_.empty() && suspects_.contains(job.attempt.task_key);
}

// "ready" may come before the warden's report of the pid, which a line of the log needs.
bool Pool::is_usable(const Process& process) const {
  return process.state == Process::State::kReady && process.pid != 0 &&
         (options_.max_tasks == 0 || process.given < options_.max_tasks);
}

// The ready process that was busy last, so that the others idle long enough to be closed; with
// several attempts at a time the process that has the fewest.
Process* Pool::find_process(bool alone, const Process* kept) {
  Process* best = nullptr;
  for (const auto& process : processes_) {
    const std::size_t has = process->jobs.size();
    const bool fits = is_usable(*process) && process.get() != kept &&
                      (has == 0 || (!alone && !process->alone && has < options_.tasks_per_process));
    if (!fits) continue;
    const bool better = best == nullptr || has < best->jobs.size() ||
                        (has == best->jobs.size() && process->since > best->since);
    if (better) best = process.get();
  }
  return best;
}

Process* Pool::emptiest_process() {
  Process* best = nullptr;
  for (const auto& process : processes_) {
    if (!is_usable(*process) || process->alone) continue;
    if (best == nullptr || process->jobs.size() < best->jobs.size()) best = process.get();
  }
  return best;
}

void Pool::hand_over(Process& process, Job job, Instant now, Outbox& out) {
  exec::LeaseBoard& board = room_.host().board();
  // Checks the lease again, as the warden does: this thread may have been stopped for long.
  if (!board.holds(job.lease, now)) {
    return refuse(std::move(job), exec::kLeaseOver, out);
  }
  if (job.lease != exec::kNoLease) process.bind(job.lease);
  const std::string name = std::to_string(job.attempt.id.value);
  const std::string line = run_line(job.attempt, name, to_wall_time(job.deadline));
  job.begins_at = process.bytes_sent();
  Job& given = process.jobs.emplace(name, std::move(job)).first->second;
  if (!process.send(line)) return lose_input(process, now, out);
  ++process.given;
  const exec::Attempt& attempt = given.attempt;
  given.log =
      open_log(exec::output_log_path(options_.program.log_directory, attempt.queue, attempt.key_id,
                                     attempt.number, attempt.fencing_token));
  if (given.attempt.on_pid) {
    out.push_back(
        [on_pid = std::exchange(given.attempt.on_pid, {}), pid = process.pid] { on_pid(pid); });
  }
}

// The process has closed its standard input, or is dead. It may still answer what it has read.
void Pool::lose_input(Process& process, Instant now, Outbox& out) {
  process.forget_input();
  if (process.state == Process::State::kEnding) return;  // its end decides about them
  if (process.state == Process::State::kReady) process.state = Process::State::kClosing;
  process.since = now;
  take_back_unread(process, "it ended, or closed its standard input", out);
  room_.wake();
}

// Attempts that the process has not read go to another one, once: a worker that says "ready" and
// never reads would be started for ever.
void Pool::take_back_unread(Process& process, const std::string& why, Outbox& out) {
  const std::uint64_t read = process.bytes_read();
  for (auto it = process.jobs.begin(); it != process.jobs.end();) {
    if (it->second.begins_at < read) {
      ++it;
      continue;
    }
    Job job = std::move(it->second);
    it = process.jobs.erase(it);
    finish_log(std::exchange(job.log, nullptr), out);
    if (!std::exchange(job.was_unread, true) && job.end_at == Instant::max()) {
      waiting_.push_front(std::move(job));
    } else {
      refuse(std::move(job), "the worker did not read the task: " + why, out);
    }
  }
}

// ---- Processes ----

bool Pool::start_process(Outbox& out) {
  const auto identity = room_.take_identity();
  if (!identity) {
    fail_waiting(
        fmt::format("{} processes of workers run on this host, which is the most", kMostProcesses),
        out);
    return false;
  }
  auto process =
      Process::start(room_.host(), options_, program_, *identity, room_.launch_of(*identity));
  if (!process) {
    room_.release(*identity);
    fail_waiting(process.error().message, out);
    return false;
  }
  std::string time = format_rfc3339(wall_now());
  std::erase_if(time, [](char c) { return c == ':' || c == '-'; });
  (*process)->log =
      open_log(fmt::format("{}worker-{}-{}.log", log_stem(options_), time, identity->number));
  processes_.push_back(std::move(*process));
  room_.wake();
  return true;
}

void Pool::fail_waiting(const std::string& error, Outbox& out) {
  start_error_ = error;
  for (Job& job : std::exchange(waiting_, {})) refuse(std::move(job), error, out);
}

void Pool::leave(Instant now) {
  if (--users_ > 0) return;
  for (const auto& process : processes_) {
    const bool open =
        process->state == Process::State::kReady || process->state == Process::State::kStarting;
    if (open && process->jobs.empty() && waiting_.empty()) {
      close(*process, EndReason::kReplaced, now);
    }
  }
}

// Called at the end of the room. A process without attempts is closed already.
void Pool::end_all(Outbox& out) {
  fail_waiting("this daemon ends", out);
  for (const auto& process : processes_) {
    if (process->jobs.empty() || process->state == Process::State::kEnding) continue;
    process->reason = EndReason::kReplaced;
    process->state = Process::State::kEnding;
    process->end(options_.program.grace);
  }
}

// A process exits at the end of its standard input.
void Pool::close(Process& process, EndReason reason, Instant now) {
  process.close_input();
  process.state = Process::State::kClosing;
  process.reason = reason;
  process.since = now;
  room_.wake();
}

void Pool::end(Process& process, EndReason reason) {
  if (process.state == Process::State::kEnding) return;
  if (process.state != Process::State::kClosing) process.reason = reason;
  process.state = Process::State::kEnding;
  process.end(kLastWords);
}

// Ends the process at once: no later reply of it counts.
void Pool::break_off(Process& process, const std::string& fault, std::string_view line) {
  constexpr std::size_t kShown = 200;
  process.fault = "the worker broke the protocol: " + fault;
  if (!line.empty()) process.fault += ", in the line " + excerpt(line, kShown);
  process.reason = process.said_ready ? EndReason::kProtocol : EndReason::kNotReady;
  process.state = Process::State::kEnding;
  process.end(Duration::zero());
}

Process* Pool::find(std::uint64_t number) {
  for (const auto& process : processes_) {
    if (process->identity.number == number) return process.get();
  }
  return nullptr;
}

Figures Pool::figures() const {
  Figures figures;
  figures.ends = ends_;
  figures.start_error = start_error_;
  for (const auto& process : processes_) {
    const bool ready = process->state == Process::State::kReady;
    std::uint64_t& count = process->state == Process::State::kStarting ? figures.starting
                           : !ready                                    ? figures.ending
                           : process->jobs.empty()                     ? figures.idle
                                                                       : figures.busy;
    ++count;
  }
  return figures;
}

Instant Pool::run_timers(Instant now, Outbox& out) {
  Instant next = Instant::max();
  const auto due = [&](Instant since, Duration wait) {
    const Instant at = wait < Instant::max() - since ? since + wait : Instant::max();
    if (now < at) next = std::min(next, at);
    return now >= at;
  };
  using State = Process::State;
  for (const auto& each : processes_) {
    Process& process = *each;
    if (process.state == State::kEnding) continue;
    if (process.state == State::kStarting && due(process.since, options_.start_timeout)) {
      end(process, EndReason::kNotReady);
    } else if (process.state == State::kReady && process.jobs.empty() &&
               due(process.since, options_.idle_timeout)) {
      close(process, EndReason::kIdle, now);
    }
    if (process.state == State::kClosing && process.jobs.empty() &&
        due(process.since, options_.program.grace)) {
      end(process, process.reason);
    }
    for (const auto& [name, job] : process.jobs) {
      if (job.end_at != Instant::max() && due(job.end_at, {})) end(process, EndReason::kUnanswered);
    }
    if (process.mute_since != Instant::max() && due(process.mute_since, kMutePatience)) {
      break_off(process, "it closed the descriptor of its replies and lives on", {});
    }
  }
  pump(now, out);
  return next;
}

}  // namespace lictor::worker
