#pragma once

// Keys in one piece of memory: a hundred thousand of them come with each listing by name.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lictor::core {

/// Puts keys in the order of their bytes, which is how Consul lists them, but for names that are
/// not UTF-8 there (CONSUL-FACTS.md 9.2).
inline void put_in_order(std::vector<std::string_view>& keys) {
  if (!std::is_sorted(keys.begin(), keys.end())) std::sort(keys.begin(), keys.end());
}

class KeyList {
 public:
  void reserve(std::size_t bytes) { text_.reserve(bytes); }
  void add(std::string_view key) {
    text_ += key;
    ends_.push_back(text_.size());
  }
  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view{text_}.substr(begin, ends_[i] - begin);
  }
  /// In the order of their bytes. Good as long as this list is.
  [[nodiscard]] std::vector<std::string_view> in_order() const {
    std::vector<std::string_view> keys;
    keys.reserve(size());
    for (std::size_t i = 0; i < size(); ++i) keys.push_back((*this)[i]);
    put_in_order(keys);
    return keys;
  }

 private:
  std::string text_;
  std::vector<std::size_t> ends_;
};

}  // namespace lictor::core
