#include "exec/warden_log.h"

#include <poll.h>
#include <unistd.h>

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"

namespace lictor::exec {

void emit(std::string_view message) {
  const std::string now = format_rfc3339(wall_now());
  const std::string text = printable(message);
  const nlohmann::json object{{"level", "error"}, {"message", text}, {"time", now}};
  const std::string line = emits_json      ? object.dump() + '\n'
                           : emits_journal ? fmt::format("<3>lictor: {}\n", text)
                                           : fmt::format("{} error lictor: {}\n", now, text);
  pollfd standard_error{STDERR_FILENO, POLLOUT, 0};
  if (poll(&standard_error, 1, 0) == 1) (void)!write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace lictor::exec
