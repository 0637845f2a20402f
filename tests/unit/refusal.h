#pragma once

#include <string>

#include <doctest/doctest.h>

#include "lictor/result.h"

namespace lictor {

/// The error of a result that must have failed.
template <class T>
Error refusal_of(const Result<T>& result) {
  REQUIRE_FALSE(result);
  return result.error();
}

/// The message of a result that must have failed with this code.
template <class T>
std::string refusal_of(const Result<T>& result, ErrorCode code) {
  const Error error = refusal_of(result);
  CHECK(error.code == code);
  return error.message;
}

}  // namespace lictor
