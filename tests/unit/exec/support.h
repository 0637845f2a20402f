#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "exec/lease_board.h"
#include "exec/process_host.h"
#include "exec/process_runner.h"
#include "exec/runner.h"
#include "exec/warden.h"
#include "lictor/time.h"
#include "temporary_folder.h"
#include "unit/contains.h"
#include "unit/eventually.h"

namespace lictor::exec::test {

using lictor::unit::eventually;
using lictor::unit::kPatience;
using lictor::unit::TemporaryFolder;
using namespace std::chrono_literals;

/// The whole file, or "" while there is none.
[[nodiscard]] std::string contents(const std::string& path);
void write_file(const std::string& path, std::string_view bytes);

/// Waits for a process to write its number, and a newline, to a file.
[[nodiscard]] pid_t pid_in(const std::string& path);

/// Whether a process has ended; it may be a zombie still.
[[nodiscard]] bool gone(pid_t pid);

/// The ends of attempts, from any thread.
class Exits {
 public:
  [[nodiscard]] ExitCallback callback();
  /// Waits for the end of `attempt`.
  [[nodiscard]] Exit of(AttemptId attempt);
  [[nodiscard]] bool has(AttemptId attempt);
  void wait_for(std::size_t count);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<AttemptId, Exit> exits;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

[[nodiscard]] Attempt attempt(std::uint64_t id, std::string record = R"({"taskId": "7"})");

/// "/bin/sh -c <script> sh <arguments>"
[[nodiscard]] std::vector<std::string> shell(std::string script,
                                             std::vector<std::string> arguments = {});

/// A warden and its host in this process.
class Rig {
 public:
  explicit Rig(WardenOptions options = {});
  ~Rig();

  [[nodiscard]] std::unique_ptr<ProcessRunner> runner(ProcessOptions options);
  [[nodiscard]] std::unique_ptr<ProcessRunner> runner(std::vector<std::string> argv);

  /// Begins an attempt, which may outlive its runner.
  void start(ProcessRunner& runner, std::uint64_t id);
  std::unique_ptr<ProcessRunner> start(ProcessOptions options,
                                       const Attempt& attempt = test::attempt(1));
  std::unique_ptr<ProcessRunner> start(std::vector<std::string> argv,
                                       const Attempt& attempt = test::attempt(1));
  /// Waits for the end of an attempt.
  [[nodiscard]] Exit of(std::uint64_t id) { return exits.of(AttemptId{id}); }
  [[nodiscard]] bool has(std::uint64_t id) { return exits.has(AttemptId{id}); }

  /// Runs one attempt to its end.
  [[nodiscard]] Exit run(ProcessOptions options, const Attempt& attempt);
  [[nodiscard]] Exit run(std::vector<std::string> argv, const Attempt& attempt = test::attempt(1));

  /// Ends host and warden.
  void close() { host.reset(); }

  [[nodiscard]] std::vector<std::string> warnings();
  [[nodiscard]] bool warden_died();

  LeaseBoard board;
  pid_t warden = 0;
  Exits exits;

 private:
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  bool warden_died_ = false;

 public:
  std::unique_ptr<ProcessHost> host;
};

/// A Rig with a folder.
struct RigInFolder : Rig {
  using Rig::Rig;
  const TemporaryFolder dir;
};

/// A daemon in a process of its own, which tests can kill and stop. `body` runs in it with a Rig,
/// and then it does nothing more, for ever.
class MiniDaemon {
 public:
  enum class PidfdOpen { kAllowed, kDenied };  ///< as in containers that know nothing of it
  /// `before` runs in it first, to make it another user's say.
  explicit MiniDaemon(const std::function<void(Rig&)>& body, WardenOptions options = {},
                      PidfdOpen pidfd_open = PidfdOpen::kAllowed,
                      const std::function<void()>& before = {});
  /// Kills it if it still lives, and waits for its warden to end.
  ~MiniDaemon();
  MiniDaemon(const MiniDaemon&) = delete;
  MiniDaemon& operator=(const MiniDaemon&) = delete;

  void send(int signal_number) const;
  /// Waits for its end; returns the wait status.
  [[nodiscard]] int wait();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] pid_t warden() const { return warden_; }

 private:
  pid_t pid_ = 0;
  pid_t warden_ = 0;
  bool waited_ = false;
};

}  // namespace lictor::exec::test
