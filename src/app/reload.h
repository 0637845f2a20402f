#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "app/config.h"
#include "runtime/loop.h"

namespace lictor::app {

/// What differs in `next` and takes a restart: names, places and the timing that leases are built
/// on. Empty: all that differs can be taken over while running (executors, limits, log.level).
[[nodiscard]] std::vector<std::string> needs_restart(const Config& running, const Config& next);

/// Reloads off the loop, one at a time: files, user databases and plug-ins may take longer than a
/// lease. Its functions are called on the loop's thread.
///
///   idle --request--> loading --loaded, applied--> idle, or loading again if asked meanwhile
class Reloader {
 public:
  /// What the loop does with the result.
  using Apply = std::function<void()>;

  /// `load` runs on a thread of its own and may block; the loop then runs what it returns. `idle`
  /// is called on the loop when no reload is left to do. `loop` must outlive this.
  Reloader(runtime::Loop& loop, std::function<Apply()> load, std::function<void()> idle)
      : loop_(loop), load_(std::move(load)), idle_(std::move(idle)) {}
  /// Waits for `load`; see busy().
  ~Reloader();

  /// Begins, or begins again once the reload that is under way has been applied: what that one read
  /// may be older than this request.
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
