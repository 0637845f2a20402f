#pragma once

#include <functional>

#include "lictor/result.h"
#include "net/transport.h"

namespace lictor::net {

/// Like std::getenv: nullptr if the variable is not set.
using GetEnv = std::function<const char*(const char* name)>;

/// Consul's environment variables override `base`, as the consul command honours them
/// (developer.hashicorp.com/consul/commands, "Environment Variables"): CONSUL_HTTP_ADDR,
/// CONSUL_HTTP_TOKEN, CONSUL_HTTP_TOKEN_FILE, CONSUL_HTTP_AUTH, CONSUL_HTTP_SSL,
/// CONSUL_HTTP_SSL_VERIFY, CONSUL_CACERT, CONSUL_CAPATH, CONSUL_CLIENT_CERT, CONSUL_CLIENT_KEY,
/// CONSUL_TLS_SERVER_NAME, CONSUL_NAMESPACE, CONSUL_PARTITION. An empty variable counts as not set.
/// CONSUL_HTTP_SSL turns every address but unix:// to https. Errors: kInvalid, naming the variable:
/// a value that is no boolean.
[[nodiscard]] Result<Options> options_from_environment(Options base, const GetEnv& get_env);

}  // namespace lictor::net
