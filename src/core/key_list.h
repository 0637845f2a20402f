#pragma once

// Keys as they were answered, in one piece of memory: a hundred thousand of them come with each
// listing by name, and fresh memory for copies would cost more than all that is done with them.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lictor::core {

/// Puts keys in the order of their bytes, which is how Consul lists them, but for names that are
/// not UTF-8 there (CONSUL-FACTS.md 9.2).
inline void put_in_order(std::vector<std::string_view>& keys) {
  if (!std::is_sorted(keys.begin(), keys.end())) std::sort(keys.begin(), keys.end());
}

class KeyList {
 public:
  KeyList() = default;
  /// `keys` lie in `text`.
  KeyList(std::shared_ptr<const std::string> text, std::vector<std::string_view> keys)
      : texts_{std::move(text)}, keys_(std::move(keys)) {
    put_in_order(keys_);
  }

  void add(std::string_view key) {
    texts_.push_back(std::make_shared<const std::string>(key));
    keys_.emplace_back(*texts_.back());
    if (size() > 1 && keys_[size() - 2] > keys_.back()) put_in_order(keys_);
  }
  template <class Unwanted>
  void erase_if(Unwanted unwanted) {
    std::erase_if(keys_, unwanted);
  }

  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  /// In the order of their bytes. Good as long as this list, or a copy of it, is.
  [[nodiscard]] const std::vector<std::string_view>& in_order() const { return keys_; }

 private:
  std::vector<std::shared_ptr<const std::string>> texts_;
  std::vector<std::string_view> keys_;
};

}  // namespace lictor::core
