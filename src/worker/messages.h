#pragma once

// The messages between lictor and a worker (workers.md): a JSON document a line. Pure;
// parse_reply() takes any bytes.
//
//   lictor --> worker   {"run": {}}   {"cancel": {}}
//   worker --> lictor   {"ready": {}} first, then {"progress": {}}, {"done": {}}, {"failed": {}}
//
// The task's record and the job's result and commit stay text on their way: run_line() inserts the
// record, with spaces for its line ends, and parse_reply() hands on the text that came. So numbers
// keep all their digits. In a reply, null counts as absent, and an unknown member is ignored; a
// known one of another type is an error, which ends the process (worker/pool.h).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "exec/runner.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::worker {

/// The version of the protocol.
inline constexpr std::int64_t kProtocolVersion = 1;
/// A reply with its newline. A worker that never ends its line must not fill the daemon's memory;
/// result and commit together fit.
inline constexpr std::size_t kMaxReplyBytes = 1U << 20U;

/// The request for `attempt`, which all messages call `name`. `deadline`: std::nullopt means never.
[[nodiscard]] std::string run_line(const exec::Attempt& attempt, std::string_view name,
                                   std::optional<WallTime> deadline);
/// Asks for the end of the attempt `name`. The worker answers with "done" or "failed" all the same.
[[nodiscard]] std::string cancel_line(std::string_view name, std::string_view reason);

struct Ready {
  std::int64_t protocol = 0;
};
/// `result` and `commit` are texts of JSON values, not validated any further.
struct Done {
  std::string attempt;
  std::optional<std::string> result;
  std::optional<std::string> commit;
  std::string output;
};
struct Failed {
  std::string attempt;
  std::string error;
  bool permanent = false;
  std::optional<Duration> retry_in;
  std::string output;
};
struct Progress {
  std::string attempt;
  double fraction = 0;  ///< 0 to 1
  std::string text;
};
using Reply = std::variant<Ready, Done, Failed, Progress>;

/// `line` has no newline. Errors: kInvalid, which member is wrong, what was expected and what came.
[[nodiscard]] Result<Reply> parse_reply(std::string_view line);

/// Cuts a stream into lines.
class LineReader {
 public:
  void add(std::string_view bytes);
  /// The next whole line, without its newline; valid until the next call of any member.
  [[nodiscard]] std::optional<std::string_view> next();
  /// Whether the line has become longer than kMaxReplyBytes.
  [[nodiscard]] bool is_too_long() const { return bytes_.size() - begin_ >= kMaxReplyBytes; }
  /// The part of a line that came without its end.
  [[nodiscard]] std::string_view rest() const { return std::string_view{bytes_}.substr(begin_); }

 private:
  std::string bytes_;
  std::size_t begin_ = 0;    // of the line
  std::size_t scanned_ = 0;  // no newline before
};

}  // namespace lictor::worker
