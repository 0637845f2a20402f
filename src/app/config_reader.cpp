#include "app/config_reader.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/task_id.h"

namespace lictor::app {
namespace {

constexpr std::size_t kMaxTextBytes = 4096;
constexpr std::size_t kMaxKeyBytes = 512;
constexpr std::size_t kMaxNameBytes = 128;

// Describes a value for "got ...": short, since a value may fill the whole file.
std::string found(const nlohmann::json& value) {
  if (value.is_string()) return '"' + excerpt(value.get<std::string>()) + '"';
  if (value.is_array()) return value.empty() ? "an empty array" : "an array";
  if (value.is_object()) return "an object";
  return (value.is_number() ? "the number " : "") + value.dump();
}

// A misspelt key would silently leave a default in force, so no unknown key is accepted.
tl::unexpected<Error> unknown(const ConfigNode& member, const std::string& key,
                              const Settings& settings) {
  std::vector<std::string_view> known;
  for (const Setting& setting : settings) known.push_back(setting.key);
  const std::string near = nearest(key, known);
  if (!near.empty()) return member.refuse("unknown key; did you mean \"" + near + "\"?");
  std::sort(known.begin(), known.end());
  return member.refuse(fmt::format("unknown key; known here: {}", fmt::join(known, ", ")));
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// Reads text without characters that a path, a key or a header cannot hold.
Result<std::string> take_text(const ConfigNode& place, const std::string& what) {
  if (!place.value().is_string()) return place.expected(what);
  auto text = place.value().get<std::string>();
  if (text.empty()) return place.expected(what);
  if (text.size() > kMaxTextBytes) {
    return place.refuse(
        fmt::format("expected at most {} bytes, got {}", kMaxTextBytes, text.size()));
  }
  if (has_control(text)) return place.expected(what + " without control characters");
  return text;
}

Reader key_or_prefix(std::string& target, bool prefix) {
  const std::string form = prefix ? "a KV prefix such as \"lictor/default/tasks/\""
                                  : "a KV key such as \"lictor/default/leader\"";
  return into(target, form, [prefix, form](const ConfigNode& place) -> Result<std::string> {
    auto key = take_text(place, form);
    if (!key) return key;
    if (key->size() > kMaxKeyBytes) {
      return place.refuse(
          fmt::format("expected at most {} bytes, got {}", kMaxKeyBytes, key->size()));
    }
    if (const std::string fault = client::key_fault(*key); !fault.empty()) {
      return place.refuse(
          fmt::format("\"{}\" {}, so Consul cannot be asked for it", excerpt(*key), fault));
    }
    if (prefix && !key->ends_with('/')) {
      // "task" would match "taskforce/x" too, and a recursive delete would take it along.
      return place.refuse(fmt::format(R"("{}": a prefix ends in "/"; write "{}")", excerpt(*key),
                                      excerpt(*key + "/")));
    }
    if (!prefix && key->ends_with('/')) {
      return place.refuse(
          fmt::format(R"("{}": a key does not end in "/", a prefix does; write "{}")",
                      excerpt(*key), excerpt(key->substr(0, key->size() - 1))));
    }
    return key;
  });
}

std::optional<std::uint64_t> take_whole(const nlohmann::json& value) {
  return value.is_number_unsigned() ? std::optional{value.get<std::uint64_t>()} : std::nullopt;
}

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> kSizeUnits{
    {{"TiB", 1ULL << 40U}, {"GiB", 1ULL << 30U}, {"MiB", 1ULL << 20U}, {"KiB", 1ULL << 10U}}};

// "64KiB" or "65536". The limits on the digits keep the product below 2^63.
std::optional<std::uint64_t> parse_size(std::string_view text) {
  for (const auto& [unit, bytes] : kSizeUnits) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    const auto count = text.size() <= 6 ? to_number<std::uint64_t>(text) : std::nullopt;
    return count ? std::optional{*count * bytes} : std::nullopt;
  }
  return text.size() <= 18 ? to_number<std::uint64_t>(text) : std::nullopt;
}

// The size in the largest unit that divides it.
std::string size_text(std::uint64_t bytes) {
  for (const auto& [unit, size] : kSizeUnits) {
    if (bytes != 0 && bytes % size == 0) return fmt::format("{}{}", bytes / size, unit);
  }
  return std::to_string(bytes);
}

}  // namespace

ConfigNode ConfigNode::member(std::string_view name) const {
  const auto lines = lines_->members.find(name);
  LICTOR_ASSERT(lines != lines_->members.end());
  return {*value_->find(name), lines->second, file_, member_path(path_, name)};
}

ConfigNode ConfigNode::item(std::size_t index) const {
  return {(*value_)[index], lines_->items.at(index), file_, item_path(path_, index)};
}

tl::unexpected<Error> ConfigNode::refuse(const std::string& message) const {
  return refuse_on(lines_->line, message);
}

tl::unexpected<Error> ConfigNode::missing(const std::string& message) const {
  return fail(ErrorCode::kFailed, refuse(message).value().message);
}

tl::unexpected<Error> ConfigNode::refuse_at(std::initializer_list<std::string_view> members,
                                            const std::string& message) const {
  int line = 0;
  for (const std::string_view member : members) {
    const auto known = lines_->members.find(member);
    if (known != lines_->members.end()) line = std::max(line, known->second.line);
  }
  return refuse_on(line == 0 ? lines_->line : line, message);
}

tl::unexpected<Error> ConfigNode::expected(const std::string& what) const {
  return refuse("expected " + what + ", got " + found(*value_));
}

tl::unexpected<Error> ConfigNode::refuse_on(int line, const std::string& message) const {
  return fail(ErrorCode::kInvalid,
              fmt::format("{}{}{}{}", file_.empty() ? "" : fmt::format("{}:{}: ", file_, line),
                          path_, path_.empty() ? "" : ": ", message));
}

Result<void> read_settings(const ConfigNode& object, const Settings& settings,
                           const std::string& what) {
  if (!object.value().is_object()) return object.expected(what);
  for (const auto& [key, value] : object.value().items()) {
    const ConfigNode member = object.member(key);
    const auto setting = std::ranges::find(settings, key, &Setting::key);
    if (setting == settings.end()) return unknown(member, key, settings);
    if (auto read = setting->reader(member); !read) return read;
  }
  return {};
}

std::vector<KeyForm> forms_of(const Settings& settings) {
  std::vector<KeyForm> forms;
  for (const Setting& setting : settings) {
    const std::string key{setting.key};
    const Reader& reader = setting.reader;
    forms.push_back({key, reader.form, reader.default_text, setting.reloads});
    for (const KeyForm& member : reader.members) {
      forms.push_back({key + '.' + member.key, member.form, member.default_text,
                       setting.reloads && member.reloads});
    }
  }
  return forms;
}

Reader object(Settings settings, const std::string& form,
              std::function<Result<void>(const ConfigNode&)> check) {
  std::vector<KeyForm> members = forms_of(settings);
  auto read = [settings = std::move(settings), form,
               check = std::move(check)](const ConfigNode& place) {
    auto all = read_settings(place, settings, form);
    return all && check ? check(place) : all;
  };
  return {std::move(read), form, "", std::move(members)};
}

Reader text_or(Reader text, Reader other) {
  other.read = [text = std::move(text), read = std::move(other.read)](const ConfigNode& place) {
    return place.value().is_string() ? text(place) : read(place);
  };
  return other;
}

Reader kept(std::optional<ConfigNode>& target, std::string form) {
  return {[&target](const ConfigNode& place) -> Result<void> {
            target = place;
            return {};
          },
          std::move(form)};
}

Reader derived(Reader reader) {
  reader.default_text.clear();
  return reader;
}

std::string size_json(std::uint64_t bytes) { return '"' + size_text(bytes) + '"'; }

Reader text(std::string& target) {
  return into(target, "text", [](const ConfigNode& place) { return take_text(place, "text"); });
}

Reader absolute_path(std::string& target) {
  return into(target, "an absolute path", [](const ConfigNode& place) -> Result<std::string> {
    auto value = take_text(place, "an absolute path");
    if (value && !value->starts_with('/')) return place.expected("an absolute path");
    return value;
  });
}

Reader name(std::string& target) {
  return into(target, std::string{kNameForm}, [](const ConfigNode& place) -> Result<std::string> {
    auto value = take_text(place, std::string{kNameForm});
    return value && is_name(*value) ? value : place.expected(std::string{kNameForm});
  });
}

Reader json_pointer(std::string& target) {
  const std::string what = R"(a JSON pointer into the record, such as "/taskPara/instanceId")";
  return into(target, what, [what](const ConfigNode& place) -> Result<std::string> {
    auto pointer = take_text(place, what);
    return pointer && client::is_json_pointer(*pointer) ? pointer : place.expected(what);
  });
}

Reader kv_key(std::string& target) { return key_or_prefix(target, false); }
Reader kv_prefix(std::string& target) { return key_or_prefix(target, true); }

Reader boolean(bool& target) {
  return into(target, "true or false", [](const ConfigNode& place) -> Result<bool> {
    if (place.value().is_boolean()) return place.value().get<bool>();
    return place.expected("true or false");
  });
}

std::string whole_form(std::uint64_t min, std::uint64_t max) {
  return fmt::format("a whole number from {} to {}", min, max);
}

std::string size_form(std::uint64_t max) {
  return R"(bytes such as 65536, "64KiB" or "10MiB", at most )" + size_text(max);
}

std::string duration_form(Duration min, Duration max, const std::string& why) {
  return fmt::format("a duration from {} to {}{}", format_duration(min), format_duration(max),
                     why.empty() ? "" : " (" + why + ")");
}

Result<std::uint64_t> whole_of(const ConfigNode& place, std::uint64_t min, std::uint64_t max) {
  const auto value = take_whole(place.value());
  if (value && *value >= min && *value <= max) return *value;
  return place.expected(whole_form(min, max));
}

Result<std::uint64_t> size_of(const ConfigNode& place, std::uint64_t max) {
  const nlohmann::json& value = place.value();
  const auto bytes = value.is_string() ? parse_size(value.get<std::string>()) : take_whole(value);
  if (bytes && *bytes <= max) return *bytes;
  return place.expected(size_form(max));
}

// A bare number is refused, with the number and a unit as the example: seconds and milliseconds are
// both common elsewhere, and a wrong guess would be off by a thousand.
Result<Duration> duration_of(const ConfigNode& place, Duration min, Duration max,
                             const std::string& why) {
  const nlohmann::json& value = place.value();
  const auto parsed = value.is_string() ? parse_duration(value.get<std::string>()) : std::nullopt;
  if (!parsed) {
    const std::string like = value.is_number_integer() ? value.dump() + 's' : "10s";
    return place.expected(duration_form(min, max, why) + ", as text with a unit such as \"" + like +
                          '"');
  }
  if (*parsed >= min && *parsed <= max) return *parsed;
  return place.expected(duration_form(min, max, why));
}

Reader number(double& target, double min, double max) {
  const std::string form = fmt::format("a number from {:g} to {:g}", min, max);
  return into(target, form, [min, max, form](const ConfigNode& place) -> Result<double> {
    const double value = place.value().is_number() ? place.value().get<double>() : NAN;
    return value >= min && value <= max ? Result<double>{value} : place.expected(form);
  });
}

Reader list(std::size_t max_items, Reader element) {
  auto take = [max_items, element = std::move(element)](const ConfigNode& place) -> Result<void> {
    if (!place.value().is_array()) return place.expected("an array");
    const std::size_t count = place.value().size();
    if (count > max_items) {
      return place.refuse(fmt::format("expected at most {} items, got {}", max_items, count));
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (auto read = element(place.item(i)); !read) return read;
    }
    return {};
  };
  return {std::move(take), "an array"};
}

// One text in place of a list gets an error that shows the list with that text.
Reader texts(std::vector<std::string>& target, std::size_t max_items) {
  const auto take = [max_items](const ConfigNode& place) -> Result<std::vector<std::string>> {
    if (place.value().is_string()) {
      return place.expected("an array such as [" + found(place.value()) + "]");
    }
    std::vector<std::string> all;
    const Reader element{[&](const ConfigNode& item) { return text(all.emplace_back())(item); },
                         "text"};
    return list(max_items, element)(place).map([&] { return std::move(all); });
  };
  return into(target, "an array of texts", take);
}

bool is_name(std::string_view text) {
  return text.size() <= kMaxNameBytes && text != "." && text != ".." && is_word(text, "_-.");
}

}  // namespace lictor::app
