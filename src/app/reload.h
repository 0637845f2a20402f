#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "app/config.h"
#include "runtime/loop.h"

namespace lictor::app {

/// Sets all settings of `next` that need a restart as `running` has them: names, paths and the
/// timing of leases; executors, limits and log.level remain. Returns the changed ones among the
/// former, and the plug-ins whose files were replaced.
[[nodiscard]] std::vector<std::string> hold_back(const Config& running, Config& next);

/// Reloads off the loop, one at a time: files, user databases and plug-ins may take longer than a
/// lease. Its functions are called on the loop's thread.
///
///   idle --request--> loading --loaded, applied--> idle, or loading again if asked meanwhile
class Reloader {
 public:
  /// Applies the result, on the loop.
  using Apply = std::function<void()>;

  /// `load` runs on a thread of its own and may block; the loop then runs what it returns. `idle`
  /// is called on the loop when no reload is left to do. `loop` must outlive this.
  Reloader(runtime::Loop& loop, std::function<Apply()> load, std::function<void()> idle)
      : loop_(loop), load_(std::move(load)), idle_(std::move(idle)) {}
  /// Waits for `load`; see busy().
  ~Reloader();

  /// Begins a reload. During a reload: begins another one afterwards, because the running one may
  /// have read the files before this request.
  void request();
  /// Whether a reload is under way. Once the loop has ended, its result is dropped.
  [[nodiscard]] bool busy() const { return busy_; }

 private:
  void start();

  runtime::Loop& loop_;
  const std::function<Apply()> load_;
  const std::function<void()> idle_;
  std::thread thread_;
  bool busy_ = false;
  bool again_ = false;
};

}  // namespace lictor::app
