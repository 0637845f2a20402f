#pragma once

// What every endpoint of the API has in common: the methods it takes and the headers it answers
// with.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/http.h"
#include "dev/go_text.h"

namespace lictor::dev {

/// As in an Allow header, without OPTIONS ("GET,PUT,DELETE"); empty: there is no such endpoint.
[[nodiscard]] std::string_view allowed_methods(std::string_view path);

/// Where a request is sent whose path is not clean, or lacks the slash at its end (path and query,
/// encoded); nothing: it is right as it is.
[[nodiscard]] std::optional<std::string> moved_to(const http::Request& request, const Url& url);

/// Of what Consul has and this model has not; otherwise empty. For a person.
[[nodiscard]] std::string missing_here(std::string_view path);

/// The headers of Model's answer, those of the transfer aside.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> headers_of(
    const http::Request& request, const http::Response& response);

}  // namespace lictor::dev
