#pragma once

// Each member's entry in Consul has a digest of its configuration. So "check" and the page can say
// which hosts differ, and in which parts, without reading their files.

#include <functional>
#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace lictor::client {

/// Digests of the parts of a daemon's configuration that all hosts should share: "QUEUE/TYPE" is an
/// executor, "QUEUE@schedules" the schedules of a queue, "QUEUE" its other settings, "" the rest.
using ConfigParts = std::map<std::string, std::string, std::less<>>;

/// The parts of the configuration `file`; empty: more than 200.
[[nodiscard]] ConfigParts config_digest(const nlohmann::json& file);

/// A digest of `value` that ignores the order of members.
[[nodiscard]] std::string digest_of(const nlohmann::json& value);

/// Where `theirs` differs from `ours`: "executor Mail of queue default is missing; the settings of
/// queue default differ", at most four such. Empty: they are alike, or one of them is not known.
[[nodiscard]] std::string difference(const ConfigParts& ours, const ConfigParts& theirs);

}  // namespace lictor::client
