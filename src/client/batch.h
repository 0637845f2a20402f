#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "client/store.h"
#include "lictor/result.h"

namespace lictor::client {

/// New records on their way into one transaction. Not thread safe.
class Batch {
 public:
  /// `trouble` is told when Consul does not answer and is waited for.
  Batch(Store& store, std::function<void(const Error&)> trouble)
      : store_(store), trouble_(std::move(trouble)) {}

  [[nodiscard]] bool empty() const { return records_.empty(); }
  [[nodiscard]] std::size_t size() const { return records_.size(); }
  /// Whether there is room for it; in an empty batch there always is.
  [[nodiscard]] bool fits(const Store::Record& record) const;
  void add(Store::Record record);

  /// Writes them, and is empty then. Where Consul does not take them they are tried again for half
  /// a minute. After an error none of them is settled, and they stay. Returns which exist already.
  [[nodiscard]] Result<Store::Created> write();
  void clear();

 private:
  Store& store_;
  std::function<void(const Error&)> trouble_;
  std::vector<Store::Record> records_;
  std::size_t bytes_ = 0;
};

}  // namespace lictor::client
