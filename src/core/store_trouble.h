#pragma once

#include <string>
#include <utility>

#include "core/effect.h"

namespace lictor::core {

/// What cannot be asked of Consul now: one fact an outage, not one a try.
class StoreTrouble {
 public:
  void tell(const std::string& what, const std::string& error, Effects& out) {
    if (std::exchange(told_, true)) return;
    out.emplace_back(Fact{Fact::Kind::kStoreTrouble, {}, 0, 0, what + ": " + error, {}});
  }
  void over() { told_ = false; }

 private:
  bool told_ = false;
};

}  // namespace lictor::core
