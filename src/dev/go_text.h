#pragma once

// How Go, in which Consul is written, reads and writes text: its answers are compared byte by byte.

#include <cstdint>
#include <string>
#include <string_view>

#include "httpd/url.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::dev {

using httpd::Url;

/// The query as url.Values.Encode() writes it: sorted by name.
[[nodiscard]] std::string encoded_query(const Url& url);

/// path.Clean, with a slash at the end kept: where http.ServeMux sends such a path.
[[nodiscard]] std::string clean_path(std::string_view path);

/// A path as url.URL.String() writes it.
[[nodiscard]] std::string escape_path(std::string_view path);

/// Whether every character is printable to unicode.IsPrint, its rarer categories aside.
[[nodiscard]] bool is_printable_path(std::string_view path);

/// strconv.Quote.
[[nodiscard]] std::string go_quoted(std::string_view text);

/// Appends `text` as encoding/json writes a string: with <, > and & escaped.
void append_json(std::string& out, std::string_view text);

/// json.Indent with four spaces, and a line's end. `text` must be JSON.
[[nodiscard]] std::string go_indented(std::string_view text);

/// What encoding/json says of text that is no JSON, as far as its first character tells.
[[nodiscard]] std::string go_json_fault(std::string_view text);

/// time.ParseDuration. The error is Go's text.
[[nodiscard]] Result<Duration> parse_go_duration(std::string_view text);

/// strconv.ParseUint in base 10. The error is Go's text.
[[nodiscard]] Result<std::uint64_t> parse_go_uint(std::string_view text);

}  // namespace lictor::dev
