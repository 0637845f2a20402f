#include "client/config_parts.h"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/siphash.h"
#include "base/text.h"

namespace lictor::client {
namespace {

using nlohmann::json;

constexpr std::size_t kMostParts = 200;
constexpr std::string_view kSchedules = "@schedules";  // no queue's name has an '@'
constexpr std::size_t kMostTold = 4;
// All differ by chance once in four billion.
constexpr std::size_t kPartDigits = 8;

std::string described(std::string_view part) {
  if (part.empty()) return "the other settings";
  const std::size_t slash = part.find('/');
  if (slash == std::string_view::npos && part.ends_with(kSchedules)) {
    part.remove_suffix(kSchedules.size());
    return "the schedules of queue " + excerpt(part);
  }
  const std::string queue = excerpt(part.substr(0, slash));
  if (slash == std::string_view::npos) return "the settings of queue " + queue;
  return fmt::format("executor {} of queue {}", excerpt(part.substr(slash + 1)), queue);
}

}  // namespace

std::string digest_of(const json& value) {
  const std::string canonical = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return fmt::format("{:016x}", siphash<2, 4>({}, canonical));
}

ConfigParts config_parts(const json& file) {
  ConfigParts parts;
  json rest = file;
  const json queues = rest.is_object() ? rest.value("queues", json::array()) : json::array();
  if (rest.is_object()) rest.erase("queues");
  const auto add = [&](const std::string& part, const json& value) {
    parts[part] = digest_of(value).substr(0, kPartDigits);
  };
  add("", rest);
  for (json queue : queues) {
    if (!queue.is_object()) continue;
    const json name = queue.value("name", json("default"));
    const json executors = queue.value("executors", json::object());
    queue.erase("executors");
    const std::string prefix = name.is_string() ? name.get<std::string>() : std::string{};
    if (const auto schedules = queue.find("schedules"); schedules != queue.end()) {
      add(prefix + std::string{kSchedules}, *schedules);
      queue.erase(schedules);
    }
    add(prefix, queue);
    for (const auto& [type, executor] : executors.items()) add(prefix + '/' + type, executor);
  }
  if (parts.size() > kMostParts) parts.clear();
  return parts;
}

std::string difference(const ConfigParts& ours, const ConfigParts& theirs) {
  if (ours.empty() || theirs.empty()) return {};
  std::string text;
  std::size_t found = 0;
  const auto tell = [&](const std::string& part, const char* one, const char* many) {
    if (++found > kMostTold) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", described(part),
                        part.find('/') == std::string::npos ? many : one);
  };
  for (const auto& [part, digest] : ours) {
    const auto theirs_of = theirs.find(part);
    if (theirs_of == theirs.end()) {
      tell(part, "is missing", "are missing");
    } else if (theirs_of->second != digest) {
      tell(part, "differs", "differ");
    }
  }
  for (const auto& [part, digest] : theirs) {
    if (!ours.contains(part)) tell(part, "is added", "are added");
  }
  if (found > kMostTold) text += fmt::format("; and {} more", found - kMostTold);
  return text;
}

}  // namespace lictor::client
