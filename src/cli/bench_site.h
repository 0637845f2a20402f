#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "client/store.h"
#include "lictor/result.h"
#include "lictor/time.h"
#include "net/transport.h"

namespace lictor::cli {

/// A queue that a measurement has for itself: a prefix in Consul that nobody else uses, a daemon
/// that is this program, a folder for it. All of it is gone when this is. Blocks; not thread safe.
class BenchSite {
 public:
  BenchSite(client::Store& store, net::Options consul);
  ~BenchSite();
  BenchSite(const BenchSite&) = delete;
  BenchSite& operator=(const BenchSite&) = delete;

  /// An error once interrupted(): what blocks here ends with it, so that nothing is left behind.
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

  [[nodiscard]] std::string key(std::size_t i) const;
  [[nodiscard]] static std::string record(std::size_t i, std::optional<WallTime> due);
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
