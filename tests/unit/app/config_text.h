#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "app/config.h"
#include "unit/contains.h"

namespace lictor::app {

inline LoadRequest request_for(Mode mode) {
  LoadRequest request{.mode = mode};
  return request;
}

[[nodiscard]] inline Config parsed(std::string_view text, Mode mode = Mode::kDaemon) {
  auto config = parse_config(text, "lictor.json", request_for(mode));
  REQUIRE_MESSAGE(config, (config ? "" : config.error().message));
  return *std::move(config);
}

/// The error of `text`; "" if there is none.
inline std::string error_of(std::string_view text, Mode mode = Mode::kDaemon) {
  const auto config = parse_config(text, "lictor.json", request_for(mode));
  return config ? "" : config.error().message;
}

/// A file whose one queue has `settings` on line 2 and an executor on line 3.
inline std::string queue_text(std::string_view settings) {
  return "{\"queues\": [{\n" + std::string{settings} + (settings.empty() ? "" : ",") +
         "\n\"executors\": {\"*\": {\"noop\": {}}}}]}";
}

/// A file whose one queue has the one executor "A", on line 2.
inline std::string executor_text(std::string_view executor) {
  return "{\"queues\": [{\"executors\": {\n\"A\": " + std::string{executor} + "}}]}";
}

}  // namespace lictor::app
