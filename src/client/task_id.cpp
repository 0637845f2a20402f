#include "client/task_id.h"

#include <algorithm>

#include "base/printable.h"
#include "base/text.h"

namespace lictor::client {
namespace {

constexpr std::size_t kMaxIdBytes = 512;  // for people and for paths; Consul takes far more

std::string hex(std::uint64_t number, std::size_t digits) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(digits, '0');
  for (auto it = text.rbegin(); it != text.rend(); ++it, number >>= 4U) {
    *it = kDigits[number & 15U];
  }
  return text;
}

}  // namespace

std::string TaskIds::next(WallTime now) {
  const auto ms =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.time_since_epoch().count()));
  // The top bit stays free, so that counting on from it never runs over.
  last_bits_ = ms > last_ms_ ? random_.next() >> 1U : last_bits_ + 1;
  last_ms_ = std::max(last_ms_, ms);
  return hex(last_ms_, 12) + '-' + hex(last_bits_, 16);
}

std::string key_fault(std::string_view key) {
  if (!is_utf8(key)) return "has bytes that are not UTF-8";
  // What is not shown as it is, Consul does not take in a path either. (A no-break space is shown.)
  if (printable(key).size() != key.size() || key.find("\u00a0") != std::string_view::npos) {
    return "has a character that cannot be printed";
  }
  if (key.starts_with('/')) return "begins with \"/\"";
  for (std::size_t begin = 0; begin < key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view segment = key.substr(begin, end - begin);
    if (segment.empty()) return "has \"//\"";
    if (segment == "." || segment == "..") {
      return "has the segment \"" + std::string{segment} + '"';
    }
    begin = end + 1;
  }
  return {};
}

std::string task_id_fault(std::string_view id) {
  if (id.empty()) return "is empty";
  if (id.ends_with('/')) return "ends in \"/\", which makes it a folder";
  if (id.size() > kMaxIdBytes) return "is longer than " + std::to_string(kMaxIdBytes) + " bytes";
  return key_fault(id);
}

}  // namespace lictor::client
