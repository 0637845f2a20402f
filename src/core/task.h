#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/options.h"
#include "lictor/time.h"

namespace lictor::core {

/// A std::optional for members that few of very many objects have: a pointer when empty, and shared
/// by copies, so it cannot be changed in place.
template <class T>
class SharedOptional {
 public:
  SharedOptional() = default;
  SharedOptional(T value) : value_(std::make_shared<const T>(std::move(value))) {}
  SharedOptional(std::optional<T> value) {
    if (value) value_ = std::make_shared<const T>(*std::move(value));
  }

  explicit operator bool() const { return value_ != nullptr; }
  [[nodiscard]] bool has_value() const { return value_ != nullptr; }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  void reset() { value_.reset(); }

  friend bool operator==(const SharedOptional& a, const SharedOptional& b) {
    return a && b ? *a == *b : static_cast<bool>(a) == static_cast<bool>(b);
  }

 private:
  std::shared_ptr<const T> value_;
};

/// The holder of a claim: the record's taskClaim. `nonce` makes every claim's bytes differ, since
/// Consul lets two CAS of the same bytes at the same index both succeed (consul.md 2.4).
struct Claim {
  std::string node;
  std::string session;
  std::string nonce;
  WallTime since{};

  friend bool operator==(const Claim&, const Claim&) = default;
};

/// The nonce of a claim. `process` is unique to a process of a daemon. `attempt` makes the nonce
/// unique within it, even after the number of partitions has changed.
[[nodiscard]] std::string claim_nonce(std::string_view process, std::uint64_t attempt);
/// Whether both are of one process and `nonce` is not of a later attempt than `last`.
[[nodiscard]] bool is_up_to(std::string_view nonce, std::string_view last);

/// The start of Stamp::error if the host could not even start the job, so that no attempt failed.
inline constexpr std::string_view kNotStartedError = "not started: ";
/// Its end if a job of the task had run before.
inline constexpr std::string_view kBegunBefore = " (begun before)";

/// The fields that lictor writes into a record. Each rewrite carries all of them.
struct Stamp {
  bool taken = false;
  std::uint32_t attempt = 0;  // attempts begun
  std::uint32_t lost = 0;     // owners lost
  std::optional<WallTime> retry_at;
  SharedOptional<Claim> claim;
  std::string error;  // the last failure; empty: none

  friend bool operator==(const Stamp&, const Stamp&) = default;
};

/// A task as read from the store.
struct Task {
  std::string key;
  std::uint64_t create_index = 0;
  std::uint64_t modify_index = 0;

  std::uint64_t flags = 0;  // Consul's, kept through rewrites

  std::string id;
  std::string type;
  std::optional<WallTime> task_time;
  std::optional<WallTime> execute_at;
  std::optional<WallTime> expire_at;
  std::string serial_key;
  std::optional<std::uint32_t> max_attempts;
  std::optional<Duration> timeout;
  SharedOptional<Backoff> backoff;
  Stamp stamp;

  std::shared_ptr<const std::string> record;  // the value's bytes; opaque to the core
  bool is_stamped = false;        // the record has a field of Stamp other than a taskTaken of false
  bool has_other_fields = false;  // the record has fields that lictor does not read

  // Set by the core:
  Instant ready_at{};     // when the task was due and known here
  WallTime first_seen{};  // as this leader saw it
};

/// A value that cannot be read as a task.
struct BadRecord {
  std::string key;
  std::uint64_t create_index = 0;
  std::uint64_t modify_index = 0;
  std::string error;
  std::shared_ptr<const std::string> record;
};

/// The time by which tasks start in order. For a task without one, the time when the leader first
/// saw it, so such tasks keep the order of their creation.
[[nodiscard]] WallTime order_time(const Task& task);
/// By order_time(), then by CreateIndex and key.
[[nodiscard]] bool starts_before(const Task& a, const Task& b);

/// Whether a job of the task has run: a job that lictor stopped counts no attempt, but leaves its
/// error.
[[nodiscard]] inline bool has_run(const Stamp& stamp) {
  return !stamp.error.empty() &&
         (!stamp.error.starts_with(kNotStartedError) || stamp.error.ends_with(kBegunBefore));
}

/// The earliest start: by executeAt and taskRetryAt; std::nullopt if at once.
[[nodiscard]] std::optional<WallTime> due_of(const Task& task);

}  // namespace lictor::core
