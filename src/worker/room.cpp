#include "worker/room.h"

#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "base/errno_text.h"
#include "base/try.h"
#include "exec/channel.h"

namespace lictor::worker {
namespace {

// The event of wake_; processes are numbered from 1 on.
constexpr std::uint64_t kWoken = 0;

// Ids of attempts that no queue gives: a process is an attempt to the warden.
constexpr std::uint64_t kFirstId = std::uint64_t{1} << 62U;

constexpr Duration kLongestWait = std::chrono::hours{1};

int to_wait_ms(Instant now, Instant next) {
  const Duration wait = std::clamp<Duration>(next - std::min(now, next), {}, kLongestWait);
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
}

}  // namespace

Room::Room(exec::ProcessHost& host, exec::LeaseSlot first_slot, std::uint32_t slots) : host_(host) {
  for (std::uint32_t i = slots; i > 0; --i) free_slots_.push_back(first_slot + i - 1);
  // A worker may close its standard input, or end, while a task is written to it.
  signal(SIGPIPE, SIG_IGN);
  host_.follow_leases([this](exec::LeaseSlot lease) {
    const std::lock_guard lock{mutex_};
    for (const auto& pool : pools_) pool->follow(lease);
  });
}

Room::~Room() {
  host_.follow_leases({});
  {
    Turn turn{*this};
    closing_ = true;
    for (const auto& pool : pools_) pool->end_all(turn.out);
  }
  if (!thread_.joinable()) return;
  wake();
  thread_.join();
}

Result<void> Room::open() {
  if (thread_.joinable()) return {};
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_ || !wake_.open() ||
      !exec::watch(epoll_.get(), EPOLL_CTL_ADD, wake_.fd(), EPOLLIN, kWoken)) {
    return fail(ErrorCode::kFailed, "cannot watch workers: " + errno_text());
  }
  buffer_ = std::make_unique_for_overwrite<char[]>(Process::kReadBytes);
  try {
    logs_ = std::make_unique<exec::LogWriter>(host_.on_warning());
    thread_ = std::thread{[this] { work(); }};
  } catch (const std::system_error& error) {
    return fail(ErrorCode::kFailed, std::string{"cannot start a thread: "} + error.what());
  }
  return {};
}

Result<std::shared_ptr<Pool>> Room::join(WorkerOptions options) {
  auto pool = std::make_shared<Pool>(*this, std::move(options));
  const std::lock_guard lock{mutex_};
  if (auto opened = open(); !opened) return tl::unexpected(opened.error());
  const auto same = std::find_if(pools_.begin(), pools_.end(), [&](const auto& other) {
    return other->has_users() && other->options() == pool->options();
  });
  if (same != pools_.end()) {
    (*same)->join();
    return *same;
  }
  pool->join();
  pools_.push_back(pool);
  return pool;
}

void Room::leave(const std::shared_ptr<Pool>& pool) {
  const std::lock_guard lock{mutex_};
  pool->leave(boot_now());
  wake();
}

std::map<std::pair<std::string, std::string>, Figures> Room::all_figures() {
  const std::lock_guard lock{mutex_};
  std::map<std::pair<std::string, std::string>, Figures> all;
  for (const auto& pool : pools_) {
    const auto past = past_.find(pool->name());
    const auto [figures, is_first] = all.try_emplace(pool->name());
    if (is_first && past != past_.end()) figures->second = past->second;
    figures->second.add(pool->figures());
  }
  return all;
}

// ---- For the pools ----

std::optional<Process::Identity> Room::take_identity() {
  if (free_slots_.empty()) return std::nullopt;
  const exec::LeaseSlot slot = free_slots_.back();
  free_slots_.pop_back();
  const std::uint64_t number = ++last_number_;
  return Process::Identity{number, AttemptId{kFirstId + number}, slot, epoll_.get(), buffer_.get()};
}

// Without a deadline the warden skips the slot.
void Room::release(const Process::Identity& identity) {
  (void)host_.board().extend(identity.slot, Instant{}, {});
  free_slots_.push_back(identity.slot);
}

// These run on the host's thread, which must not run a pool's code: they note what happened, and
// the room's thread does the rest. They wake it within the lock: once it has seen the last end, the
// room may be destroyed.
exec::Launch Room::launch_of(const Process::Identity& identity) {
  const auto note = [this](std::vector<std::uint64_t>& list, std::uint64_t number, auto change) {
    const std::lock_guard lock{mutex_};
    Pool* pool = owner_of(number);
    if (pool == nullptr) return;
    change(*pool->find(number));
    list.push_back(number);
    wake();
  };
  exec::Launch launch;
  launch.on_end = [this, note, number = identity.number](exec::ProcessEnd end) {
    note(ended_, number, [&](Process& process) { process.ended = std::move(end); });
  };
  launch.on_pid = [this, note, number = identity.number](pid_t pid) {
    note(started_, number, [&](Process& process) { process.pid = pid; });
  };
  return launch;
}

Pool* Room::owner_of(std::uint64_t number) {
  for (const auto& pool : pools_) {
    if (pool->find(number) != nullptr) return pool.get();
  }
  return nullptr;
}

// ---- The thread ----

void Room::work() {
  int wait_ms = 0;
  while (wait_ms >= 0) wait_ms = take_events(wait_ms);
}

// Handles events first, then starts and ends: what a process said is read before its end is judged.
// Returns how long the next call may wait; -1: the room is closed, and no process is left.
int Room::take_events(int wait_ms) {
  std::array<epoll_event, 64> events{};
  const int count =
      epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms);
  LICTOR_ASSERT(count >= 0 || errno == EINTR);
  const Instant now = boot_now();
  Instant next = Instant::max();
  std::vector<std::shared_ptr<Pool>> empty;  // the outbox may refer to them
  Turn turn{*this};
  for (int i = 0; i < count; ++i) {
    const std::uint64_t about = events[static_cast<std::size_t>(i)].data.u64;
    if (about == kWoken) {
      wake_.clear();
      continue;
    }
    const std::uint64_t number = about / Process::kSources;
    Pool* pool = owner_of(number);
    if (pool == nullptr) continue;
    const auto source = static_cast<Process::Source>(about % Process::kSources);
    pool->on_event(*pool->find(number), source, now, turn.out);
  }
  for (const std::uint64_t number : std::exchange(started_, {})) {
    if (Pool* pool = owner_of(number)) pool->on_started(*pool->find(number), now, turn.out);
  }
  for (const std::uint64_t number : std::exchange(ended_, {})) {
    if (Pool* pool = owner_of(number)) pool->on_ended(*pool->find(number), now, turn.out);
  }
  for (const auto& pool : pools_) next = std::min(next, pool->run_timers(now, turn.out));
  std::erase_if(pools_, [&](const auto& pool) {
    const bool gone = !pool->has_users() && pool->is_empty();
    if (gone) empty.push_back(pool);
    if (gone) past_[pool->name()].add(pool->figures());
    return gone;
  });
  std::erase_if(past_, [&](const auto& past) {
    return std::none_of(pools_.begin(), pools_.end(),
                        [&](const auto& pool) { return pool->name() == past.first; });
  });
  return closing_ && pools_.empty() ? -1 : to_wait_ms(now, next);
}

}  // namespace lictor::worker
