#pragma once

#include <utility>

#include "lictor/result.h"

/// Declares `variable` and moves into it the value of a Result; returns the Result's error if it
/// has one: LICTOR_TRY(const auto entry, store.get(key));
#define LICTOR_TRY(variable, ...) LICTOR_TRY_LINE(__LINE__, variable, __VA_ARGS__)
#define LICTOR_TRY_LINE(line, variable, ...) LICTOR_TRY_PASTE(line, variable, __VA_ARGS__)
#define LICTOR_TRY_PASTE(line, variable, ...) LICTOR_TRY_NAMED(tried_##line, variable, __VA_ARGS__)
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration is no expression.
#define LICTOR_TRY_NAMED(result, variable, ...)                    \
  auto result = __VA_ARGS__;                                       \
  if (!result) return tl::unexpected(std::move((result).error())); \
  variable = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)
