#include "worker/messages.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"

namespace lictor::worker {
namespace {

// The limit of a text in a record, a log line and "lictor why".
constexpr std::size_t kMaxTextBytes = 1000;

// The members of a message by name, each as its text; null members are left out.
using Members = std::map<std::string, std::string_view, std::less<>>;

// One walk over the text, which builds no tree: a result may have hundreds of kilobytes.
Members members_of(std::string_view object) {
  Members found;
  for (MemberWalk member{object}; member.next();) {
    if (member.value_text() == "null") continue;
    found.insert_or_assign(std::string{member.name()}, member.value_text());
  }
  return found;
}

// Empty: there is no such member.
std::string_view value_of(const Members& members, std::string_view name) {
  const auto found = members.find(name);
  return found == members.end() ? std::string_view{} : found->second;
}

tl::unexpected<Error> expected(std::string_view member, std::string_view form,
                               std::string_view found) {
  return fail(ErrorCode::kInvalid, fmt::format("\"{}\": expected {}, got {}", member, form,
                                               found.empty() ? "nothing" : excerpt(found)));
}

// A missing member is an empty text, or 0.
template <class Value>
Result<Value> take(const Members& members, std::string_view name) {
  const std::string_view text = value_of(members, name);
  if (text.empty()) return Value{};
  constexpr bool kIsText = std::same_as<Value, std::string>;
  const auto parsed = parse_json(text);
  if (!parsed || !(kIsText ? parsed->is_string() : parsed->is_number())) {
    return expected(name, kIsText ? "text" : "a number", text);
  }
  return parsed->get<Value>();
}

Result<std::string> attempt_of(const Members& members) {
  LICTOR_TRY(auto attempt, take<std::string>(members, "attempt"));
  if (attempt.empty()) {
    return expected("attempt", "the attempt of a \"run\"", value_of(members, "attempt"));
  }
  return attempt;
}

Result<Reply> ready(const Members& members) {
  LICTOR_TRY(const double protocol, take<double>(members, "protocol"));
  const std::string_view written = value_of(members, "protocol");
  if (written.empty()) return expected("protocol", "a number", "");
  if (protocol != static_cast<double>(kProtocolVersion)) {
    return fail(ErrorCode::kInvalid, fmt::format("the worker speaks version {} of the protocol; "
                                                 "this lictor speaks version {}",
                                                 excerpt(written), kProtocolVersion));
  }
  return Ready{kProtocolVersion};
}

Result<Reply> done(const Members& members) {
  Done reply;
  LICTOR_TRY(reply.attempt, attempt_of(members));
  LICTOR_TRY(reply.output, take<std::string>(members, "output"));
  if (members.contains("result")) reply.result = value_of(members, "result");
  if (members.contains("commit")) reply.commit = value_of(members, "commit");
  return reply;
}

Result<Reply> failed(const Members& members) {
  Failed reply;
  LICTOR_TRY(reply.attempt, attempt_of(members));
  LICTOR_TRY(reply.output, take<std::string>(members, "output"));
  LICTOR_TRY(const std::string error, take<std::string>(members, "error"));
  reply.error = error.empty() ? "the worker gave no error" : excerpt(error, kMaxTextBytes);
  const std::string_view permanent = value_of(members, "permanent");
  reply.permanent = permanent == "true";
  if (!permanent.empty() && permanent != "true" && permanent != "false") {
    return expected("permanent", "true or false", permanent);
  }
  if (members.contains("retryIn")) {
    LICTOR_TRY(const std::string text, take<std::string>(members, "retryIn"));
    reply.retry_in = parse_duration(text);
    if (!reply.retry_in) {
      return expected("retryIn", "a duration such as \"10s\"", value_of(members, "retryIn"));
    }
  }
  return reply;
}

Result<Reply> progress(const Members& members) {
  Progress reply;
  LICTOR_TRY(reply.attempt, attempt_of(members));
  LICTOR_TRY(const double amount, take<double>(members, "done"));
  LICTOR_TRY(const double total, take<double>(members, "total"));
  LICTOR_TRY(const std::string text, take<std::string>(members, "text"));
  const double fraction = total > 0 ? amount / total : 0;
  reply.fraction = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0;
  reply.text = excerpt(text, kMaxTextBytes);
  return reply;
}

}  // namespace

std::string run_line(const exec::Attempt& attempt, std::string_view name,
                     std::optional<WallTime> deadline) {
  std::string line = fmt::format(R"({{"run":{{"protocol":{},"attempt":)", kProtocolVersion);
  const auto add = [&line](std::string_view member, std::string_view text) {
    line.append(",\"").append(member).append("\":");
    append_quoted(line, text);
  };
  append_quoted(line, name);
  add("id", attempt.task_id);
  add("key", attempt.task_key);
  add("type", attempt.task_type);
  add("queue", attempt.queue);
  line += fmt::format(R"(,"number":{},"fencingToken":{})", attempt.number, attempt.fencing_token);
  if (deadline) add("deadline", format_rfc3339(*deadline));
  line += ",\"task\":";
  const std::size_t begin = line.size();
  if (attempt.record) line += *attempt.record;
  // A producer may have laid out the record in lines. A JSON string holds no line end, so each line
  // end stands between tokens.
  std::replace_if(
      line.begin() + static_cast<std::ptrdiff_t>(begin), line.end(),
      [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line += "}}\n";
}

std::string cancel_line(std::string_view name, std::string_view reason) {
  return "{\"cancel\":{\"attempt\":" + json_quoted(name) + ",\"reason\":" + json_quoted(reason) +
         "}}\n";
}

Result<Reply> parse_reply(std::string_view line) {
  if (auto checked = check_object(line); !checked) {
    return tl::unexpected(checked.error());
  }
  using Parser = Result<Reply> (*)(const Members&);
  static constexpr std::pair<std::string_view, Parser> kMessages[] = {
      {"done", done}, {"failed", failed}, {"progress", progress}, {"ready", ready}};
  std::string_view name, value;
  Parser parser = nullptr;
  for (MemberWalk member{line}; member.next();) {
    for (const auto& [known, parse] : kMessages) {
      if (member.name() != known) continue;
      if (parser != nullptr) {
        return fail(ErrorCode::kInvalid, fmt::format("expected one message a line, got \"{}\" and "
                                                     "\"{}\"",
                                                     name, known));
      }
      name = known;
      value = member.value_text();
      parser = parse;
    }
  }
  if (parser == nullptr) {
    return fail(ErrorCode::kInvalid,
                R"(expected "ready", "done", "failed" or "progress", got none of them)");
  }
  if (value.front() != '{') return expected(name, "an object", value);
  auto reply = parser(members_of(value));
  if (!reply) return fail(ErrorCode::kInvalid, std::string{name} + ": " + reply.error().message);
  return reply;
}

void LineReader::add(std::string_view bytes) {
  if (begin_ == bytes_.size()) {
    bytes_.clear();
    begin_ = scanned_ = 0;
  } else if (begin_ > bytes_.size() / 2) {
    bytes_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
  }
  bytes_ += bytes;
}

std::optional<std::string_view> LineReader::next() {
  const std::size_t end = bytes_.find('\n', scanned_);
  if (end == std::string::npos) {
    scanned_ = bytes_.size();
    return std::nullopt;
  }
  const std::string_view line = std::string_view{bytes_}.substr(begin_, end - begin_);
  begin_ = scanned_ = end + 1;
  return line;
}

}  // namespace lictor::worker
