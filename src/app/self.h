#pragma once

// What a daemon tells of itself: its entry among the members, and the leader key's value.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/config.h"
#include "runtime/membership.h"

namespace lictor::app {

/// Not thread safe.
class Self {
 public:
  /// `admin_urls`: of its admin face.
  Self(const Config& config, const std::vector<std::string>& admin_urls);

  [[nodiscard]] std::string member_value() const;
  /// `identity` tells this daemon's claims from those of an earlier start.
  [[nodiscard]] std::string leader_value(const std::string& identity) const;

  /// Takes over a new configuration, and says what of it is new; empty: only this host's settings.
  [[nodiscard]] std::string reloaded(const Config& next);
  void reload_refused(const std::string& error);

 private:
  void set_configuration(const Config& config);

  nlohmann::json told_;
};

/// How the daemon takes part in all queues of `config`.
[[nodiscard]] runtime::Membership::Options membership_of(const Config& config, const Self& self);

}  // namespace lictor::app
