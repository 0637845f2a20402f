#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../exec/support.h"
#include "worker/room.h"
#include "worker/worker_runner.h"

namespace lictor::worker::test {

using namespace std::chrono_literals;
using exec::Ending;
using exec::Exit;
using exec::test::attempt;
using exec::test::contents;
using exec::test::eventually;
using exec::test::gone;
using exec::test::pid_in;
using exec::test::TemporaryFolder;
using exec::test::write_file;

/// Answers "run" with the pid of the process.
inline const std::string kPid = R"(say '{"done":{"attempt":"'$a'","result":'$$'}}')";

/// A worker in shell. `on_run` runs for each "run", with its attempt in $a; `answer` says "done",
/// `say` writes a reply, $1 and so on are `arguments`. `on_cancel` runs for other requests.
[[nodiscard]] WorkerOptions script(const std::string& on_run,
                                   const std::vector<std::string>& arguments = {},
                                   const std::string& on_cancel = ":");
/// A worker that does `all`, without the work of script().
[[nodiscard]] WorkerOptions bare_script(const std::string& all,
                                        const std::vector<std::string>& arguments = {});

/// A warden, a host, and a room for four processes.
class WorkerRig {
 public:
  [[nodiscard]] std::unique_ptr<WorkerRunner> runner(WorkerOptions options);
  /// Begins an attempt.
  void start(WorkerRunner& runner, std::uint64_t id, Instant deadline = Instant::max());
  /// Runs one attempt to its end.
  [[nodiscard]] Exit run(WorkerRunner& runner, std::uint64_t id);
  [[nodiscard]] Exit of(std::uint64_t id) { return rig.exits.of(AttemptId{id}); }
  [[nodiscard]] bool has(std::uint64_t id) { return rig.exits.has(AttemptId{id}); }

  const TemporaryFolder dir;
  exec::test::Rig rig;
  Room room{*rig.host, 4, 4};
};

}  // namespace lictor::worker::test
