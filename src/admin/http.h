#pragma once

// A request to the admin face and its answer, free of the library that carries them.

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lictor::admin {

/// The longest that a handler waits for something to tell.
inline constexpr std::chrono::milliseconds kMaxWait{30'000};

struct Request {
  std::string method;  ///< "GET", "HEAD", ...
  std::string path;    ///< decoded, without the query
  std::multimap<std::string, std::string> query;
  std::string body;

  // What the guard looks at. Nothing: the header was not sent.
  std::optional<std::string> host, origin, authorization;
  bool trusted_listener = false;  ///< loopback or a unix socket: whoever reaches it is on this host
  std::string local_address;      ///< of this connection: "192.0.2.7", "::1"; empty: a unix socket

  /// The part of the path that stands for "*" in the route's pattern.
  std::string wildcard;

  /// Sleeps, at most this long. False: the server ends or the client has gone; answer now.
  std::function<bool(std::chrono::milliseconds)> pause;

  /// Nothing: it is not there. The first, if it is there more than once.
  [[nodiscard]] std::optional<std::string> parameter(const std::string& name) const {
    const auto it = query.find(name);
    return it == query.end() ? std::nullopt : std::optional{it->second};
  }
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

/// {"error": message}, and a line feed.
[[nodiscard]] Response error_response(int status, std::string_view message);

}  // namespace lictor::admin
