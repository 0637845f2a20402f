#pragma once

// The answers of two servers to the same requests: each names sessions and counts indexes in its
// own way. A Consul newer than 1.8.7 answers some of them otherwise than the model (src/dev), which
// is made after 1.8.7. known_differences.cpp lists those; other differences fail the tests of the
// model.

#include <cstddef>
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

/// Maps one server's names to the other's. An index of one server must be equal to, less or greater
/// than another exactly when the other server's are.
struct Names {
  std::map<std::uint64_t, std::uint64_t> indexes;  ///< the agent's -> the model's
  std::map<std::string, std::string> sessions;

  [[nodiscard]] bool same_index(std::uint64_t real, std::uint64_t model);
};

[[nodiscard]] bool same_text(Names& names, const std::string& real, const std::string& model);
[[nodiscard]] bool same_json(Names& names, const json& real, const json& model);

[[nodiscard]] std::string replaced(std::string text, const std::string& from,
                                   const std::string& to);

/// Makes `real`, the answer of consul_binary() to a request of `target`, and `said`, the model's
/// answer, alike where the version of that Consul is known to differ.
void take_out_known(const std::string& target, http::Response& real, http::Response& said);
/// Does the same for headers, whose names are in lower case.
void take_out_known(std::map<std::string, std::string>& real,
                    const std::map<std::string, std::string>& said);

/// The number of operations that a transaction of consul_binary() may hold.
[[nodiscard]] std::size_t operations_of_a_transaction();

/// The parts taken out until now, a line each; empty: nothing.
[[nodiscard]] std::string differences_seen();

}  // namespace lictor::live
