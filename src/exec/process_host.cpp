#include "exec/process_host.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "base/errno_text.h"
#include "base/try.h"
#include "exec/children.h"

namespace lictor::exec {
namespace {

// The source of an event: the warden's channel, or the output of the attempt with this id.
constexpr std::uint64_t kWardenChannel = 0;

// A pipe's usual capacity: one read empties it.
constexpr std::size_t kReadBytes = 65536;

// A pipe holds 1 MiB at most (fs.pipe-max-size); anything beyond comes from a foreign process.
constexpr std::size_t kReadsAfterEnd = 32;

// Longer than LogWriter may block a caller: beyond this the thread hangs.
constexpr Duration kLongStep = LogWriter::kPatience * 2;

// How long to wait for the end of the warden, and then for the ends of the orphans. The daemon exits
// soon after.
constexpr Duration kOrphanPatience = std::chrono::seconds{2};

// Wait up to 5 s, a millisecond at a time, for the warden's zombie after its channel closed.
constexpr int kWardenRounds = 5'000;

// After this time without any event, the warden may be stopped.
constexpr int kQuietMs = 5'000;

}  // namespace

Result<std::unique_ptr<ProcessHost>> ProcessHost::create(Warden warden, LeaseBoard& board,
                                                         Hooks hooks) {
  UniqueFd epoll{epoll_create1(EPOLL_CLOEXEC)};
  if (!epoll) return fail(ErrorCode::kFailed, "cannot watch the warden: " + errno_text());
  return std::unique_ptr<ProcessHost>{
      new ProcessHost{std::move(warden), board, std::move(hooks), std::move(epoll)}};
}

ProcessHost::ProcessHost(Warden warden, LeaseBoard& board, Hooks hooks, UniqueFd epoll)
    : board_(board),
      hooks_(std::move(hooks)),
      warden_pid_(warden.pid),
      run_id_(std::move(warden.run_id)),
      epoll_(std::move(epoll)),
      channel_(std::move(warden.channel)),
      buffer_(std::make_unique_for_overwrite<char[]>(kReadBytes)),
      logs_(hooks_.on_warning) {
  channel_.watch_in(epoll_.get(), kWardenChannel);
  thread_ = std::thread{[this] { run(); }};
}

ProcessHost::~ProcessHost() {
  {
    const std::lock_guard lock{mutex_};
    closing_ = true;
    // Unsent orders no longer matter.
    channel_.finish_sending();
  }
  wake_warden();
  thread_.join();
  // The warden is about to end, but a debugger may keep its zombie.
  for (int round = 0; round < kWardenRounds && !reap(warden_pid_); ++round) poll(nullptr, 0, 1);
}

// --- From any thread

// Makes the job's pipe and input. The warden learns of them with the order.
Result<Packet> ProcessHost::make_streams(const Launch& launch, Job& job) {
  LICTOR_TRY(auto input,
             sealed_file("lictor-task", launch.input ? std::string_view{*launch.input} : ""));
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return fail(ErrorCode::kFailed, "cannot make a pipe: " + errno_text());
  }
  job.output.reset(pipe[0]);
  job.writer.reset(pipe[1]);
  const int output = job.output.get();
  Packet packet;
  packet.fds.push_back(std::move(input));
  packet.fds.emplace_back(fcntl(job.writer.get(), F_DUPFD_CLOEXEC, 0));
  packet.fds.emplace_back(fcntl(output, F_DUPFD_CLOEXEC, 0));
  // Set only our end: the job's writes must block, as it expects.
  fcntl(output, F_SETFL, O_NONBLOCK);
  if (!packet.fds[1] || !packet.fds[2] ||
      !watch(epoll_.get(), EPOLL_CTL_ADD, output, EPOLLIN, launch.spawn.attempt.value)) {
    return fail(ErrorCode::kFailed, "cannot watch a pipe: " + errno_text());
  }
  return packet;
}

Result<void> ProcessHost::start(Launch launch) {
  const AttemptId id = launch.spawn.attempt;
  auto job = std::make_unique<Job>();
  Packet packet;
  if (launch.streams) {
    WorkerStreams& streams = *launch.streams;
    packet.fds.push_back(std::move(streams.input));
    packet.fds.push_back(std::move(streams.output));
    packet.fds.push_back(std::move(streams.output_reader));
    packet.fds.push_back(std::move(streams.replies));
  } else {
    LICTOR_TRY(packet, make_streams(launch, *job));
  }
  job->on_end = std::move(launch.on_end);
  job->on_pid = std::move(launch.on_pid);
  job->log = std::move(launch.log);
  packet.bytes = encode(Order{std::move(launch.spawn)});

  // No output can come before the warden gets the other end of the pipe.
  const std::lock_guard lock{mutex_};
  LICTOR_ASSERT(!jobs_.contains(id));
  if (closing_ || !send(packet)) {
    unwatch(epoll_.get(), job->output);
    return fail(ErrorCode::kUnavailable, "the warden is gone");
  }
  jobs_[id] = std::move(job);
  return {};
}

void ProcessHost::stop(AttemptId attempt, Duration grace) {
  Packet packet{encode(Order{Stop{attempt, grace}}), {}};
  const std::lock_guard lock{mutex_};
  if (!jobs_.contains(attempt) || !send(packet)) return;  // Without a warden nothing runs.
  wake_warden();
}

// Worker slots follow once the board has the new deadline; follow_ is empty without workers.
void ProcessHost::set_lease(LeaseSlot slot, Instant deadline, Duration grace) {
  set_worker_lease(slot, deadline, grace);
  if (follow_) follow_(slot);
}

void ProcessHost::set_worker_lease(LeaseSlot slot, Instant deadline, Duration grace) {
  if (!board_.extend(slot, deadline, grace)) return;
  Packet packet{encode(Order{LeaseChanged{}}), {}};
  const std::lock_guard lock{mutex_};
  (void)send(packet);
}

void ProcessHost::clear_lease(LeaseSlot slot) {
  board_.clear(slot);
  wake_warden();
  if (follow_) follow_(slot);
}

void ProcessHost::keep_lock(HeldLock lock) {
  Packet packet{encode(Order{std::move(lock)}), {}};
  const std::lock_guard guard{mutex_};
  (void)send(packet);
}

// A warden stopped by SIGSTOP would end no program, not even when the lease is over. The pid is
// valid until waitpid().
void ProcessHost::wake_warden() const { kill(warden_pid_, SIGCONT); }

bool ProcessHost::send(Packet& packet) {
  if (warden_gone_ || !channel_.send(packet)) return false;
  channel_.watch_in(epoll_.get(), kWardenChannel);
  return true;
}

// --- The host's thread

void ProcessHost::run() {
  std::array<epoll_event, 64> events{};
  while (!warden_gone_) {
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), kQuietMs);
    LICTOR_ASSERT(count >= 0 || errno == EINTR);
    if (count == 0) wake_warden();
    bool reports = false;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      step_began_ns_ = boot_now().time_since_epoch().count();
      if (event.data.u64 != kWardenChannel) {
        read_output(AttemptId{event.data.u64});
      } else {
        if ((event.events & EPOLLOUT) != 0) {
          const std::lock_guard lock{mutex_};
          (void)channel_.flush();  // Reading detects a dead warden.
          channel_.watch_in(epoll_.get(), kWardenChannel);
        }
        reports = true;
      }
    }
    // Read the outputs of this round first: a report erases its job.
    if (reports) read_reports();
    step_began_ns_ = 0;
  }
}

bool ProcessHost::responds(Instant now) const noexcept {
  const Instant began{Duration{step_began_ns_}};
  return began == Instant{} || now - began < kLongStep;
}

void ProcessHost::read_reports() {
  Packet packet;
  while (true) {
    // Only this thread receives; sending shares nothing with it but the socket.
    switch (channel_.receive(packet)) {
      case Channel::Received::kNothing:
        return;
      case Channel::Received::kGone:
        return lose_warden();
      case Channel::Received::kPacket:
        step_began_ns_ = boot_now().time_since_epoch().count();
        if (const auto report = decode_report(packet.bytes)) {
          std::visit([this](const auto& one) { on_report(one); }, *report);
        }
    }
  }
}

void ProcessHost::read_output(AttemptId id) {
  Job* job = nullptr;
  {
    const std::lock_guard lock{mutex_};
    const auto found = jobs_.find(id);
    if (found != jobs_.end()) job = found->second.get();
  }
  // One read a round, so that a flood from one job does not starve the others.
  if (job != nullptr && job->output) (void)read_once(*job);
}

// False: there is nothing to read now, or the pipe has ended.
bool ProcessHost::read_once(Job& job) {
  const ssize_t n = read(job.output.get(), buffer_.get(), kReadBytes);
  if (n > 0) {
    const std::string_view bytes{buffer_.get(), static_cast<std::size_t>(n)};
    (void)job.tail.write(bytes);
    if (job.log) logs_.write(job.log, bytes);
    return true;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  unwatch(epoll_.get(), job.output);
  return false;
}

// on_pid() runs without the mutex: it may lock Room::mutex_, which comes before this one.
void ProcessHost::on_report(const Started& started) {
  std::function<void(pid_t)> on_pid;
  {
    const std::lock_guard lock{mutex_};
    const auto found = jobs_.find(started.attempt);
    if (found == jobs_.end()) return;
    found->second->program = started.pid;
    on_pid = std::move(found->second->on_pid);
  }
  if (on_pid) on_pid(started.pid);
}

// The pipe may hold output from before the end. Read that now, but no more than a pipe may hold,
// since a process that left the attempt can write for ever.
void ProcessHost::end(AttemptId id, std::variant<Exited, SpawnFailed, WardenDied> how) {
  std::unique_ptr<Job> job;
  {
    const std::lock_guard lock{mutex_};
    auto node = jobs_.extract(id);
    if (node.empty()) return;
    job = std::move(node.mapped());
  }
  for (std::size_t i = 0; i < kReadsAfterEnd && job->output && read_once(*job); ++i) {
  }
  unwatch(epoll_.get(), job->output);
  if (job->log) logs_.finish(job->log);
  job->on_end(ProcessEnd{how, job->tail.tail()});
}

void ProcessHost::lose_warden() {
  std::vector<AttemptId> left;
  std::vector<pid_t> programs;
  bool expected = false;
  {
    const std::lock_guard lock{mutex_};
    warden_gone_ = true;
    expected = closing_;
    for (const auto& [id, job] : jobs_) {
      left.push_back(id);
      if (job->program != 0) programs.push_back(job->program);
    }
  }
  // Jobs may also be left after an ordered end: the warden may have crashed before.
  if (!left.empty() || !expected) kill_orphans(programs);
  for (const AttemptId id : left) end(id, WardenDied{});
  if (!expected && hooks_.on_warden_death) hooks_.on_warden_death();
}

// The programs themselves die with the warden (PR_SET_PDEATHSIG). Their descendants become our
// children, since we are a subreaper; cgroup, session or mark identifies them.
void ProcessHost::kill_orphans(const std::vector<pid_t>& programs) {
  // The channel may close a moment before the warden is dead, and only then are they our children.
  const Instant until = boot_now() + kOrphanPatience;
  siginfo_t ended{};
  while (waitid(P_PID, static_cast<id_t>(warden_pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0 && boot_now() < until) {
    poll(nullptr, 0, 10);
  }
  (void)kill_left_jobs(getpid(), run_id_, kOrphanPatience, [&](pid_t pid) {
    return std::ranges::count(programs, getsid(pid)) != 0 && !reap(pid);
  });
}

}  // namespace lictor::exec
