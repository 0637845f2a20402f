#include "app/config_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "base/text.h"
#include "base/time_text.h"

namespace lictor::app {
namespace {

// What the configuration knows and this version does not act on. Refused, since whoever wrote it
// counts on it. A version that learns one of these strikes it out and gives it a reader.
struct NotYet {
  Group group;
  std::string_view key;
  std::string_view instead;
};
constexpr std::array kNotYet{
    NotYet{Group::kQueue, "partitions", "leave it out, or give each partition a queue of its own"},
};

constexpr std::size_t kMaxTextBytes = 4096;
constexpr std::size_t kMaxKeyBytes = 512;
constexpr std::size_t kMaxNameBytes = 128;

std::string found(const JsonValue& value) {
  switch (value.kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBoolean:
      return value.boolean ? "true" : "false";
    case JsonKind::kWhole:
    case JsonKind::kFraction:
      return "the number " + excerpt(value.text, 40);
    case JsonKind::kString:
      return '"' + excerpt(value.text) + '"';
    case JsonKind::kArray:
      return value.items.empty() ? "an empty array" : "an array";
    case JsonKind::kObject:
      return "an object";
  }
  LICTOR_ASSERT(false);
}

const NotYet* not_yet(const Place& member, Group group) {
  const JsonValue& value = member.value();
  for (const NotYet& later : kNotYet) {
    if (later.group == group && later.key == value.key) return &later;
  }
  return nullptr;
}

tl::unexpected<Error> unknown(const Place& member, const Settings& settings) {
  const std::string& key = member.value().key;
  std::vector<std::string_view> known;
  for (const Setting& setting : settings) known.push_back(setting.key);
  const std::string near = nearest(key, known);
  if (!near.empty()) return member.refuse("unknown key; did you mean \"" + near + "\"?");
  std::sort(known.begin(), known.end());
  std::string all;
  for (const std::string_view word : known) all += (all.empty() ? "" : ", ") + std::string{word};
  return member.refuse("unknown key; known here: " + all);
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// Text without what a path, a key or a header cannot hold.
Result<std::string> take_text(const Place& place, const std::string& what) {
  const JsonValue& value = place.value();
  if (value.kind != JsonKind::kString || value.text.empty()) return place.expected(what);
  if (value.text.size() > kMaxTextBytes) {
    return place.refuse("expected at most " + std::to_string(kMaxTextBytes) + " bytes, got " +
                        std::to_string(value.text.size()));
  }
  if (has_control(value.text)) return place.expected(what + " without control characters");
  return value.text;
}

Reader key_or_prefix(std::string& target, bool prefix) {
  return [&target, prefix](const Place& place) -> Result<void> {
    auto key = take_text(place, prefix ? "a KV prefix such as \"lictor/default/tasks/\""
                                       : "a KV key such as \"lictor/default/leader\"");
    if (!key) return tl::unexpected{key.error()};
    if (const std::string fault = kv_key_fault(*key); !fault.empty()) {
      return place.refuse('"' + excerpt(*key) + "\": " + fault);
    }
    if (prefix && !key->ends_with('/')) {
      // "task" would match "taskforce/x" too, and a recursive delete would take it along.
      return place.refuse('"' + excerpt(*key) + "\": a prefix ends in \"/\"; write \"" +
                          excerpt(*key + "/") + '"');
    }
    if (!prefix && key->ends_with('/')) {
      return place.refuse('"' + excerpt(*key) +
                          "\": a key does not end in \"/\", a prefix does; write \"" +
                          excerpt(key->substr(0, key->size() - 1)) + '"');
    }
    target = *std::move(key);
    return {};
  };
}

// A whole number up to 2^63 - 1.
std::optional<std::uint64_t> take_whole(const JsonValue& value) {
  if (value.kind != JsonKind::kWhole || value.whole < 0) return std::nullopt;
  return static_cast<std::uint64_t>(value.whole);
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> kUnits{
      {{"KiB", 1ULL << 10U}, {"MiB", 1ULL << 20U}, {"GiB", 1ULL << 30U}, {"TiB", 1ULL << 40U}}};
  for (const auto& [unit, bytes] : kUnits) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    if (text.empty() || text.size() > 6) return std::nullopt;
    std::uint64_t count = 0;
    for (const char c : text) {
      if (c < '0' || c > '9') return std::nullopt;
      count = count * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return count * bytes;
  }
  return std::nullopt;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes != 0 && bytes % (1ULL << 40U) == 0) return std::to_string(bytes >> 40U) + "TiB";
  if (bytes != 0 && bytes % (1ULL << 30U) == 0) return std::to_string(bytes >> 30U) + "GiB";
  return std::to_string(bytes);
}

// 2 as "2", 0.25 as "0.25".
std::string number_text(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// A reader that fills an optional by one that fills its value.
template <class T, class Make>
Reader maybe(std::optional<T>& target, Make make) {
  return [&target, make](const Place& place) -> Result<void> {
    T value{};
    if (auto read = make(value)(place); !read) return read;
    target = value;
    return {};
  };
}

template <class T>
Reader bounded_whole(T& target, std::uint64_t min, std::uint64_t max) {
  return [&target, min, max](const Place& place) -> Result<void> {
    const auto value = take_whole(place.value());
    if (!value || *value < min || *value > max) {
      return place.expected("a whole number from " + std::to_string(min) + " to " +
                            std::to_string(max));
    }
    target = static_cast<T>(*value);
    return {};
  };
}

}  // namespace

Place Place::member(std::string_view name) const {
  const JsonValue* item = value_->find(name);
  LICTOR_ASSERT(item != nullptr);
  return member(*item);
}

Place Place::member(const JsonValue& item) const {
  return Place{item, file_, member_path(path_, item.key)};
}

Place Place::item(std::size_t index) const {
  return Place{value_->items[index], file_, item_path(path_, index)};
}

tl::unexpected<Error> Place::refuse(const std::string& message) const {
  return refuse_on(value_->line, message);
}

tl::unexpected<Error> Place::refuse_at(std::initializer_list<std::string_view> members,
                                       const std::string& message) const {
  int line = 0;
  for (const std::string_view member : members) {
    if (const JsonValue* item = value_->find(member)) line = std::max(line, item->line);
  }
  return refuse_on(line == 0 ? value_->line : line, message);
}

tl::unexpected<Error> Place::expected(const std::string& what) const {
  return refuse("expected " + what + ", got " + found(*value_));
}

tl::unexpected<Error> Place::refuse_on(int line, const std::string& message) const {
  std::string text = std::string{file_} + ":" + std::to_string(line) + ": ";
  if (!path_.empty()) text += path_ + ": ";
  return fail(ErrorCode::kInvalid, text + message);
}

Result<void> read_settings(const Place& object, Group group, const Settings& settings) {
  if (object.value().kind != JsonKind::kObject) return object.expected("an object");
  for (const JsonValue& item : object.value().items) {
    const Place member = object.member(item);
    const auto setting = std::find_if(settings.begin(), settings.end(),
                                      [&](const Setting& s) { return s.key == item.key; });
    if (const NotYet* later = not_yet(member, group)) {
      return member.refuse("is not supported by this version; " + std::string{later->instead});
    }
    if (setting == settings.end()) return unknown(member, settings);
    if (auto read = setting->read(member); !read) return read;
  }
  return {};
}

Reader text(std::string& target) {
  return [&target](const Place& place) -> Result<void> {
    auto value = take_text(place, "text");
    if (!value) return tl::unexpected{value.error()};
    target = *std::move(value);
    return {};
  };
}

Reader absolute_path(std::string& target) {
  return [&target](const Place& place) -> Result<void> {
    auto value = take_text(place, "an absolute path");
    if (!value) return tl::unexpected{value.error()};
    if (!value->starts_with('/')) return place.expected("an absolute path");
    target = *std::move(value);
    return {};
  };
}

Reader name(std::string& target) {
  return [&target](const Place& place) -> Result<void> {
    const JsonValue& value = place.value();
    if (value.kind != JsonKind::kString || !is_name(value.text)) {
      return place.expected(std::string{kNameForm});
    }
    target = value.text;
    return {};
  };
}

Reader json_pointer(std::string& target) {
  return [&target](const Place& place) -> Result<void> {
    const std::string what = R"(a JSON pointer into the record, such as "/taskPara/instanceId")";
    if (auto read = text(target)(place); !read) return place.expected(what);
    bool valid = target.front() == '/';
    for (std::size_t at = target.find('~'); valid && at != std::string::npos;
         at = target.find('~', at + 1)) {
      valid = at + 1 < target.size() && (target[at + 1] == '0' || target[at + 1] == '1');
    }
    return valid ? Result<void>{} : place.expected(what);
  };
}

Reader kv_key(std::string& target) { return key_or_prefix(target, false); }
Reader kv_prefix(std::string& target) { return key_or_prefix(target, true); }

Reader boolean(bool& target) {
  return [&target](const Place& place) -> Result<void> {
    if (place.value().kind != JsonKind::kBoolean) return place.expected("true or false");
    target = place.value().boolean;
    return {};
  };
}

Reader whole(std::uint32_t& target, std::uint32_t min, std::uint32_t max) {
  return bounded_whole(target, min, max);
}

Reader whole(std::optional<std::uint64_t>& target, std::uint64_t min, std::uint64_t max) {
  return maybe(target, [=](std::uint64_t& value) { return bounded_whole(value, min, max); });
}

Reader number(double& target, double min, double max) {
  return [&target, min, max](const Place& place) -> Result<void> {
    const JsonValue& value = place.value();
    const bool is_number = value.kind == JsonKind::kWhole || value.kind == JsonKind::kFraction;
    if (!is_number || value.number < min || value.number > max) {
      return place.expected("a number from " + number_text(min) + " to " + number_text(max));
    }
    target = value.number;
    return {};
  };
}

Reader duration(Duration& target, Duration min, Duration max, std::string why) {
  return [&target, min, max, why = std::move(why)](const Place& place) -> Result<void> {
    const JsonValue& value = place.value();
    const auto parsed = value.kind == JsonKind::kString ? parse_duration(value.text) : std::nullopt;
    if (!parsed) return place.expected(R"(a duration such as "150ms", "10s", "5m" or "2h")");
    if (*parsed < min || *parsed > max) {
      return place.expected("a duration from " + format_duration(min) + " to " +
                            format_duration(max) + (why.empty() ? "" : " (" + why + ")"));
    }
    target = *parsed;
    return {};
  };
}

Reader duration(std::optional<Duration>& target, Duration min, Duration max) {
  return maybe(target, [=](Duration& value) { return duration(value, min, max); });
}

Reader size(std::uint64_t& target, std::uint64_t max) {
  return [&target, max](const Place& place) -> Result<void> {
    const JsonValue& value = place.value();
    const auto bytes = value.kind == JsonKind::kString ? parse_size(value.text) : take_whole(value);
    if (!bytes || *bytes > max) {
      return place.expected(R"(bytes such as 65536, "64KiB" or "10MiB", at most )" +
                            size_text(max));
    }
    target = *bytes;
    return {};
  };
}

Reader size(std::optional<std::uint64_t>& target, std::uint64_t max) {
  return maybe(target, [=](std::uint64_t& value) { return size(value, max); });
}

Reader list(std::size_t max_items, Reader element) {
  return [max_items, element = std::move(element)](const Place& place) -> Result<void> {
    if (place.value().kind != JsonKind::kArray) return place.expected("an array");
    const std::size_t count = place.value().items.size();
    if (count > max_items) {
      return place.refuse("expected at most " + std::to_string(max_items) + " items, got " +
                          std::to_string(count));
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (auto read = element(place.item(i)); !read) return read;
    }
    return {};
  };
}

Reader texts(std::vector<std::string>& target, std::size_t max_items) {
  return [&target, max_items](const Place& place) -> Result<void> {
    std::vector<std::string> all;
    std::string one;
    auto read = list(max_items, [&](const Place& item) -> Result<void> {
      if (auto element = text(one)(item); !element) return element;
      all.push_back(one);
      return {};
    })(place);
    if (read) target = std::move(all);
    return read;
  };
}

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes || text == "." || text == "..") return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

std::string kv_key_fault(std::string_view key) {
  if (key.empty()) return "a key is not empty";
  if (key.size() > kMaxKeyBytes) {
    return "expected at most " + std::to_string(kMaxKeyBytes) + " bytes, got " +
           std::to_string(key.size());
  }
  if (has_control(key)) return "a key holds no control characters";
  if (key.front() == '/') return "a KV key does not begin with \"/\"; leave it out";
  if (key.find("//") != std::string_view::npos) {
    return "Consul cannot be asked for a key with \"//\" in it; write one \"/\"";
  }
  for (std::string_view rest = key; !rest.empty();) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view segment = rest.substr(0, slash);
    if (segment == "." || segment == "..") {
      return "Consul cannot be asked for a key with \"" + std::string{segment} +
             "\" as a segment; leave it out";
    }
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  return {};
}

}  // namespace lictor::app
