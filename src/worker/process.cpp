#include "worker/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/errno_text.h"
#include "base/try.h"
#include "exec/channel.h"

namespace lictor::worker {
namespace {

struct Pipe {
  UniqueFd reader, writer;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorCode::kFailed, "cannot make a pipe: " + errno_text());
  }
  return Pipe{UniqueFd{ends[0]}, UniqueFd{ends[1]}};
}

}  // namespace

const char* name_of(EndReason reason) {
  static constexpr std::array<const char*, kEndReasons> kNames{
      "exited", "idle", "max_tasks", "replaced", "not_ready", "protocol", "unanswered", "lease"};
  return kNames.at(static_cast<std::size_t>(reason));
}

Result<std::unique_ptr<Process>> Process::start(exec::ProcessHost& host,
                                                const WorkerOptions& options, exec::Program program,
                                                Identity identity, exec::Launch launch) {
  LICTOR_TRY(Pipe input, make_pipe());
  LICTOR_TRY(Pipe output, make_pipe());
  LICTOR_TRY(Pipe replies, make_pipe());
  std::unique_ptr<Process> process{new Process{host, options, identity}};
  process->input_ = std::move(input.writer);
  process->output_ = std::move(output.reader);
  process->replies_ = std::move(replies.reader);
  // Only our ends don't block: the worker expects its own to block.
  for (const UniqueFd* ours : {&process->input_, &process->output_, &process->replies_}) {
    fcntl(ours->get(), F_SETFL, O_NONBLOCK);
  }
  launch.streams = exec::WorkerStreams{std::move(input.reader), std::move(output.writer),
                                       UniqueFd{fcntl(process->output_.get(), F_DUPFD_CLOEXEC, 0)},
                                       std::move(replies.writer)};
  const auto watched = [&](const UniqueFd& fd, std::uint32_t events, Source source) {
    return exec::watch(identity.epoll, EPOLL_CTL_ADD, fd.get(), events, process->event(source));
  };
  // Watches the input only for the error that nobody reads it, also when there is nothing to write.
  if (!launch.streams->output_reader || !watched(process->output_, EPOLLIN, Source::kOutput) ||
      !watched(process->replies_, EPOLLIN, Source::kReplies) ||
      !watched(process->input_, 0, Source::kInput)) {
    return fail(ErrorCode::kFailed, "cannot watch a pipe: " + errno_text());
  }
  // The process has no attempt yet, so no lease ends it.
  (void)host.board().extend(identity.slot, Instant::max(), options.program.grace);
  launch.spawn.attempt = identity.id;
  launch.spawn.slot = identity.slot;
  launch.spawn.ends_with_lease = options.program.ends_with_lease;
  launch.spawn.grace = options.program.grace;
  launch.spawn.is_worker = true;
  launch.spawn.program = std::move(program);
  process->since = boot_now();
  if (auto started = host.start(std::move(launch)); !started) {
    return tl::unexpected(started.error());
  }
  return process;
}

Process::~Process() {
  for (UniqueFd* fd : {&input_, &output_, &replies_}) exec::unwatch(identity.epoll, *fd);
}

bool Process::send(std::string_view line) {
  outgoing_ += line;
  sent_ += line.size();
  return flush();
}

// Waits for EPOLLOUT only while there is something left: a pipe with room would wake the thread for
// ever.
bool Process::flush() {
  std::size_t written = 0;
  bool open = static_cast<bool>(input_);
  while (open && written < outgoing_.size()) {
    const ssize_t n = write(input_.get(), outgoing_.data() + written, outgoing_.size() - written);
    if (n > 0) written += static_cast<std::size_t>(n);
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0 && errno != EINTR) open = false;
  }
  outgoing_.erase(0, written);
  const bool wait = open && !outgoing_.empty();
  if (std::exchange(waits_for_room_, wait) != wait && input_) {
    exec::watch(identity.epoll, EPOLL_CTL_MOD, input_.get(), wait ? EPOLLOUT : 0U,
                event(Source::kInput));
  }
  return open;
}

bool Process::is_deaf() const {
  pollfd input{input_.get(), 0, 0};
  return input_ && poll(&input, 1, 0) == 1 && (input.revents & POLLERR) != 0;
}

void Process::forget_input() {
  if (input_) epoll_ctl(identity.epoll, EPOLL_CTL_DEL, input_.get(), nullptr);
}

void Process::close_input() { exec::unwatch(identity.epoll, input_); }

std::uint64_t Process::bytes_read() const {
  int unread = 0;
  if (input_ && ioctl(input_.get(), FIONREAD, &unread) != 0) unread = 0;
  return sent_ - outgoing_.size() - static_cast<std::uint64_t>(unread);
}

// Reads once a call, so that processes share the thread. At the end of file closes the descriptor.
std::string_view Process::read_some(UniqueFd& from) {
  while (from) {
    const ssize_t n = read(from.get(), identity.buffer, kReadBytes);
    if (n > 0) return {identity.buffer, static_cast<std::size_t>(n)};
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    exec::unwatch(identity.epoll, from);
  }
  return {};
}

std::string_view Process::read_output() { return read_some(output_); }

bool Process::read_replies() {
  const std::string_view bytes = read_some(replies_);
  lines.add(bytes);
  return !bytes.empty();
}

void Process::bind(exec::LeaseSlot lease) {
  if (leases_.insert(lease).second || host_.board().deadline(lease) < lease_end_) {
    take_over_leases();
  }
}

void Process::follow(exec::LeaseSlot lease) {
  if (!leases_.contains(lease)) return;
  const bool used = std::any_of(jobs.begin(), jobs.end(),
                                [&](const auto& job) { return job.second.lease == lease; });
  if (!used && !host_.board().holds(lease, boot_now())) leases_.erase(lease);
  take_over_leases();
}

// A lower end wakes the warden, which must know it before the attempt begins.
void Process::take_over_leases() {
  Instant end = Instant::max();
  for (const exec::LeaseSlot lease : leases_) end = std::min(end, host_.board().deadline(lease));
  if (std::exchange(lease_end_, end) == end) return;
  host_.set_worker_lease(identity.slot, end, grace_);
}

}  // namespace lictor::worker
