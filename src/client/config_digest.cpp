#include "client/config_digest.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/siphash.h"
#include "base/text.h"

namespace lictor::client {
namespace {

using nlohmann::json;

constexpr std::size_t kMostParts = 200;
constexpr std::string_view kSchedules = "@schedules";  // no queue's name has an '@'
constexpr std::size_t kMostNamed = 4;
// All differ by chance once in four billion.
constexpr std::size_t kPartDigits = 8;
// The member's entry, which holds the parts, is written every 10 s.
constexpr std::size_t kMaxSettingsBytes = 4096;
constexpr std::size_t kMaxValueBytes = 60;
// Settings whose values may hold a password: arguments, variables, headers, the query of a URL.
constexpr std::array<std::string_view, 4> kSecret{"exec", "env", "http", "plugin"};

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

std::string canonical(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string part_digest(const json& value) { return digest_of(value).substr(0, kPartDigits); }

// {"backoff": {"initial": "1s"}} as {"backoff.initial": "1s"}
void add_settings(const json& from, const std::string& prefix, json& to) {
  for (const auto& [name, value] : from.items()) {
    const bool secret = std::find(kSecret.begin(), kSecret.end(), name) != kSecret.end();
    const std::string path = prefix + name;
    if (value.is_object() && !secret) {
      add_settings(value, path + '.', to);
    } else if (secret || canonical(value).size() > kMaxValueBytes) {
      to[path] = '#' + part_digest(value);
    } else {
      to[path] = value;
    }
  }
}

std::string_view digest_in(std::string_view part) { return part.substr(0, part.find('{')); }

// "timeout is 20s, not 10s", of each setting that differs. Empty if one of them has no settings.
std::vector<std::string> changed_settings(std::string_view ours, std::string_view theirs) {
  std::vector<std::string> changes;
  const auto settings_of = [](std::string_view part) {
    const auto settings = parse_json(part.substr(std::min(part.find('{'), part.size())));
    return settings && settings->is_object() ? *settings : json{};
  };
  const json our = settings_of(ours), their = settings_of(theirs);
  if (our.is_null() || their.is_null()) return changes;
  json all = our;
  all.update(their);
  const auto text_in = [](const json& settings, const std::string& name) -> std::string {
    const auto found = settings.find(name);
    if (found == settings.end()) return "unset";
    return found->is_string() ? found->get<std::string>() : canonical(*found);
  };
  for (const auto& [name, value] : all.items()) {
    const std::string one = text_in(our, name), other = text_in(their, name);
    if (one == other) continue;
    const bool hidden = one.starts_with('#') || other.starts_with('#');
    changes.push_back(
        excerpt(name) +
        (hidden ? " differs" : fmt::format(" is {}, not {}", excerpt(other), excerpt(one))));
  }
  return changes;
}

}  // namespace

std::string digest_of(const json& value) {
  return fmt::format("{:016x}", siphash<2, 4>({}, canonical(value)));
}

// Digests first: where the settings together take more than kMaxSettingsBytes, only the digests are
// kept, and difference() names parts without values.
ConfigParts config_digest(const json& file) {
  ConfigParts parts;
  json rest = file;
  const json queues = rest.is_object() ? rest.value("queues", json::array()) : json::array();
  if (rest.is_object()) rest.erase("queues");
  std::map<std::string, std::string> settings;
  std::size_t bytes = 0;
  const auto add = [&](const std::string& part, const json& value) {
    parts[part] = part_digest(value);
    if (!value.is_object() || part.ends_with(kSchedules)) return;
    json flat = json::object();
    add_settings(value, "", flat);
    bytes += (settings[part] = canonical(flat)).size();
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
  if (parts.empty() || bytes > kMaxSettingsBytes) return parts;
  for (const auto& [part, text] : settings) parts[part] += text;
  return parts;
}

std::string difference(const ConfigParts& ours, const ConfigParts& theirs) {
  if (ours.empty() || theirs.empty()) return {};
  std::string text;
  std::size_t found = 0;
  const auto add = [&](const std::string& what) {
    if (++found <= kMostNamed) text += (text.empty() ? "" : "; ") + what;
  };
  const auto add_part = [&](const std::string& part, const char* one, const char* many) {
    add(fmt::format("{} {}", described(part), part.find('/') == std::string::npos ? many : one));
  };
  for (const auto& [part, digest] : ours) {
    const auto theirs_of = theirs.find(part);
    if (theirs_of == theirs.end()) {
      add_part(part, "is missing", "are missing");
    } else if (digest_in(theirs_of->second) != digest_in(digest)) {
      const auto changes = changed_settings(digest, theirs_of->second);
      for (const std::string& change : changes) add(described(part) + ": " + change);
      if (changes.empty()) add_part(part, "differs", "differ");
    }
  }
  for (const auto& [part, digest] : theirs) {
    if (!ours.contains(part)) add_part(part, "is added", "are added");
  }
  if (found > kMostNamed) text += fmt::format("; and {} more", found - kMostNamed);
  return text;
}

}  // namespace lictor::client
