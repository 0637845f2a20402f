#pragma once

#include <doctest/doctest.h>

#include "lictor/result.h"

namespace lictor {

/// The error of a result that must have failed.
template <class T>
Error refusal_of(const Result<T>& result) {
  REQUIRE_FALSE(result);
  return result.error();
}

}  // namespace lictor
