#include "exec/lease_board.h"

#include <sys/mman.h>

#include <new>

#include "base/assert.h"
#include "base/clock.h"
#include "base/errno_text.h"

namespace lictor::exec {

Result<LeaseBoard> LeaseBoard::create(LeaseSlot slots) {
  LICTOR_ASSERT(slots > 0);
  void* memory = mmap(nullptr, sizeof(Head) + sizeof(Slot) * slots, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return fail(ErrorCode::kFailed, "cannot share memory with the warden: " + errno_text());
  }
  auto* head = new (memory) Head{};
  new (head + 1) Slot[slots]{};
  return LeaseBoard{head, slots};
}

void LeaseBoard::Unmap::operator()(Head* head) const noexcept {
  munmap(head, sizeof(Head) + sizeof(Slot) * slots);
}

LeaseBoard::Slot& LeaseBoard::at(LeaseSlot slot) const noexcept {
  LICTOR_ASSERT(slot < slots());
  return slots_[slot];
}

bool LeaseBoard::extend(LeaseSlot slot, Instant deadline, Duration grace) noexcept {
  const std::int64_t deadline_ns = deadline.time_since_epoch().count();
  at(slot).grace_ns.store(grace.count());
  const std::int64_t previous_ns = at(slot).deadline_ns.exchange(deadline_ns);
  at(slot).given_up.store(false);

  // The warden sleeps until the deadline that it last read, then reads again. The clock is read
  // after the store: if the old deadline is still ahead, the warden will read the new one.
  if (previous_ns == 0 || deadline_ns < previous_ns) return true;
  constexpr Duration kTooNear = std::chrono::milliseconds{1};  // it may pass before it is read
  return (boot_now() + kTooNear).time_since_epoch().count() >= previous_ns;
}

bool LeaseBoard::admit(LeaseSlot slot) noexcept {
  if (slot == kNoLease) return true;
  // Count first, then read the lease: the warden reads the lease first, then the count, so one of
  // the two sees the other.
  ++at(slot).in_process_jobs;
  if (holds(slot, boot_now())) return true;
  --at(slot).in_process_jobs;
  return false;
}

}  // namespace lictor::exec
