#pragma once

#include <map>
#include <string>

#include "core/effect.h"
#include "lictor/time.h"
#include "runtime/log.h"

namespace lictor::exec {
struct Attempt;
}

namespace lictor::runtime {

// The core reports facts as plain data. This table alone words them, so the log and /v1/events
// always agree, and the texts can change without touching the core.

/// How the log and /v1/events report a kind of fact.
struct FactWords {
  core::Fact::Kind kind;
  const char* event;  ///< its name in /v1/events
  Level level;
  const char* message;
  const char* text_name = "error";     ///< of the log's field for the fact's text
  const char* duration_name = "took";  ///< of the log's field for its duration; in events "took_ms"
};
[[nodiscard]] const FactWords& words_of(core::Fact::Kind kind);
/// Whether the fact is about one lock, which its `partition` names.
[[nodiscard]] bool is_about_lock(core::Fact::Kind kind);

/// Writes a line about `fact`, from the core of `queue`, into the log. `partitions`: of the queue.
void log_fact(const std::string& queue, const core::Fact& fact, std::uint32_t partitions = 1);

/// While Consul's limits refuse requests, or its leader changes, a request fails and succeeds in
/// turn. The log gets one line a minute about each.
class TroubleLog {
 public:
  /// Whether to log `fact`: always, but a failed request about no task only once a minute.
  [[nodiscard]] bool is_news(Instant now, const core::Fact& fact);

 private:
  std::map<std::string, Instant> quiet_until_;  // by failed request
};

/// Logs a kStarted fact whose job is a program, whose pid is known only later.
void log_started(const exec::Attempt& attempt, pid_t pid);

}  // namespace lictor::runtime
