#include "cli/check_report.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "cli/json_output.h"

namespace lictor::cli {
namespace {

const char* word_of(Report::Status status) {
  switch (status) {
    case Report::Status::kOk:
      return "ok";
    case Report::Status::kWarn:
      return "warn";
    case Report::Status::kFail:
      return "FAIL";
  }
  return "";
}

Style style_of(Report::Status status) {
  switch (status) {
    case Report::Status::kOk:
      return Style::kGreen;
    case Report::Status::kWarn:
      return Style::kYellow;
    case Report::Status::kFail:
      return Style::kRed;
  }
  return Style::kPlain;
}

}  // namespace

void Report::ok(std::string name, std::string detail) {
  lines_.push_back({Status::kOk, std::move(name), std::move(detail), {}, ErrorCode::kFailed});
}

void Report::warn(std::string name, std::string detail, std::string remedy) {
  lines_.push_back(
      {Status::kWarn, std::move(name), std::move(detail), std::move(remedy), ErrorCode::kFailed});
}

void Report::fail(std::string name, std::string detail, std::string remedy, ErrorCode code) {
  lines_.push_back({Status::kFail, std::move(name), std::move(detail), std::move(remedy), code});
}

void Report::fail(std::string name, const Error& error) {
  fail(std::move(name), error.message, {}, error.code);
}

std::optional<ErrorCode> Report::first_failure() const {
  for (const Line& line : lines_) {
    if (line.status == Status::kFail) return line.code;
  }
  return std::nullopt;
}

Page Report::page() const {
  std::size_t name_width = 0;
  for (const Line& line : lines_) name_width = std::max(name_width, columns(printable(line.name)));
  Page page;
  for (const Line& line : lines_) {
    const std::string word = word_of(line.status), name = printable(line.name);
    page.add(word, style_of(line.status));
    page.add(std::string(6 - word.size(), ' ') + name +
             std::string(name_width - columns(name) + 2, ' ') + printable(line.detail) + '\n');
    if (line.remedy.empty()) continue;
    page.add(std::string(6 + name_width + 2, ' ') + "-> " + printable(line.remedy) + '\n');
  }
  return page;
}

std::string Report::json() const {
  using nlohmann::ordered_json;
  ordered_json checks = ordered_json::array();
  for (const Line& line : lines_) {
    const bool failed = line.status == Status::kFail;
    checks.push_back(
        {{"name", line.name},
         {"status", failed ? "fail" : word_of(line.status)},
         {"detail", line.detail},
         {"remedy", line.remedy.empty() ? ordered_json{} : ordered_json(line.remedy)}});
  }
  return json_document({{"ok", !first_failure()}, {"checks", std::move(checks)}});
}

}  // namespace lictor::cli
