// Handles the replies of a worker's processes, and their ends.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "worker/pool.h"
#include "worker/room.h"

namespace lictor::worker {
namespace {

// A pipe holds 1 MiB at most (fs.pipe-max-size); a foreign process has written what lies beyond.
constexpr int kReadsAtEnd = 32;

// Suspects of one worker. Beyond that some are forgotten, and may share a process again.
constexpr std::size_t kMostSuspects = 10'000;

}  // namespace

// ---- What processes say ----

void Pool::on_started(Process& process, Instant now, Outbox& out) {
  if (process.said_ready) pump(now, out);
}

void Pool::on_event(Process& process, Process::Source source, Instant now, Outbox& out) {
  switch (source) {
    case Process::Source::kInput:
      if (!process.flush() || process.is_deaf()) lose_input(process, now, out);
      return;
    case Process::Source::kOutput:
      return read_output(process, false, out);
    case Process::Source::kReplies:
      return read_replies(process, now, out);
  }
}

void Pool::read_replies(Process& process, Instant now, Outbox& out) {
  if (!process.read_replies() && !process.replies_open() && process.mute_since == Instant::max()) {
    process.mute_since = process.since = now;
    if (process.state == Process::State::kReady) process.state = Process::State::kClosing;
  }
  while (process.fault.empty()) {
    const auto line = process.lines.next();
    if (!line) break;
    on_line(process, *line, now, out);
  }
  if (process.fault.empty() && process.lines.is_too_long()) {
    break_off(process, fmt::format("a reply has at most {} bytes", kMaxReplyBytes),
              process.lines.rest());
  }
}

// A reply counts only for an attempt that the process has now. Any other reply shows that the
// process has lost track of its attempts, so nothing that it says later counts either.
void Pool::on_line(Process& process, std::string_view line, Instant now, Outbox& out) {
  auto reply = parse_reply(line);
  if (!reply) return break_off(process, reply.error().message, line);
  if (std::holds_alternative<Ready>(*reply) == process.said_ready) {
    return break_off(
        process, process.said_ready ? "\"ready\" came twice" : "expected \"ready\" first", line);
  }
  if (!process.said_ready) {
    process.said_ready = true;
    start_error_.clear();
    if (process.state != Process::State::kStarting) return;
    process.state = Process::State::kReady;
    process.since = now;
    if (users_ == 0 && waiting_.empty()) return close(process, EndReason::kReplaced, now);
    return pump(now, out);
  }
  const std::string& name = std::visit(
      [](const auto& one) -> const std::string& {
        static const std::string kNone;
        if constexpr (requires { one.attempt; }) return one.attempt;
        return kNone;
      },
      *reply);
  const auto job = process.jobs.find(name);
  if (job == process.jobs.end()) {
    return break_off(process, fmt::format("attempt \"{}\" is not under way", excerpt(name)), line);
  }
  exec::Exit exit = exec::ended(job->second.attempt.id, exec::Ending::kDone);
  if (const auto* progress = std::get_if<Progress>(&*reply)) {
    job->second.progress = fmt::format(R"({{"fraction":{},"note":{}}})", progress->fraction,
                                       json_quoted(progress->text));
    return;
  }
  if (auto* failed = std::get_if<Failed>(&*reply)) {
    exit.error = std::move(failed->error);
    exit.ending = failed->permanent                      ? exec::Ending::kPermanent
                  : job->second.end_at != Instant::max() ? exec::Ending::kStopped
                                                         : exec::Ending::kRetry;
    if (failed->retry_in) {
      exit.retry_after = std::chrono::duration_cast<std::chrono::milliseconds>(*failed->retry_in);
    }
    return answer(process, job, std::move(exit), failed->output, now, out);
  }
  auto& done = std::get<Done>(*reply);
  exit.commit = std::move(done.commit);
  exit.result = std::move(done.result);
  answer(process, job, std::move(exit), done.output, now, out);
}

// With one attempt at a time, what the process has written until now is the attempt's.
void Pool::answer(Process& process, Jobs::iterator found, exec::Exit exit, std::string_view output,
                  Instant now, Outbox& out) {
  if (options_.tasks_per_process == 1) read_output(process, true, out);
  Job job = std::move(found->second);
  process.jobs.erase(found);
  suspects_.erase(job.attempt.task_key);
  if (!output.empty()) {
    (void)job.tail.write(output);
    if (job.log) {
      out.push_back(
          [this, log = job.log, text = std::string{output}] { room_.logs().write(log, text); });
    }
  }
  if (job.lease != exec::kNoLease && !room_.host().board().holds(job.lease, now)) {
    process.follow(job.lease);
  }
  conclude(std::move(job), std::move(exit), out);
  if (process.jobs.empty()) rest(process, now);
  pump(now, out);
}

void Pool::rest(Process& process, Instant now) {
  process.since = now;
  if (process.state != Process::State::kReady) return;
  const bool worn = options_.max_tasks != 0 && process.given >= options_.max_tasks;
  if (worn) return close(process, EndReason::kMaxTasks, now);
  if (users_ == 0 && waiting_.empty()) close(process, EndReason::kReplaced, now);
}

void Pool::read_output(Process& process, bool all, Outbox& out) {
  for (int round = 0; round < (all ? kReadsAtEnd : 1); ++round) {
    const std::string_view bytes = process.read_output();
    if (bytes.empty()) return;
    keep_output(process, bytes, out);
  }
}

void Pool::keep_output(Process& process, std::string_view bytes, Outbox& out) {
  const bool of_one = options_.tasks_per_process == 1 && !process.jobs.empty();
  auto& tail = of_one ? process.jobs.begin()->second.tail : process.tail;
  const auto& log = of_one ? process.jobs.begin()->second.log : process.log;
  (void)tail.write(bytes);
  if (!log) return;
  out.push_back([this, log, text = std::string{bytes}] { room_.logs().write(log, text); });
}

// ---- How processes end ----

std::string Pool::why_not_ready(const Process& process, const exec::Exit& judged) const {
  if (!process.fault.empty()) return process.fault;
  const std::string said = exec::last_line(judged.output_tail);
  const std::string last = said.empty() ? "" : "; its last line: " + said;
  if (process.reason == EndReason::kNotReady) {
    return "the worker did not say \"ready\" within start_timeout (" +
           format_duration(options_.start_timeout) + ")" + last;
  }
  if (!std::holds_alternative<exec::Exited>(process.ended->how)) return judged.error;
  return "the worker ended before it said \"ready\": " +
         (judged.error.empty() ? "exit status 0" + last : judged.error);
}

// The end of an attempt that the process had when it ended.
exec::Exit Pool::verdict(const Process& process, const Job& job, const exec::Exit& judged) const {
  exec::Exit exit = judged;
  exit.attempt = job.attempt.id;
  if (judged.ending == exec::Ending::kLost) return exit;
  const auto* exited = std::get_if<exec::Exited>(&process.ended->how);
  const bool cancelled = job.end_at != Instant::max();
  if (exited != nullptr && exited->cause == exec::StopCause::kLease) {
    exit.ending = exec::Ending::kStopped;
  } else if (!process.fault.empty()) {
    exit.ending = exec::Ending::kRetry;
    exit.error = process.fault;
  } else if (process.reason == EndReason::kUnanswered) {
    // An attempt that was not cancelled is as blameless as one whose lease ran out.
    exit.ending = exec::Ending::kStopped;
    exit.error = cancelled ? "it did not answer \"cancel\", and its process was ended"
                           : "its process was ended, since another attempt did not end";
    if (const std::size_t half = process.lines.rest().size(); cancelled && half > 0) {
      exit.error += fmt::format("; its last reply, {} bytes, has no newline", half);
    }
  } else {
    const bool by_itself = exited == nullptr || exited->cause == exec::StopCause::kNone;
    exit.ending = cancelled || !by_itself ? exec::Ending::kStopped : exec::Ending::kRetry;
    const std::string said = exec::last_line(judged.output_tail);
    if (exit.error.empty()) exit.error = "exit status 0" + (said.empty() ? "" : ": " + said);
    exit.error += " (before it answered)";
  }
  return exit;
}

// The order decides: first all replies of the process, then attempts that it had not read go back
// to the queue, then the rest ends with it, and the next process starts.
void Pool::on_ended(Process& process, Instant now, Outbox& out) {
  // Replies that the process sent before its end count.
  for (int round = 0; round < kReadsAtEnd && process.replies_open() && process.fault.empty();
       ++round) {
    read_replies(process, now, out);
  }
  read_output(process, true, out);
  const bool of_one = options_.tasks_per_process == 1 && !process.jobs.empty();
  process.ended->output_tail =
      of_one ? process.jobs.begin()->second.tail.tail() : process.tail.tail();
  const exec::Exit judged =
      exec::to_exit(process.identity.id, program_, *process.ended, options_.program.user);
  const auto* exited = std::get_if<exec::Exited>(&process.ended->how);
  if (exited != nullptr && exited->cause == exec::StopCause::kLease) {
    process.reason = EndReason::kLease;
  }
  const bool blameless =
      process.fault.empty() && exited != nullptr && exited->cause == exec::StopCause::kNone;
  if (blameless) {
    take_back_unread(process, judged.error.empty() ? "exit status 0" : judged.error, out);
  }
  for (auto& [name, job] : process.jobs) {
    exec::Exit exit = verdict(process, job, judged);
    if (options_.tasks_per_process > 1 && exit.ending == exec::Ending::kRetry) {
      if (suspects_.size() >= kMostSuspects) suspects_.erase(suspects_.begin());
      suspects_.insert(job.attempt.task_key);
    }
    conclude(std::move(job), std::move(exit), out);
  }
  process.jobs.clear();
  const bool failed_start = !process.said_ready && process.state != Process::State::kClosing &&
                            (exited == nullptr || exited->cause != exec::StopCause::kDaemonGone);
  if (failed_start) {
    fail_waiting(why_not_ready(process, judged), out);
    process.reason = EndReason::kNotReady;
  }
  ++ends_.at(static_cast<std::size_t>(process.reason));
  finish_log(process.log, out);
  room_.release(process.identity);
  std::erase_if(processes_, [&](const auto& each) { return each.get() == &process; });
  pump(now, out);
}

void Pool::conclude(Job job, exec::Exit exit, Outbox& out) {
  const bool failed =
      exit.ending == exec::Ending::kRetry || exit.ending == exec::Ending::kPermanent;
  if (exit.output_tail.empty() && failed) exit.output_tail = job.tail.tail();
  finish_log(std::move(job.log), out);
  out.push_back([on_exit = std::move(job.on_exit), exit = std::move(exit)]() mutable {
    on_exit(std::move(exit));
  });
}

// Ends an attempt that has not begun.
void Pool::refuse(Job job, const std::string& why, Outbox& out) {
  exec::Exit exit = exec::ended(job.attempt.id, exec::Ending::kNotStarted, why);
  conclude(std::move(job), std::move(exit), out);
}

// ---- Logs ----

// Null: there are to be no logs.
std::shared_ptr<exec::LogWriter::Log> Pool::open_log(const std::string& path) const {
  const exec::ProcessOptions& program = options_.program;
  if (program.log_directory.empty()) return nullptr;
  return std::make_shared<exec::LogWriter::Log>(path, program.log_cap, program.active_logs);
}

void Pool::finish_log(std::shared_ptr<exec::LogWriter::Log> log, Outbox& out) {
  if (!log) return;
  out.push_back([this, log = std::move(log)] { room_.logs().finish(log); });
}

}  // namespace lictor::worker
