#pragma once

#include <string>

#include "consul_agent.h"
#include "kv.h"

namespace lictor::live {

/// consul/policy-<name>.hcl, for a host whose agent has the name `node`.
[[nodiscard]] std::string policy_text(const std::string& name, const std::string& node);

/// Writes `secret` to a file that nobody else may read, as a whole: by another file and rename().
void write_secret(const std::string& path, const std::string& secret);

/// A Consul with ACLs that denies by default, and its operator's actions.
class GuardedConsul {
 public:
  struct Token {
    std::string accessor;
    std::string secret;
  };

  /// `extra` is laid over the agent's configuration.
  explicit GuardedConsul(const json& extra = {});

  ConsulAgent agent;
  const std::string management;  ///< a token that may do everything
  Kv kv;                         ///< with that token

  /// The id of a new policy.
  [[nodiscard]] std::string make_policy(const std::string& name, const std::string& rules);
  /// The change holds from the next request on.
  void change_policy(const std::string& id, const std::string& name, const std::string& rules);
  /// A token with the policy of that id.
  [[nodiscard]] Token make_token(const std::string& policy);
  /// A token with the policy of consul/policy-<name>.hcl.
  [[nodiscard]] std::string make_token_of(const std::string& name);
  void remove(const Token& token);
};

}  // namespace lictor::live
