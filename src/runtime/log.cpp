#include "runtime/log.h"

#include <sys/uio.h>

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-journal.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/time_text.h"

namespace lictor::runtime {
namespace {

LogStyle g_style = LogStyle::kText;

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

const char* name_of(Level level) {
  static constexpr const char* kNames[] = {"trace", "debug", "info", "warn", "error"};
  return kNames[static_cast<std::size_t>(level)];
}

// A field's value on a line of text: bare where that is clear, else quoted.
std::string shown(const std::string& value) {
  const bool bare = std::all_of(value.begin(), value.end(),
                                [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '='; });
  if (bare) return value;
  std::string quoted{'"'};
  for (const char c : excerpt(value, 2'000)) {
    if (c == '"') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

void log_text(Level level, std::string_view message, const Fields& fields) {
  std::string line = excerpt(message, 4'000);
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    line += ' ';
    line += name;
    line += '=';
    line += shown(value);
  }
  spdlog::log(to_spdlog(level), "{}", line);
}

void log_json(Level level, std::string_view message, const Fields& fields) {
  using nlohmann::json;
  json line;
  line["time"] = format_rfc3339(wall_now());
  line["level"] = name_of(level);
  line["message"] = message;
  for (const auto& [name, value] : fields) {
    if (!value.empty()) line[std::string{name}] = value;
  }
  spdlog::log(to_spdlog(level), "{}", line.dump(-1, ' ', false, json::error_handler_t::replace));
}

void log_journal(Level level, std::string_view message, const Fields& fields) {
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
    entries.push_back(entry + "=" + value);
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
  auto logger = spdlog::stderr_logger_mt("lictor");
  logger->set_pattern(style == LogStyle::kJson ? "%v" : "%Y-%m-%dT%H:%M:%S.%e%z %-5l %v");
  logger->set_level(to_spdlog(least));
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(Level least) { spdlog::default_logger_raw()->set_level(to_spdlog(least)); }

bool logs(Level level) noexcept {
  return spdlog::default_logger_raw()->should_log(to_spdlog(level));
}

void log(Level level, std::string_view message, const Fields& fields) {
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

}  // namespace lictor::runtime
