#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lictor::httpd {

/// A request's target, taken apart as Go's net/url does it, in which Consul is written.
struct Url {
  std::string path;  ///< decoded
  std::map<std::string, std::vector<std::string>, std::less<>> query;

  [[nodiscard]] bool has(std::string_view name) const { return query.find(name) != query.end(); }
  /// The first value; empty when there is none.
  [[nodiscard]] std::string get(std::string_view name) const;
};

/// std::nullopt if a percent sign of the path is not followed by two hexadecimal digits; such a
/// part of the query is dropped.
[[nodiscard]] std::optional<Url> parse_url(std::string_view target);

}  // namespace lictor::httpd
