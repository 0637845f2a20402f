#pragma once

// Which names of keys can stand in the path of a request to Consul's /v1/kv.
//
// Consul 1.21.5 and newer refuse other characters than these there, in a prefix too, and any "..";
// every version redirects a path with an empty or a dot segment. A transaction names its keys in
// its body and takes all names. So lictor's own names fit a path. Other names of producers are read
// and written by transactions, and listed by a beginning that fits.

#include <string_view>

#include "base/http.h"

namespace lictor {

/// Whether every Consul takes `name`, of a key or a prefix, in a path.
[[nodiscard]] bool fits_path(std::string_view name);

/// The longest beginning of `name` that fits a path; it may be empty.
[[nodiscard]] std::string_view part_that_fits_path(std::string_view name);

/// Whether Consul refused the request for a name in it. Sent again unchanged, it is refused again.
[[nodiscard]] bool refuses_name(const http::Response& response);

}  // namespace lictor
