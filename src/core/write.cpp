#include "core/write.h"

#include <cstdint>
#include <variant>

#include "core/overloaded.h"

namespace lictor::core {

const std::string& key_of(const Op& op) {
  static const std::string kNone;
  return std::visit(Overloaded{[](const MarkOp&) -> const std::string& { return kNone; },
                               [](const auto& other) -> const std::string& { return other.key; }},
                    op);
}

std::uint64_t expected_index(const Op& op) {
  return std::visit(Overloaded{[](const MarkOp&) { return std::uint64_t{0}; },
                               [](const auto& other) { return other.index; }},
                    op);
}

}  // namespace lictor::core
