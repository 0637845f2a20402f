#include "net/environment.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "base/try.h"
#include "net/endpoint.h"

namespace lictor::net {
namespace {

std::optional<std::string> read(const GetEnv& get_env, const char* name) {
  const char* value = get_env(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

// Takes the words of Go's strconv.ParseBool, as consul does.
Result<bool> read_bool(const GetEnv& get_env, const char* name, bool default_value) {
  constexpr std::array<std::string_view, 6> kTrue{"1", "t", "T", "true", "TRUE", "True"};
  constexpr std::array<std::string_view, 6> kFalse{"0", "f", "F", "false", "FALSE", "False"};
  const std::optional<std::string> value = read(get_env, name);
  if (!value) return default_value;
  if (std::ranges::find(kTrue, *value) != kTrue.end()) return true;
  if (std::ranges::find(kFalse, *value) != kFalse.end()) return false;
  return fail(ErrorCode::kInvalid, "environment variable " + std::string{name} +
                                       ": expected true or false, got \"" + excerpt(*value) +
                                       "\"; correct or unset it");
}

}  // namespace

Result<Options> options_from_environment(Options base, const GetEnv& get_env) {
  if (auto address = read(get_env, "CONSUL_HTTP_ADDR")) base.addresses = {*std::move(address)};

  LICTOR_TRY(const auto ssl, read_bool(get_env, "CONSUL_HTTP_SSL", false));
  for (std::string& address : base.addresses) {
    if (has_no_scheme(address)) address.insert(0, "http://");
    // As for the consul command, "http://" does not revoke CONSUL_HTTP_SSL.
    if (ssl && address.starts_with("http:")) address.replace(0, 4, "https");
  }
  LICTOR_TRY(base.tls_verify, read_bool(get_env, "CONSUL_HTTP_SSL_VERIFY", base.tls_verify));

  if (auto token = read(get_env, "CONSUL_HTTP_TOKEN")) {
    base.token = *std::move(token);
    // The configuration's token_file would override the environment.
    base.token_file.clear();
  }
  const std::array<std::pair<const char*, std::string*>, 9> texts{{
      {"CONSUL_HTTP_TOKEN_FILE", &base.token_file},
      {"CONSUL_HTTP_AUTH", &base.basic_auth},
      {"CONSUL_CACERT", &base.ca_file},
      {"CONSUL_CAPATH", &base.ca_path},
      {"CONSUL_CLIENT_CERT", &base.client_cert},
      {"CONSUL_CLIENT_KEY", &base.client_key},
      {"CONSUL_TLS_SERVER_NAME", &base.tls_server_name},
      {"CONSUL_NAMESPACE", &base.consul_namespace},
      {"CONSUL_PARTITION", &base.consul_partition},
  }};
  for (const auto& [name, setting] : texts) {
    if (auto value = read(get_env, name)) *setting = *std::move(value);
  }
  return base;
}

}  // namespace lictor::net
