#pragma once

// How the configuration is read: by tables. A Setting ties a key to a Reader, and a Reader refers
// to the variable that takes the value. One table reads the file, words the errors and gives the
// manual its list of keys with forms and defaults, so the three cannot disagree.
//
//   Settings: key, Reader --+
//                           +--read_settings()--> variables, or "file:line: path: expected ..."
//   ConfigNode: a value,  --+
//   its line and its path
//
//   Settings --forms_of()--> key, form, default: the manual
//
// A table is made for one object and used at once, since its readers hold references. The default
// of a key is the value that its variable has when the table is made. A setting that depends on
// others is kept() and read when those are known, since the keys of an object may stand in any
// order. The `check` of object() relates the members of one object; config_check.cpp relates the
// settings of a queue, and the queues.

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/json_tree.h"
#include "base/time_text.h"
#include "base/try.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::app {

/// A value in the file, and its name in errors. Refers to the tree, which must outlive it.
class ConfigNode {
 public:
  ConfigNode(const JsonTree& tree, std::string_view file, std::string path = {})
      : ConfigNode(tree.value, tree.lines, file, std::move(path)) {}

  [[nodiscard]] const nlohmann::json& value() const { return *value_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool has(std::string_view name) const { return value_->contains(name); }

  /// The member called `name`, which must be there.
  [[nodiscard]] ConfigNode member(std::string_view name) const;
  [[nodiscard]] ConfigNode item(std::size_t index) const;

  /// "file:line: path: "
  [[nodiscard]] std::string where() const { return refuse({}).value().message; }
  /// An error at the line of this value: "file:line: path: message".
  [[nodiscard]] tl::unexpected<Error> refuse(const std::string& message) const;
  /// An error for something that this host lacks now: kFailed, since a later start may find it.
  [[nodiscard]] tl::unexpected<Error> missing(const std::string& message) const;
  /// Refuses at the last of `members` that is written, since that one broke the relation.
  [[nodiscard]] tl::unexpected<Error> refuse_at(std::initializer_list<std::string_view> members,
                                                const std::string& message) const;
  /// "expected <what>, got <what is there>"
  [[nodiscard]] tl::unexpected<Error> expected(const std::string& what) const;
  /// `result`; its error names this place.
  template <class T>
  [[nodiscard]] Result<T> checked(Result<T> result) const {
    if (!result) {
      const auto& [code, message] = result.error();
      return code == ErrorCode::kInvalid ? refuse(message) : missing(message);
    }
    return result;
  }

 private:
  ConfigNode(const nlohmann::json& value, const JsonLines& lines, std::string_view file,
             std::string path)
      : value_(&value), lines_(&lines), file_(file), path_(std::move(path)) {}
  [[nodiscard]] tl::unexpected<Error> refuse_on(int line, const std::string& message) const;

  const nlohmann::json* value_;
  const JsonLines* lines_;
  std::string_view file_;
  std::string path_;
};

/// The form of a setting's value, for the manual.
struct KeyForm {
  std::string key;           ///< "log.level"
  std::string form;          ///< "a whole number from 1 to 10000"
  std::string default_text;  ///< the default, as JSON; empty: there is none, or it is derived
  bool reloads = true;       ///< whether a reload takes over a change
};

/// Reads one value into the reader's target, and names the form of the value.
struct Reader {
  std::function<Result<void>(const ConfigNode&)> read;
  std::string form;
  std::string default_text{};      ///< see KeyForm
  std::vector<KeyForm> members{};  ///< of an object

  Result<void> operator()(const ConfigNode& place) const { return read(place); }
};

struct Setting {
  std::string_view key;
  Reader reader;
  bool reloads = true;
};
using Settings = std::vector<Setting>;

/// The forms of `settings`, each followed by its members.
[[nodiscard]] std::vector<KeyForm> forms_of(const Settings& settings);

/// An object with these settings. `form`: what is expected in its place. `check` runs after all
/// members were read, and may refuse them.
[[nodiscard]] Reader object(Settings settings, const std::string& form = "an object",
                            std::function<Result<void>(const ConfigNode&)> check = {});
/// Text as `text` reads it, anything else as `other` does.
[[nodiscard]] Reader text_or(Reader text, Reader other);
/// Remembers the place, to be read later.
[[nodiscard]] Reader kept(std::optional<ConfigNode>& target, std::string form);
/// `reader` without a default: its default follows from other settings, so the target's value would
/// be a false one in the manual.
[[nodiscard]] Reader derived(Reader reader);

/// Reads each member of an object by its setting. Refuses anything else than an object, with `what`
/// as the expectation, and an unknown member (with the nearest known one).
[[nodiscard]] Result<void> read_settings(const ConfigNode& object, const Settings& settings,
                                         const std::string& what = "an object");

// Readers. Each refers to its target, which must outlive it. Bounds are inclusive; `why`, if there
// is one, explains the bounds.

[[nodiscard]] Reader text(std::string& target);  ///< not empty, without control characters
[[nodiscard]] Reader absolute_path(std::string& target);
[[nodiscard]] Reader name(std::string& target);          ///< see is_name()
[[nodiscard]] Reader json_pointer(std::string& target);  ///< RFC 6901, not the whole document
[[nodiscard]] Reader kv_key(std::string& target);        ///< see client::key_fault()
[[nodiscard]] Reader kv_prefix(std::string& target);
[[nodiscard]] Reader boolean(bool& target);
[[nodiscard]] Reader number(double& target, double min, double max);

/// A target's value as JSON, for Reader::default_text; empty: it has none.
template <class T>
[[nodiscard]] std::string default_text_of(const T& target) {
  if constexpr (std::same_as<T, Duration>) {
    return '"' + format_duration(target) + '"';
  } else if constexpr (requires { target.empty(); }) {
    return target.empty() ? "" : nlohmann::json(target).dump();
  } else if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", target);
  }
  return {};
}

/// `take` turns a place into a Result, whose value goes into `target`. On an error `target` keeps
/// its value. The bounds in `take` must fit into T, to which the value is cast.
template <class T, class Take>
[[nodiscard]] Reader into(T& target, std::string form, Take take) {
  return {[&target, take = std::move(take)](const ConfigNode& place) -> Result<void> {
            LICTOR_TRY(auto value, take(place));
            target = static_cast<T>(std::move(value));
            return {};
          },
          std::move(form), default_text_of(target)};
}

[[nodiscard]] std::string whole_form(std::uint64_t min, std::uint64_t max);
[[nodiscard]] std::string size_form(std::uint64_t max);
[[nodiscard]] std::string duration_form(Duration min, Duration max, const std::string& why);
[[nodiscard]] std::string size_json(std::uint64_t bytes);
[[nodiscard]] Result<std::uint64_t> whole_of(const ConfigNode& place, std::uint64_t min,
                                             std::uint64_t max);
[[nodiscard]] Result<std::uint64_t> size_of(const ConfigNode& place, std::uint64_t max);
[[nodiscard]] Result<Duration> duration_of(const ConfigNode& place, Duration min, Duration max,
                                           const std::string& why);

/// `target` of these: a number or a duration, optional or not.
template <class T>
[[nodiscard]] Reader whole(T& target, std::uint64_t min, std::uint64_t max) {
  return into(target, whole_form(min, max),
              [=](const ConfigNode& place) { return whole_of(place, min, max); });
}
template <class T>
[[nodiscard]] Reader duration(T& target, Duration min, Duration max, const std::string& why = {}) {
  return into(target, duration_form(min, max, why),
              [=](const ConfigNode& place) { return duration_of(place, min, max, why); });
}
/// Bytes: a whole number, or text such as "64KiB", "10MiB", "1GiB".
template <class T>
[[nodiscard]] Reader size(T& target, std::uint64_t max) {
  Reader reader =
      into(target, size_form(max), [=](const ConfigNode& place) { return size_of(place, max); });
  reader.default_text = size_json(target);
  return reader;
}
/// An array, of which `element` reads each.
[[nodiscard]] Reader list(std::size_t max_items, Reader element);
[[nodiscard]] Reader texts(std::vector<std::string>& target, std::size_t max_items);

template <class T>
using Choices = std::vector<std::pair<std::string_view, T>>;

/// The value of one of the words. Several words may mean one value; the manual shows the first of
/// them as the default.
template <class T>
[[nodiscard]] Reader choice(T& target, const Choices<T>& choices) {
  std::string form;
  std::string default_text;
  for (const auto& [word, value] : choices) {
    const std::string quoted = '"' + std::string{word} + '"';
    form += (form.empty() ? "one of " : ", ") + quoted;
    if (value == target && default_text.empty()) default_text = quoted;
  }
  auto read = [&target, choices, form](const ConfigNode& place) -> Result<void> {
    for (const auto& [word, value] : choices) {
      if (place.value() != word) continue;
      target = value;
      return {};
    }
    return place.expected(form);
  };
  return {std::move(read), std::move(form), std::move(default_text)};
}

/// Whether a queue or a node may have this name: letters, digits, '_', '-' and '.', at most 128,
/// since the name becomes a segment of KV keys.
[[nodiscard]] bool is_name(std::string_view text);
inline constexpr std::string_view kNameForm =
    "1 to 128 letters, digits, \"_\", \"-\" and \".\", not \".\" or \"..\"";

}  // namespace lictor::app
