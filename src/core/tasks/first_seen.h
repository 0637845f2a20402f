#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "lictor/time.h"

namespace lictor::core {

/// When this leader first knew of a task, by its CreateIndex: this orders tasks without a time of
/// their own. Never falls from one CreateIndex to a higher one, in whatever order records are read.
/// To the second.
class FirstSeen {
 public:
  /// Remembers `now` for a CreateIndex above all earlier ones.
  Instant of(std::uint64_t create_index, Instant now) {
    if (marks_.empty() || create_index > marks_.back().index) add(create_index, now);
    const auto mark =
        std::lower_bound(marks_.begin(), marks_.end(), create_index,
                         [](const Mark& each, std::uint64_t index) { return each.index < index; });
    return mark->time;
  }
  void clear() { marks_.clear(); }

 private:
  struct Mark {
    std::uint64_t index;  // all from the last mark up to this were first seen at `time`
    Instant time;
  };
  // An hour and more; a task created before counts as of the oldest mark.
  static constexpr std::size_t kMostMarks = 4096;

  void add(std::uint64_t create_index, Instant now) {
    if (!marks_.empty() && now < marks_.back().time + std::chrono::seconds{1}) {
      marks_.back().index = create_index;
      return;
    }
    marks_.push_back({create_index, now});
    if (marks_.size() > kMostMarks) marks_.pop_front();
  }

  std::deque<Mark> marks_;
};

}  // namespace lictor::core
