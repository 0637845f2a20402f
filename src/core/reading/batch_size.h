#pragma once

// How many values to ask Consul for at once. Their size is not known beforehand, so this begins
// with a few, doubles while answers are small, and halves when one is large or late.

#include <algorithm>
#include <cstddef>

#include "core/options.h"
#include "lictor/time.h"

namespace lictor::core {

class BatchSize {
 public:
  explicit BatchSize(const QueueOptions& options) : options_(options) {}

  [[nodiscard]] std::size_t keys() const { return std::min(keys_, options_.max_operations); }

  /// So many keys got an answer of so many bytes.
  void answered(std::size_t keys, std::size_t bytes, Duration took) {
    const bool is_small = bytes <= kSmallBytes;
    const bool is_late = !is_small && took > options_.request_timeout / 4;
    if (bytes > kGoodBytes || is_late) {
      failed(keys);
    } else if (2 * bytes <= kGoodBytes && (is_small || took <= options_.request_timeout / 8)) {
      keys_ = std::max(keys_, std::min(2 * keys, options_.max_operations));
    }
  }
  void failed(std::size_t keys) { keys_ = std::max<std::size_t>(1, std::min(keys_, keys) / 2); }
  void reset() { keys_ = kFirst; }

 private:
  // Not above 4 MB, even if each value is as large as Consul takes: 700 kB in base64.
  static constexpr std::size_t kFirst = 4;
  // The most that an answer should hold. The next may be several times as large by surprise.
  static constexpr std::size_t kGoodBytes = 1024 * 1024;
  // The time of a smaller answer says nothing about the link.
  static constexpr std::size_t kSmallBytes = 64 * 1024;

  const QueueOptions& options_;
  std::size_t keys_ = kFirst;
};

}  // namespace lictor::core
