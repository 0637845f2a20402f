#pragma once

#include <string>

#include "exec/warden_protocol.h"
#include "lictor/result.h"

namespace lictor::exec {

/// A user that programs run as, with the groups it has.
struct User {
  std::string name;
  std::string home;
  std::string shell;
  Credentials credentials;
};

/// Looks up a user by name or number. Blocks: the answer may come from a directory service.
/// Errors: kNotFound; kFailed when the look-up itself failed.
[[nodiscard]] Result<User> find_user(const std::string& name);

}  // namespace lictor::exec
