#pragma once

// Keys of an answer in one block of memory: a listing by name holds a hundred thousand of them, and
// allocating each would cost more than all other work on them.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lictor::core {

/// Puts keys in the order of their bytes. Consul lists them so, except for names that are not UTF-8
/// there (consul.md 9.2).
inline void put_in_order(std::vector<std::string_view>& keys) {
  if (!std::is_sorted(keys.begin(), keys.end())) std::sort(keys.begin(), keys.end());
}

class KeyList {
 public:
  KeyList() = default;
  /// `keys` lie in `text`.
  KeyList(std::shared_ptr<const std::string> text, std::vector<std::string_view> keys)
      : text_(std::move(text)), keys_(std::move(keys)) {
    put_in_order(keys_);
  }
  explicit KeyList(const std::vector<std::string>& keys) {
    auto text = std::make_shared<std::string>();
    for (const std::string& key : keys) *text += key;
    std::size_t begin = 0;
    keys_.reserve(keys.size());
    for (const std::string& key : keys) {
      keys_.push_back(std::string_view{*text}.substr(begin, key.size()));
      begin += key.size();
    }
    put_in_order(keys_);
    text_ = std::move(text);
  }

  template <class Unwanted>
  void erase_if(Unwanted unwanted) {
    std::erase_if(keys_, unwanted);
  }

  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  /// In the order of their bytes. Valid as long as this list, or a copy of it, lives.
  [[nodiscard]] const std::vector<std::string_view>& in_order() const { return keys_; }

 private:
  std::shared_ptr<const std::string> text_;
  std::vector<std::string_view> keys_;
};

}  // namespace lictor::core
