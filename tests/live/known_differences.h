#pragma once

// In what a Consul newer than 1.8.7 answers otherwise than the model (src/dev), which is made after
// 1.8.7. The list is in known_differences.cpp: what is not in it fails the tests of the model.

#include <cstddef>
#include <map>
#include <string>

#include "base/http.h"

namespace lictor::live {

/// Makes `real`, the answer of consul_binary() to a request of `target`, and `said`, the model's
/// answer, alike where the version of that Consul is known to differ.
void take_out_known(const std::string& target, http::Response& real, http::Response& said);
/// The same for headers, whose names are in lower case.
void take_out_known(std::map<std::string, std::string>& real,
                    const std::map<std::string, std::string>& said);

/// How many operations a transaction of consul_binary() may hold.
[[nodiscard]] std::size_t operations_of_a_transaction();

/// What has been taken out until now, a line each; empty: nothing.
[[nodiscard]] std::string differences_seen();

}  // namespace lictor::live
