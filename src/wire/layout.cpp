#include "wire/layout.h"

namespace lictor::wire {
namespace {

std::string encode(std::string_view text, bool keep_slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (alphanumeric || c == '-' || c == '_' || c == '.' || c == '~' || (keep_slash && c == '/')) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kDigits[byte >> 4U];
      encoded += kDigits[byte & 15U];
    }
  }
  return encoded;
}

}  // namespace

Layout Layout::under(std::string_view root, std::string_view queue) {
  const std::string base = std::string{root} + std::string{queue} + "/";
  return {base + "tasks/", base + "leader",  base + "dead/",
          base + "done/",  base + "control", base + "members/"};
}

std::optional<std::string> Layout::task_id(std::string_view key) const {
  if (!is_task(key)) return std::nullopt;
  return std::string{key.substr(tasks_prefix.size())};
}

std::string Layout::dead_key(std::string_view task_key, std::uint32_t copy) const {
  std::string key = dead_prefix + task_id(task_key).value_or(std::string{task_key});
  if (copy > 1) key += "~" + std::to_string(copy);
  return key;
}

std::string Layout::done_key(std::string_view task_key) const {
  return done_prefix + task_id(task_key).value_or(std::string{task_key});
}

std::string kv_path(std::string_view key) { return "/v1/kv/" + encode(key, true); }

std::string query_value(std::string_view text) { return encode(text, false); }

}  // namespace lictor::wire
