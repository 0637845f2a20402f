#include "support.h"

namespace lictor::worker::test {

WorkerOptions bare_script(const std::string& all, const std::vector<std::string>& arguments) {
  WorkerOptions options;
  options.program.argv = exec::test::shell(all, arguments);
  options.program.grace = 1s;
  options.queue = "oracle";
  options.type = "Any";
  return options;
}

WorkerOptions script(const std::string& on_run, const std::vector<std::string>& arguments,
                     const std::string& on_cancel) {
  return bare_script(R"(
say() { printf '%s\n' "$*" >&3; }
answer() { say '{"done":{"attempt":"'$a'"}}'; }
say '{"ready":{"protocol":1}}'
while read -r line; do
  a=${line#*'"attempt":"'}
  a=${a%%'"'*}
  case $line in
    '{"run"'*) )" + on_run +
                         R"( ;;
    *) )" + on_cancel + R"( ;;
  esac
done
)",
                     arguments);
}

std::unique_ptr<WorkerRunner> WorkerRig::runner(WorkerOptions options) {
  return WorkerRunner::create(room, std::move(options)).value();
}

void WorkerRig::start(WorkerRunner& runner, std::uint64_t id, Instant deadline) {
  REQUIRE(runner.start(attempt(id), deadline, rig.exits.callback()).has_value());
}

Exit WorkerRig::run(WorkerRunner& runner, std::uint64_t id) {
  start(runner, id);
  return of(id);
}

}  // namespace lictor::worker::test
