// Two ways for a line, of which none may wait for long: a daemon that waits for its log loses its
// lease.
//
//   text, json   word() --> Output --write(2)--> standard error; 1 s of waiting in 10 s
//   journal      journal_fields() --> Journal::send() --> journald; no waiting
//                   no journald --> as text
//
// Lines that cannot be written are counted, and the next line that can be is preceded by their
// number.

#include "runtime/log.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "runtime/journal.h"

namespace lictor::runtime {
namespace {

LogStyle g_style = LogStyle::kText;
std::atomic<Level> g_least = Level::kInfo;
bool g_to_journal = false;  // journald stamps each line, and reads its level from a prefix

// Gives the line that says how many are lost.
void emit_lost(std::size_t lines,
               const std::function<void(Level, std::string_view, Fields)>& emit) {
  emit(Level::kWarn, "lines of this log are lost: they could not be written",
       {{"lines", std::to_string(lines)}});
}

const char* name_of(Level level) {
  static constexpr const char* kNames[] = {"trace", "debug", "info", "warn", "error"};
  return kNames[static_cast<std::size_t>(level)];
}

// The fields that hold a number. A task's id may look like one.
bool is_number(std::string_view field) {
  static constexpr std::array<std::string_view, 11> kNumbers{
      "attempt", "token", "ticks",      "pid",   "jobs",      "lines",
      "queues",  "files", "files_kept", "bytes", "bytes_kept"};
  return std::find(kNumbers.begin(), kNumbers.end(), field) != kNumbers.end();
}

// A field's value on a line of text, as logfmt has it: a JSON string where it holds anything but
// plain characters. A long one is cut.
void append_value(std::string& line, std::string_view value) {
  const bool bare = std::all_of(value.begin(), value.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
  });
  if (bare) {
    line += value;
    return;
  }
  constexpr std::size_t kMost = 2'000;
  using nlohmann::json;
  const json text =
      value.size() <= kMost ? std::string{value} : std::string{value.substr(0, kMost)} + "...";
  line += printable_json(text.dump(-1, ' ', false, json::error_handler_t::replace));
}

// syslog's: 3 error, 4 warning, 6 info, 7 debug.
char priority_of(Level level) { return "77643"[static_cast<std::size_t>(level)]; }

// The message with its fields.
void append_text(std::string& line, std::string_view message, Fields fields) {
  if (is_printable_ascii(message)) {
    line += message;
  } else {
    line += excerpt(message, 4'000);
  }
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    line += ' ';
    line += name;
    line += '=';
    append_value(line, value);
  }
}

std::string word_json(Level level, std::string_view message, Fields fields) {
  using nlohmann::json;
  json object;
  object["time"] = format_rfc3339(wall_now());
  object["level"] = name_of(level);
  object["message"] = message;
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    const auto number = is_number(name) ? to_number<std::uint64_t>(value) : std::nullopt;
    object[std::string{name}] = number ? json(*number) : json(value);
  }
  return printable_json(object.dump(-1, ' ', false, json::error_handler_t::replace));
}

// The whole line.
std::string word(Level level, std::string_view message, Fields fields) {
  if (g_style == LogStyle::kJson) return word_json(level, message, fields) + '\n';
  std::string line = g_to_journal
                         ? fmt::format("<{}>", priority_of(level))
                         : fmt::format("{} {:5} ", format_rfc3339(wall_now()), name_of(level));
  append_text(line, message, fields);
  return line + '\n';
}

// Writes to standard error in pieces of at most PIPE_BUF bytes, which no other process's output can
// split (pipe(7)). Drops and counts lines that cannot be written, because the disk is full or
// nobody reads: a daemon that waited would lose its lease and handle no signal.
class Output {
 public:
  void write(std::string_view line) {
    const std::lock_guard lock{mutex_};
    if (lost_ != 0) {
      std::string loss = cut_ ? "\n" : "";
      emit_lost(lost_, [&](Level level, std::string_view message, Fields fields) {
        loss += word(level, message, fields);
      });
      if (write_some(loss) == loss.size()) lost_ = 0;
    }
    if (lost_ != 0 || write_some(line) != line.size()) ++lost_;
  }

 private:
  // Returns how many bytes of `text` were written.
  std::size_t write_some(std::string_view text) {
    const std::size_t size = text.size();
    while (!text.empty() && is_writable()) {
      const ssize_t n =
          ::write(STDERR_FILENO, text.data(), std::min<std::size_t>(PIPE_BUF, text.size()));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      cut_ = text[static_cast<std::size_t>(n) - 1] != '\n';
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return size - text.size();
  }

  // Waits for a slow reader, at most 1 s in any 10 s. Doesn't wait again for one that has stopped.
  bool is_writable() {
    constexpr Duration kPatience = std::chrono::seconds{1};
    constexpr Duration kWindow = 10 * kPatience;
    if (wait({}) || is_stuck_) return !is_stuck_;
    const Instant now = boot_now();
    if (now - window_begin_ > kWindow) {
      window_begin_ = now;
      waited_ = {};
    }
    is_stuck_ = waited_ >= kPatience || !wait(kPatience - waited_);
    waited_ += boot_now() - now;
    return !is_stuck_;
  }

  // Whether standard error becomes writable within `limit`.
  bool wait(Duration limit) {
    pollfd error{STDERR_FILENO, POLLOUT, 0};
    const auto limit_ms = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
    if (poll(&error, 1, static_cast<int>(limit_ms)) <= 0) return false;
    is_stuck_ = false;
    return true;
  }

  std::mutex mutex_;
  std::size_t lost_ = 0;  // lines dropped and not reported yet
  bool cut_ = false;      // the last line was written in part
  bool is_stuck_ = false;
  Instant window_begin_{};
  Duration waited_{};  // in that window
};

std::unique_ptr<Output> g_output = std::make_unique<Output>();

using JournalFields = std::vector<std::pair<std::string, std::string>>;

// The journal, and how many lines it did not take since it took one.
struct JournalLog {
  explicit JournalLog(const std::string& socket)
      : journal(socket.empty() ? Journal{} : Journal{socket}) {}

  Journal journal;
  std::mutex mutex;
  std::size_t lost = 0;
};
std::unique_ptr<JournalLog> g_journal;

JournalFields journal_fields(Level level, std::string_view message, Fields fields) {
  // With the fields, since journalctl shows nothing else.
  std::string text;
  append_text(text, message, fields);
  JournalFields entry{{"MESSAGE", std::move(text)},
                      {"PRIORITY", std::string(1, priority_of(level))},
                      {"SYSLOG_IDENTIFIER", program_invocation_short_name}};
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    std::string upper = "LICTOR_";
    for (const char c : name) {
      upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    entry.emplace_back(std::move(upper), std::string{value});
  }
  return entry;
}

void log_journal(Level level, std::string_view message, Fields fields) {
  const std::lock_guard lock{g_journal->mutex};
  std::size_t& lost = g_journal->lost;
  auto sent = Journal::Sent::kSent;
  if (lost != 0) {
    emit_lost(lost, [&](Level least, std::string_view text, Fields lines) {
      sent = g_journal->journal.send(journal_fields(least, text, lines));
    });
    if (sent == Journal::Sent::kSent) lost = 0;
  }
  if (sent == Journal::Sent::kSent) {
    sent = g_journal->journal.send(journal_fields(level, message, fields));
  }
  if (sent == Journal::Sent::kFull) ++lost;
  if (sent == Journal::Sent::kAbsent) g_output->write(word(level, message, fields));
}

}  // namespace

void set_up_log(LogStyle style, Level least, const std::string& journal) {
  g_style = style;
  if (style == LogStyle::kJournal) g_journal = std::make_unique<JournalLog>(journal);
  g_output = std::make_unique<Output>();
  g_to_journal = style == LogStyle::kText && stderr_is_journal();
  g_least = least;
}

bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat error {};
  if (stream == nullptr || fstat(STDERR_FILENO, &error) != 0) return false;
  return stream == fmt::format("{}:{}", error.st_dev, error.st_ino);
}

void set_log_level(Level least) { g_least = least; }

bool logs(Level level) noexcept { return level >= g_least; }

void log(Level level, std::string_view message, Fields fields) {
  if (!logs(level)) return;
  if (g_style == LogStyle::kJournal) {
    log_journal(level, message, fields);
  } else {
    g_output->write(word(level, message, fields));
  }
}

}  // namespace lictor::runtime
