#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "bench.h"

namespace lictor::bench {
namespace {

// Three significant digits, whatever the size.
std::string number(double value) {
  const double size = std::abs(value);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", size >= 100 ? 0 : size >= 1 ? 2 : 3, value);
  return text.data();
}

std::string wanted_text(const Row& row) {
  if (row.wanted == Row::Wanted::kNothing) return "";
  const std::string sign = row.wanted == Row::Wanted::kRatioAtLeast ? ">= " : "<= ";
  return sign + number(row.limit) +
         (row.wanted == Row::Wanted::kAtMost && !row.unit.empty() ? " " + row.unit : "") +
         (*row.met() ? "  yes" : "  NO");
}

double sync_ms() {
  constexpr int kTimes = 21;
  std::string path = std::filesystem::temp_directory_path() / "lictor-bench-XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd < 0) return NAN;
  unlink(path.c_str());
  std::vector<double> ms;
  const std::string block(4096, 'x');
  for (int i = 0; i < kTimes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (write(fd, block.data(), block.size()) < 0 || fdatasync(fd) != 0) break;
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - begin;
    ms.push_back(spent.count());
  }
  close(fd);
  std::sort(ms.begin(), ms.end());
  return ms.empty() ? NAN : ms[ms.size() / 2];
}

}  // namespace

std::optional<double> Row::ratio() const {
  if (!other || *other == 0) return std::nullopt;
  return lictor / *other;
}

std::optional<bool> Row::met() const {
  switch (wanted) {
    case Wanted::kNothing:
      return std::nullopt;
    case Wanted::kRatioAtLeast:
      return ratio() && *ratio() >= limit;
    case Wanted::kRatioAtMost:
      return ratio() && *ratio() <= limit;
    case Wanted::kAtMost:
      return lictor <= limit;
  }
  return std::nullopt;
}

std::string Report::table() const {
  using Line = std::array<std::string, 7>;
  std::vector<Line> lines{
      {"", "unit", "lictor", "other side", "ratio", "wanted", "the other side"}};
  for (const Row& row : rows_) {
    lines.push_back({row.name, row.unit, number(row.lictor), row.other ? number(*row.other) : "",
                     row.ratio() ? number(*row.ratio()) : "", wanted_text(row), row.against});
  }
  std::array<std::size_t, 7> widths{};
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string fill(widths[i] - line[i].size(), ' ');
      const bool right = i >= 2 && i <= 4;
      text += (right ? fill + line[i] : line[i] + fill) + "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string Report::json() const {
  using nlohmann::ordered_json;
  ordered_json rows = ordered_json::array();
  for (const Row& row : rows_) {
    ordered_json line{{"name", row.name}, {"unit", row.unit}, {"lictor", row.lictor}};
    if (row.other) line["other"] = *row.other;
    if (!row.against.empty()) line["against"] = row.against;
    if (const auto ratio = row.ratio()) line["ratio"] = *ratio;
    if (const auto met = row.met()) {
      line["wanted"] = wanted_text(row).substr(0, wanted_text(row).find("  "));
      line["met"] = *met;
    }
    rows.push_back(std::move(line));
  }
  return ordered_json{{"machine", machine()}, {"rows", rows}}.dump(2) + "\n";
}

std::string machine() {
  std::string processor = "unknown processor";
  std::ifstream info{"/proc/cpuinfo"};
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      processor = line.substr(line.find(':') + 2);
      break;
    }
  }
  utsname system{};
  uname(&system);
  double load = 0;
  static_cast<void>(getloadavg(&load, 1));
  return processor + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores, " +
         system.sysname + " " + system.release + ", load " + number(load) + ", disk sync " +
         number(sync_ms()) + " ms";
}

}  // namespace lictor::bench
