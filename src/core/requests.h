#pragma once

#include "base/id.h"

namespace lictor::core {

/// Numbers a queue's requests. An id is never used twice, so a late reply finds nobody waiting.
class Requests {
 public:
  [[nodiscard]] RequestId next() { return RequestId{++last_}; }

 private:
  std::uint64_t last_ = 0;
};

}  // namespace lictor::core
