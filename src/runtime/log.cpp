// A line takes one of two ways. Neither may wait for long: a daemon that waits for its log loses
// its lease.
//
//   text, json   word() --> spdlog --> Output --write(2)--> standard error; 1 s of waiting in 10 s
//   journal      journal_fields() --> JournalLog::send() --> journald; no waiting
//                   no journald --> as text
//
// Lines that cannot be written are counted, and the number is written before the next line that can
// be.

#include "runtime/log.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/unique_fd.h"

namespace lictor::runtime {
namespace {

LogStyle g_style = LogStyle::kText;
bool g_to_journal = false;  // journald stamps each line, and reads its level from a prefix

thread_local bool t_gathers = false;

// Writes how many lines are lost.
void emit_lost(std::size_t lines,
               const std::function<void(Level, std::string_view, Fields)>& emit) {
  emit(Level::kWarn, "lines of this log are lost: they could not be written",
       {{"lines", std::to_string(lines)}});
}

// Both enums have the same order.
constexpr spdlog::level::level_enum to_spdlog(Level level) {
  return static_cast<spdlog::level::level_enum>(level);
}
static_assert(to_spdlog(Level::kTrace) == spdlog::level::trace);
static_assert(to_spdlog(Level::kError) == spdlog::level::err);

const char* name_of(Level level) {
  static constexpr const char* kNames[] = {"trace", "debug", "info", "warn", "error"};
  return kNames[static_cast<std::size_t>(level)];
}

constexpr std::size_t kMostFieldBytes = 2'000;

// Whether the field holds a number. A task's id may look like one.
bool is_number(std::string_view field) {
  static constexpr std::array<std::string_view, 11> kNumbers{
      "attempt", "token", "ticks",      "pid",   "jobs",      "lines",
      "queues",  "files", "files_kept", "bytes", "bytes_kept"};
  return std::find(kNumbers.begin(), kNumbers.end(), field) != kNumbers.end();
}

// A field's value in a line of text, as in logfmt: a JSON string if it holds anything but plain
// characters. A long value is cut.
void append_value(std::string& line, std::string_view value) {
  const bool is_long = value.size() > kMostFieldBytes;
  const bool bare = !is_long && std::all_of(value.begin(), value.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
  });
  if (bare) {
    line += value;
    return;
  }
  using nlohmann::json;
  const json text = std::string{value.substr(0, kMostFieldBytes)} + (is_long ? "..." : "");
  line += printable_json(text.dump(-1, ' ', false, json::error_handler_t::replace));
}

// syslog's priorities: 3 error, 4 warning, 6 info, 7 debug.
char priority_of(Level level) { return "77643"[static_cast<std::size_t>(level)]; }

// Appends the message with its fields.
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

void word_json(std::string& line, Level level, std::string_view message, Fields fields) {
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
  line = printable_json(object.dump(-1, ' ', false, json::error_handler_t::replace));
}

void format_text_line(std::string& line, Level level, std::string_view message, Fields fields) {
  line =
      g_to_journal ? fmt::format("<{}>", priority_of(level)) : fmt::format("{:5} ", name_of(level));
  append_text(line, message, fields);
}

void format_line(std::string& line, Level level, std::string_view message, Fields fields) {
  if (g_style == LogStyle::kJson) {
    word_json(line, level, message, fields);
  } else {
    format_text_line(line, level, message, fields);
  }
}

// Writes to standard error in pieces of at most PIPE_BUF bytes, which no other process's output can
// split (pipe(7)). Drops and counts lines that cannot be written, because the disk is full or
// nobody reads: a daemon that waited would lose its lease and handle no signal.
class Output : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void end_batch() {
    const std::lock_guard lock{mutex_};
    flush_();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::size_t before = gathered_.size();
    formatter_->format(message, gathered_);
    if (gathered_.size() > PIPE_BUF) write_out(before);
    if (!t_gathers || message.level >= spdlog::level::warn) flush_();
  }

  void flush_() override { write_out(gathered_.size()); }

 private:
  // Writes the first `size` gathered bytes.
  void write_out(std::size_t size) {
    if (size == 0) return;
    if (lost_ != 0) report_lost();
    std::string_view text{gathered_.data(), size};
    if (lost_ == 0) text.remove_prefix(write_some(text));
    lost_ += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    std::copy(gathered_.begin() + size, gathered_.end(), gathered_.begin());
    gathered_.resize(gathered_.size() - size);
  }

  void report_lost() {
    std::string line;
    emit_lost(lost_, [&](Level level, std::string_view message, Fields fields) {
      format_line(line, level, message, fields);
    });
    spdlog::memory_buf_t text;
    if (cut_) text.push_back('\n');
    formatter_->format({"lictor", spdlog::level::warn, line}, text);
    if (write_some({text.data(), text.size()}) == text.size()) lost_ = 0;
  }

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

  // Waits for a slow reader, at most 1 s in any 10 s, but not for a reader that has stopped.
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

  spdlog::memory_buf_t gathered_;
  std::size_t lost_ = 0;  // lines dropped and not reported yet
  bool cut_ = false;      // the last line was written in part
  bool is_stuck_ = false;
  Instant window_begin_{};
  Duration waited_{};  // in that window
};

std::shared_ptr<Output> g_output;

void write_line(Level level, std::string_view message, Fields fields) {
  thread_local std::string line;
  format_line(line, level, message, fields);
  spdlog::default_logger_raw()->log(to_spdlog(level), line);
}

using JournalFields = std::vector<std::pair<std::string, std::string>>;

// "NAME=value\n"; or, if the value has several lines, the name alone on its line, the value's size
// in 8 bytes, little-endian, and the value.
void append_journal_field(std::string& entry, const std::string& name, const std::string& value) {
  entry += name;
  if (value.find('\n') == std::string::npos) {
    entry += '=';
  } else {
    entry += '\n';
    for (unsigned shift = 0; shift < 64; shift += 8) {
      entry += static_cast<char>(std::uint64_t{value.size()} >> shift & 0xffU);
    }
  }
  entry += value + '\n';
}

// Sends entries to systemd's journal, as sd_journal_sendv(3) does, but never waits for it.
struct JournalLog {
  enum class Sent { kSent, kFull, kAbsent };

  explicit JournalLog(const std::string& path)
      : socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
  }

  // kFull: the journal does not read now. kAbsent: there is no journal.
  [[nodiscard]] Sent send(const JournalFields& fields) const {
    std::string entry;
    for (const auto& [name, value] : fields) append_journal_field(entry, name, value);
    const auto* to = reinterpret_cast<const sockaddr*>(&address);
    if (sendto(socket.get(), entry.data(), entry.size(), MSG_NOSIGNAL, to, sizeof address) >= 0) {
      return Sent::kSent;
    }
    return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? Sent::kFull : Sent::kAbsent;
  }

  const UniqueFd socket;
  sockaddr_un address{};
  std::mutex mutex;
  std::size_t lost = 0;  // lines that the journal refused since it last took one
};
std::unique_ptr<JournalLog> g_journal;

JournalFields journal_fields(Level level, std::string_view message, Fields fields) {
  // The fields too, since journalctl shows only the message.
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
    entry.emplace_back(std::move(upper), value.substr(0, kMostFieldBytes));
  }
  return entry;
}

void log_journal(Level level, std::string_view message, Fields fields) {
  const std::lock_guard lock{g_journal->mutex};
  std::size_t& lost = g_journal->lost;
  using Sent = JournalLog::Sent;
  auto sent = Sent::kSent;
  if (lost != 0) {
    emit_lost(lost, [&](Level least, std::string_view text, Fields lines) {
      sent = g_journal->send(journal_fields(least, text, lines));
    });
    if (sent == Sent::kSent) lost = 0;
  }
  if (sent == Sent::kSent) {
    sent = g_journal->send(journal_fields(level, message, fields));
  }
  if (sent == Sent::kFull) ++lost;
  if (sent == Sent::kAbsent) write_line(level, message, fields);
}

}  // namespace

void set_up_log(LogStyle style, Level least, const std::string& journal) {
  g_style = style;
  if (style == LogStyle::kJournal) g_journal = std::make_unique<JournalLog>(journal);
  g_output = std::make_shared<Output>();
  auto logger = std::make_shared<spdlog::logger>("lictor", g_output);
  g_to_journal = style == LogStyle::kText && stderr_is_journal();
  const bool bare = style == LogStyle::kJson || g_to_journal;
  logger->set_pattern(bare ? "%v" : "%Y-%m-%dT%H:%M:%S.%e%z %v");
  logger->set_level(to_spdlog(least));
  spdlog::set_default_logger(std::move(logger));
}

bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat error {};
  if (stream == nullptr || fstat(STDERR_FILENO, &error) != 0) return false;
  return stream == fmt::format("{}:{}", error.st_dev, error.st_ino);
}

void set_log_level(Level least) { spdlog::default_logger_raw()->set_level(to_spdlog(least)); }

bool logs(Level level) noexcept {
  return spdlog::default_logger_raw()->should_log(to_spdlog(level));
}

void log(Level level, std::string_view message, Fields fields) {
  if (!logs(level)) return;
  if (g_style == LogStyle::kJournal) {
    log_journal(level, message, fields);
  } else {
    write_line(level, message, fields);
  }
}

LogBatch::LogBatch() { t_gathers = true; }

LogBatch::~LogBatch() {
  t_gathers = false;
  if (g_output) g_output->end_batch();
}

}  // namespace lictor::runtime
