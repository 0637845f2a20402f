#pragma once

// The answers of two servers to the same requests: each names sessions and counts indexes in its
// own way.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "base/http.h"
#include "consul_agent.h"
#include "net/transport.h"

namespace lictor::live {

[[nodiscard]] std::unique_ptr<net::Transport> transport_to(const ConsulAgent& consul);

/// With the tests' patience as its time-out.
[[nodiscard]] http::Request request_of(std::string method, std::string target,
                                       std::string body = {});

/// What the one server calls a thing and what the other does. An index of the one must be equal to,
/// less or greater than another just when it is so with the other.
struct Names {
  std::map<std::uint64_t, std::uint64_t> indexes;  ///< the agent's -> the model's
  std::map<std::string, std::string> sessions;

  [[nodiscard]] bool same_index(std::uint64_t real, std::uint64_t model);
};

[[nodiscard]] bool same_text(Names& names, const std::string& real, const std::string& model);
[[nodiscard]] bool same_json(Names& names, const nlohmann::json& real, const nlohmann::json& model);

[[nodiscard]] std::string replaced(std::string text, const std::string& from,
                                   const std::string& to);

}  // namespace lictor::live
