#include "exec/program_table.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "base/errno_text.h"

namespace lictor::exec {

// The pages that a mapping starts with are zero: nobody's number. To write that would touch all.
Result<ProgramTable> ProgramTable::create() {
  void* memory = mmap(nullptr, sizeof(std::atomic<pid_t>) * kPlaces, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return fail(ErrorCode::kFailed, "cannot share memory with the warden: " + errno_text());
  }
  return ProgramTable{static_cast<std::atomic<pid_t>*>(memory)};
}

ProgramTable::ProgramTable(ProgramTable&& other) noexcept
    : programs_(std::exchange(other.programs_, nullptr)),
      free_(std::move(other.free_)),
      unused_(other.unused_) {}

ProgramTable::~ProgramTable() {
  if (programs_ != nullptr) munmap(programs_, sizeof(std::atomic<pid_t>) * kPlaces);
}

std::optional<ProgramTable::Place> ProgramTable::take_place() {
  if (!free_.empty()) {
    const Place place = free_.back();
    free_.pop_back();
    return place;
  }
  if (unused_ == kPlaces) return std::nullopt;
  return unused_++;
}

void ProgramTable::give_back(Place place) {
  set(place, 0);
  free_.push_back(place);
}

std::vector<pid_t> ProgramTable::list() const {
  std::vector<pid_t> pids;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    if (const pid_t pid = programs_[place].load(); pid > 0) pids.push_back(pid);
  }
  return pids;
}

}  // namespace lictor::exec
