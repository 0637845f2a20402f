#pragma once

#include <string>

#include "lictor/result.h"

namespace lictor::exec {

/// Where an http executor posts to.
struct HttpTarget {
  std::string url;    ///< as configured, user and password with it
  std::string shown;  ///< without them, query and fragment: fit for logs and errors
  bool has_user = false;
};

/// Reads "http://host:port/path" or "https://…". Errors: kInvalid; the message says what was
/// expected and does not quote the URL, which may hold a password.
[[nodiscard]] Result<HttpTarget> parse_http_target(const std::string& url);

}  // namespace lictor::exec
