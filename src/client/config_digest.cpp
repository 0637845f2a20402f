#include "client/config_digest.h"

#include <algorithm>
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
constexpr std::size_t kMostNamed = 4;
// Different parts have the same digits by chance once in four billion.
constexpr std::size_t kPartDigits = 8;

// An executor is singular; settings and schedules are plural.
std::string described(std::string_view part, const char* one, const char* many) {
  const std::size_t slash = part.find('/');
  const std::string queue = excerpt(part.substr(0, std::min(slash, part.find(kSchedules))));
  if (part.empty()) return fmt::format("the other settings {}", many);
  if (slash != std::string_view::npos) {
    return fmt::format("executor {} of queue {} {}", excerpt(part.substr(slash + 1)), queue, one);
  }
  return fmt::format("the {} of queue {} {}", part.ends_with(kSchedules) ? "schedules" : "settings",
                     queue, many);
}

}  // namespace

std::string digest_of(const json& value) {
  return fmt::format("{:016x}",
                     siphash<2, 4>({}, value.dump(-1, ' ', false, json::error_handler_t::replace)));
}

ConfigParts config_digest(const json& file) {
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
  const auto add = [&](const std::string& part, const char* one, const char* many) {
    if (++found <= kMostNamed) text += (text.empty() ? "" : "; ") + described(part, one, many);
  };
  for (const auto& [part, digest] : ours) {
    const auto other = theirs.find(part);
    if (other == theirs.end()) {
      add(part, "is missing", "are missing");
    } else if (other->second != digest) {
      add(part, "differs", "differ");
    }
  }
  for (const auto& [part, digest] : theirs) {
    if (!ours.contains(part)) add(part, "is added", "are added");
  }
  if (found > kMostNamed) text += fmt::format("; and {} more", found - kMostNamed);
  return text;
}

}  // namespace lictor::client
