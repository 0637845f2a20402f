#pragma once

// In what a Consul newer than 1.8.7 answers otherwise than the model (src/dev), which is made after
// 1.8.7. The list is in known_differences.cpp: what is not in it fails the tests of the model.

#include <map>
#include <string>

#include "base/http.h"

namespace lictor::live {

/// Gives `real`, the answer of consul_binary() to a request of `target`, the form of 1.8.7 where
/// its version is known to differ; `said` is the model's answer.
void take_out_known(const std::string& target, http::Response& real, const http::Response& said);
/// The same for headers, whose names are in lower case.
void take_out_known(std::map<std::string, std::string>& real,
                    const std::map<std::string, std::string>& said);

/// What has been taken out until now, a line each; empty: nothing.
[[nodiscard]] std::string differences_seen();

}  // namespace lictor::live
