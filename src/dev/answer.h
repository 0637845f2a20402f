#pragma once

// Shared by the handlers: their answers, and text as Go, in which Consul is written,
// reads and writes it.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/http.h"
#include "dev/state.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::dev {

[[nodiscard]] inline http::Response answer(int status, std::string body = {}) {
  http::Response response;
  response.delivery = http::Delivery::kReplied;
  response.status = status;
  response.body = std::move(body);
  return response;
}

/// The answer to a read, with the headers that a blocking query needs.
[[nodiscard]] inline http::Response read_answer(int status, std::uint64_t index,
                                                std::string body = {}) {
  http::Response response = answer(status, std::move(body));
  response.consul_index = index;
  response.known_leader = true;
  return response;
}

/// Appends a key as the API shows it; without its value in a transaction's answer to a write.
void append_record(std::string& out, const KvRecord& record, bool with_value = true);

/// "GET,PUT,DELETE"; empty: there is no such endpoint.
[[nodiscard]] std::string_view allowed_methods(std::string_view path);

/// The headers of Model's answer that a client reads, without those of the transfer.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> headers_of(
    const http::Request& request, const http::Response& response);

/// `text` in double quotes, as JSON, with U+FFFD for each byte that is not UTF-8.
[[nodiscard]] std::string quote(std::string_view text);

/// Null changes nothing. Errors: kInvalid, no string.
[[nodiscard]] Result<void> read_text(const nlohmann::json& value, std::string_view field,
                                     std::string& out);

/// "10s", "1h30m". Errors: kInvalid, also for a negative duration.
[[nodiscard]] Result<Duration> parse_go_duration(std::string_view text);

/// A whole number in decimal. Errors: kInvalid, in Go's words.
[[nodiscard]] Result<std::uint64_t> parse_go_uint(std::string_view text);

}  // namespace lictor::dev
