#pragma once

// Consul without lictor: the same writes, made as cheaply as a program can make them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "consul_agent.h"
#include "kv.h"
#include "site.h"

namespace lictor::bench {

/// A lock of one's own, which fences the raw writes as lictor's is fenced.
class RawLock {
 public:
  explicit RawLock(const live::ConsulAgent& consul);
  ~RawLock();
  RawLock(const RawLock&) = delete;
  RawLock& operator=(const RawLock&) = delete;

  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const std::string& session() const { return session_; }

 private:
  live::Kv kv_;
  std::string key_ = "raw/leader";
  std::string session_;
};

/// `record` as lictor's claim of it would be written.
[[nodiscard]] std::string claimed(std::string record, const std::string& session);
/// The ModifyIndex that a transaction gave to what it wrote last. Throws if it was refused.
[[nodiscard]] std::uint64_t written_index(const live::HttpAnswer& answer);

/// Where tasks of the raw measurements lie.
inline constexpr const char* kRawPrefix = "raw/tasks/";

struct RawTask {
  std::string key;
  std::uint64_t index = 0;
};
[[nodiscard]] std::vector<RawTask> raw_tasks(const live::ConsulAgent& consul,
                                             const std::string& prefix);
/// Runs `part` in each of so many threads, each with a connection that is open; seconds.
[[nodiscard]] double in_parallel(const live::ConsulAgent& consul, std::size_t connections,
                                 const std::function<void(live::Kv&)>& part);
/// Carries out the bodies, on so many connections at once; seconds.
[[nodiscard]] double send_all(const live::ConsulAgent& consul,
                              const std::vector<std::string>& bodies, std::size_t connections);

/// How many operations this Consul takes in a transaction.
[[nodiscard]] std::size_t operations_taken(const live::ConsulAgent& consul);
/// `count` tasks are claimed (cas and a check-session, as many as a transaction takes) and then
/// deleted (delete-cas and a check-session). Loads them first.
[[nodiscard]] Drained raw_drain(const live::ConsulAgent& consul, std::size_t count,
                                std::size_t connections);
/// Tasks a second on one connection, one after the other: check-session, cas of the next,
/// delete-cas of the one before.
[[nodiscard]] double raw_single_rate(const live::ConsulAgent& consul, std::size_t count);
/// Tasks a second of the loop that one writes first: list; then for each task, in order, one PUT
/// with cas, the (empty) job, DELETE, and a renewal of its session.
[[nodiscard]] double plain_loop_rate(const live::ConsulAgent& consul, std::size_t count);

}  // namespace lictor::bench
