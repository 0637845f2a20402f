#pragma once

#include <memory>
#include <optional>
#include <utility>

namespace lictor::core {

/// A std::optional for what few of very many objects have: a pointer when empty, and shared by the
/// copies, so it cannot be changed in place.
template <class T>
class SharedOptional {
 public:
  SharedOptional() = default;
  SharedOptional(T value) : value_(std::make_shared<const T>(std::move(value))) {}
  SharedOptional(std::optional<T> value) {
    if (value) value_ = std::make_shared<const T>(*std::move(value));
  }

  explicit operator bool() const { return value_ != nullptr; }
  [[nodiscard]] bool has_value() const { return value_ != nullptr; }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  void reset() { value_.reset(); }

  friend bool operator==(const SharedOptional& a, const SharedOptional& b) {
    return a && b ? *a == *b : static_cast<bool>(a) == static_cast<bool>(b);
  }

 private:
  std::shared_ptr<const T> value_;
};

}  // namespace lictor::core
