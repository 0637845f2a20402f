#include "runtime/log.h"

#include <sys/uio.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-journal.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/time_text.h"

namespace lictor::runtime {
namespace {

LogStyle g_style = LogStyle::kText;

thread_local bool t_gathers = false;

// Standard error, in pieces that no other process's can come between: pipe(7).
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
  // As much of what is gathered.
  void write_out(std::size_t size) {
    if (size == 0) return;
    std::fwrite(gathered_.data(), 1, size, stderr);  // there is nobody to tell of a failure
    std::fflush(stderr);
    std::copy(gathered_.begin() + size, gathered_.end(), gathered_.begin());
    gathered_.resize(gathered_.size() - size);
  }

  spdlog::memory_buf_t gathered_;
};

std::shared_ptr<Output> g_output;

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kTrace:
      return spdlog::level::trace;
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void write_line(Level level, std::string_view line) {
  spdlog::default_logger_raw()->log(to_spdlog(level), line);
}

const char* name_of(Level level) {
  static constexpr const char* kNames[] = {"trace", "debug", "info", "warn", "error"};
  return kNames[static_cast<std::size_t>(level)];
}

// A field's value on a line of text: bare where that is clear, else quoted.
void append_value(std::string& line, std::string_view value) {
  const bool bare = std::all_of(value.begin(), value.end(),
                                [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '='; });
  if (bare) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : excerpt(value, 2'000)) {
    if (c == '"') line += '\\';
    line += c;
  }
  line += '"';
}

void log_text(Level level, std::string_view message, Fields fields) {
  thread_local std::string line;
  if (is_printable_ascii(message)) {
    line = message;
  } else {
    line = excerpt(message, 4'000);
  }
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    line += ' ';
    line += name;
    line += '=';
    append_value(line, value);
  }
  write_line(level, line);
}

void log_json(Level level, std::string_view message, Fields fields) {
  using nlohmann::json;
  json line;
  line["time"] = format_rfc3339(wall_now());
  line["level"] = name_of(level);
  line["message"] = message;
  for (const auto& [name, value] : fields) {
    if (!value.empty()) line[std::string{name}] = value;
  }
  write_line(level, line.dump(-1, ' ', false, json::error_handler_t::replace));
}

void log_journal(Level level, std::string_view message, Fields fields) {
  // syslog's priorities: 3 error, 4 warning, 6 info, 7 debug.
  static constexpr const char* kPriorities[] = {"7", "7", "6", "4", "3"};
  std::vector<std::string> entries{
      "MESSAGE=" + std::string{message},
      std::string{"PRIORITY="} + kPriorities[static_cast<std::size_t>(level)]};
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    std::string entry = "LICTOR_";
    for (const char c : name) {
      entry += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    entry += '=';
    entry += value;
    entries.push_back(std::move(entry));
  }
  std::vector<iovec> parts;
  parts.reserve(entries.size());
  for (std::string& entry : entries) parts.push_back({entry.data(), entry.size()});
  if (sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) < 0) {
    log_text(level, message, fields);
  }
}

}  // namespace

void set_up_log(LogStyle style, Level least) {
  g_style = style;
  g_output = std::make_shared<Output>();
  auto logger = std::make_shared<spdlog::logger>("lictor", g_output);
  logger->set_pattern(style == LogStyle::kJson ? "%v" : "%Y-%m-%dT%H:%M:%S.%e%z %-5l %v");
  logger->set_level(to_spdlog(least));
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(Level least) { spdlog::default_logger_raw()->set_level(to_spdlog(least)); }

bool logs(Level level) noexcept {
  return spdlog::default_logger_raw()->should_log(to_spdlog(level));
}

void log(Level level, std::string_view message, Fields fields) {
  if (!logs(level)) return;
  switch (g_style) {
    case LogStyle::kText:
      return log_text(level, message, fields);
    case LogStyle::kJson:
      return log_json(level, message, fields);
    case LogStyle::kJournal:
      return log_journal(level, message, fields);
  }
}

LogBatch::LogBatch() { t_gathers = true; }

LogBatch::~LogBatch() {
  t_gathers = false;
  if (g_output) g_output->end_batch();
}

}  // namespace lictor::runtime
