#include "guarded_consul.h"

#include <sys/stat.h>

#include <cstdio>
#include <stdexcept>

#include "same_answers.h"

namespace lictor::live {
namespace {

json with_acl(const json& extra) {
  json config{{"acl", {{"enabled", true}, {"default_policy", "deny"}}}};
  if (!extra.is_null()) config.merge_patch(extra);
  return config;
}

// ACLs come up some time after the leader.
std::string bootstrap(const ConsulAgent& agent) {
  Kv kv{agent.address()};
  HttpAnswer answer;
  if (!eventually([&] {
        answer = kv.request("PUT", "/v1/acl/bootstrap");
        return answer.status == 200;
      })) {
    throw std::runtime_error{"no ACL bootstrap: " + answer.body};
  }
  return answer.json().at("SecretID");
}

json expect(Kv& kv, const std::string& method, const std::string& path, const json& body = {}) {
  const HttpAnswer answer = kv.request(method, path, body.is_null() ? "" : body.dump());
  if (answer.status != 200) throw std::runtime_error{method + " " + path + ": " + answer.body};
  return answer.json();
}

}  // namespace

std::string policy_text(const std::string& name, const std::string& node) {
  return replaced(read_text(LICTOR_CONSUL_FOLDER "/policy-" + name + ".hcl"), "\"NODE\"",
                  '"' + node + '"');
}

void write_secret(const std::string& path, const std::string& secret) {
  const std::string aside = path + ".new";
  write_text(aside, "");
  if (chmod(aside.c_str(), 0600) != 0) throw std::runtime_error{"cannot chmod " + aside};
  write_text(aside, secret + "\n");
  if (std::rename(aside.c_str(), path.c_str()) != 0) throw std::runtime_error{"rename " + path};
}

GuardedConsul::GuardedConsul(const json& extra)
    : agent(with_acl(extra)), management(bootstrap(agent)), kv(agent.address(), management) {}

std::string GuardedConsul::make_policy(const std::string& name, const std::string& rules) {
  return expect(kv, "PUT", "/v1/acl/policy", {{"Name", name}, {"Rules", rules}}).at("ID");
}

void GuardedConsul::change_policy(const std::string& id, const std::string& name,
                                  const std::string& rules) {
  static_cast<void>(
      expect(kv, "PUT", "/v1/acl/policy/" + id, {{"ID", id}, {"Name", name}, {"Rules", rules}}));
}

GuardedConsul::Token GuardedConsul::make_token(const std::string& policy) {
  const json token =
      expect(kv, "PUT", "/v1/acl/token", {{"Policies", json::array({json{{"ID", policy}}})}});
  return {token.at("AccessorID"), token.at("SecretID")};
}

std::string GuardedConsul::make_token_of(const std::string& name) {
  return make_token(make_policy(name, policy_text(name, agent.node()))).secret;
}

void GuardedConsul::remove(const Token& token) {
  static_cast<void>(expect(kv, "DELETE", "/v1/acl/token/" + token.accessor));
}

}  // namespace lictor::live
