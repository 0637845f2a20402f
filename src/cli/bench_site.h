#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "client/store.h"
#include "lictor/result.h"
#include "lictor/time.h"
#include "net/transport.h"

namespace lictor::cli {

/// The record of a task of about 200 bytes; `i` is its place in the order and in its id. `due_ms`
/// since the epoch; 0: at once.
[[nodiscard]] std::string task_record(std::size_t i, const std::string& type,
                                      std::int64_t due_ms = 0, std::size_t padding = 0);
/// `prefix` and eight digits: the keys have the order of the tasks.
[[nodiscard]] std::string task_key(const std::string& prefix, std::size_t i);

/// A queue for one measurement: a prefix of its own in Consul, a daemon, which is this program, and
/// its folder. The destructor removes all of it. Blocks; not thread safe.
class BenchSite {
 public:
  BenchSite(client::Store& store, net::Options consul);
  ~BenchSite();
  BenchSite(const BenchSite&) = delete;
  BenchSite& operator=(const BenchSite&) = delete;

  /// An error once interrupted(); ends what blocks, so that the destructor cleans up.
  [[nodiscard]] static Result<void> go_on();

  /// Writes `count` no-op tasks of about 200 bytes, due at `due` where there is one.
  [[nodiscard]] Result<void> load(std::size_t count, std::optional<WallTime> due);
  /// Starts a daemon for it and waits until it leads. `settings`: of the queue, as JSON members.
  [[nodiscard]] Result<void> start(const std::string& settings);
  /// Ends it, and waits.
  void stop();
  [[nodiscard]] Result<void> pause(bool on);
  /// Waits until no task is left.
  [[nodiscard]] Result<void> wait_until_drained(std::size_t count);

  [[nodiscard]] std::string key(std::size_t i) const { return task_key(tasks_prefix(), i); }
  [[nodiscard]] std::string tasks_prefix() const { return root_ + "q/tasks/"; }

 private:
  [[nodiscard]] Result<void> make_folder(const std::string& settings);
  void clean();

  client::Store& store_;
  net::Options consul_;
  std::string root_;
  std::string folder_;
  pid_t daemon_ = -1;
};

}  // namespace lictor::cli
