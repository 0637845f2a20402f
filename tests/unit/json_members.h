#pragma once

#include <type_traits>

#include <doctest/doctest.h>

namespace lictor {

/// Checks these members of a JSON object, which may have others.
template <class Json>
void check_members(const Json& object, const std::type_identity_t<Json>& expected) {
  for (const auto& [name, value] : expected.items()) CHECK_MESSAGE(object.at(name) == value, name);
}

}  // namespace lictor
