// /v1/session (consul.md 1).
//
// State has the sessions, Model their ends: expiries_ says when each ends, lock_delays_ which keys
// are barred. A renewal draws a new end between one and two TTLs. Whatever ends a session,
// end_session() frees or deletes its keys and starts their lock-delay; an unlock starts none.

#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/try.h"
#include "dev/answer.h"
#include "dev/model.h"

namespace lictor::dev {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr Duration kMinTtl = 10s;
constexpr Duration kMaxTtl = 24h;

std::string uuid(Random& random) {
  const std::string hex = random.hex() + random.hex();
  return hex.substr(0, 8) + '-' + hex.substr(8, 4) + '-' + hex.substr(12, 4) + '-' +
         hex.substr(16, 4) + '-' + hex.substr(20, 12);
}

http::Response decode_fault(const std::string& what) {
  return answer(400, "Request decode failed: " + what);
}

// Consul takes numbers below 1000 as seconds, others as nanoseconds, also after parsing text.
Duration fixed_lock_delay(Duration delay) {
  return delay < Duration{1000} ? Duration{delay.count() * 1'000'000'000} : delay;
}

Result<void> read_lock_delay(const json& value, Duration& delay) {
  if (value.is_string()) {
    LICTOR_TRY(const auto read, parse_go_duration(value.get<std::string>()));
    delay = fixed_lock_delay(read);
  } else if (value.is_number()) {
    delay = fixed_lock_delay(Duration{static_cast<Duration::rep>(value.get<double>())});
  }
  return {};
}

Result<void> read_field(const std::string& name, const json& value, SessionRecord& session,
                        std::optional<std::vector<std::string>>& checks) {
  if (equal_but_for_case(name, "LockDelay")) return read_lock_delay(value, session.lock_delay);
  if (equal_but_for_case(name, "Name")) return read_text(value, "Name", session.name);
  if (equal_but_for_case(name, "Node")) return read_text(value, "Node", session.node);
  if (equal_but_for_case(name, "Behavior")) return read_text(value, "Behavior", session.behavior);
  if (equal_but_for_case(name, "TTL")) return read_text(value, "TTL", session.ttl_text);
  if ((equal_but_for_case(name, "Checks") || equal_but_for_case(name, "NodeChecks")) &&
      value.is_array()) {
    checks.emplace();
    for (const json& check : value) {
      std::string id;
      if (auto read = read_text(check, "NodeChecks", id); !read) return read;
      checks->push_back(std::move(id));
    }
  }
  return {};
}

std::string ttl_fault(SessionRecord& session) {
  if (session.ttl_text.empty()) return {};
  const auto ttl = parse_go_duration(session.ttl_text);
  if (!ttl) return "Session TTL '" + session.ttl_text + "' invalid: " + ttl.error().message;
  if (*ttl != Duration{} && (*ttl < kMinTtl || *ttl > kMaxTtl)) {
    return "Invalid Session TTL '" + std::to_string(ttl->count()) +
           "', must be between [10s=24h0m0s]";
  }
  session.ttl = *ttl;
  return {};
}

// As the API shows it. Its texts came from JSON, so they are UTF-8.
std::string session_text(const SessionRecord& session) {
  return nlohmann::ordered_json{{"ID", session.id},
                                {"Name", session.name},
                                {"Node", session.node},
                                {"LockDelay", session.lock_delay.count()},
                                {"Behavior", session.behavior},
                                {"TTL", session.ttl_text},
                                {"NodeChecks", session.node_checks},
                                {"ServiceChecks", nullptr},
                                {"CreateIndex", session.create_index},
                                {"ModifyIndex", session.create_index}}
      .dump();
}

http::Response missing_session() { return answer(400, "Missing session"); }

}  // namespace

Model::Answer Model::session(const Call& call, const std::string& path) {
  const std::size_t slash = path.find('/');
  const std::string verb = path.substr(0, slash);
  const std::string rest = slash == std::string::npos ? std::string{} : path.substr(slash + 1);
  if (verb == "create") return session_create(call);
  if (verb == "destroy") return session_destroy(call, rest);
  if (verb == "renew") return session_renew(call, rest);
  if (verb == "info") return session_info(call, rest);
  return session_list(call);
}

// Takes the index before it looks up node and checks, as Consul does when it applies the raft
// entry: a refusal there has cost an entry.
http::Response Model::session_create(const Call& call) {
  SessionRecord session;
  session.node = options_.node;
  session.lock_delay = 15s;
  std::optional<std::vector<std::string>> checks;
  if (!call.request.body.empty()) {
    const json body = json::parse(call.request.body, nullptr, false);
    if (!body.is_object() && !body.is_null()) return decode_fault("expected a JSON object");
    for (const auto& [name, value] : body.items()) {
      const auto read = read_field(name, value, session, checks);
      if (!read) return decode_fault(read.error().message);
    }
  }
  session.node_checks = checks ? std::move(*checks) : std::vector<std::string>{"serfHealth"};
  if (session.behavior.empty()) session.behavior = "release";
  if (session.behavior != "release" && session.behavior != "delete") {
    return answer(500, "Invalid Behavior setting '" + session.behavior + "'");
  }
  if (std::string fault = ttl_fault(session); !fault.empty()) return answer(500, std::move(fault));
  if (session.node.empty()) return answer(500, "Must provide Node");
  state_.next_index();
  if (session.node != options_.node) return answer(500, "Missing node registration");
  for (const std::string& check : session.node_checks) {
    if (check != "serfHealth") return answer(500, "Missing check '" + check + "' registration");
  }
  session.id = uuid(random_);
  start_timer(call.now, session);
  const std::string id = session.id;
  state_.add_session(std::move(session));
  return answer(200, "{\"ID\":\"" + id + "\"}");
}

// Takes no raft entry: the timers are in the memory of Consul's leader (consul.md 1.2).
http::Response Model::session_renew(const Call& call, const std::string& id) {
  if (id.empty()) return missing_session();
  if (id.size() != 36) return answer(500, session_fault(id));
  const auto it = state_.sessions().find(id);
  if (it == state_.sessions().end()) return answer(404, "Session id '" + id + "' not found");
  start_timer(call.now, it->second);
  return answer(200, '[' + session_text(it->second) + ']');
}

http::Response Model::session_destroy(const Call& call, const std::string& id) {
  if (id.empty()) return missing_session();
  if (id.size() != 36) return answer(500, session_fault(id));
  if (state_.sessions().contains(id)) {
    end_session(call.now, id);
  } else {
    state_.next_index();
  }
  return answer(200, "true");
}

Model::Answer Model::session_list(const Call& call) const {
  if (blocks(call, state_.session_index())) return std::nullopt;
  std::string body = "[";
  for (const auto& [id, session] : state_.sessions()) {
    if (body.size() > 1) body += ',';
    body += session_text(session);
  }
  return read_answer(200, state_.session_index(), body + ']');
}

Model::Answer Model::session_info(const Call& call, const std::string& id) const {
  if (id.empty()) return missing_session();
  if (id.size() != 36) {
    // The only error that has the headers of a read.
    http::Response fault = read_answer(500, 1, session_fault(id));
    fault.known_leader = false;
    return fault;
  }
  const auto it = state_.sessions().find(id);
  if (blocks(call, state_.session_index())) return std::nullopt;
  const std::string body = it == state_.sessions().end() ? "" : session_text(it->second);
  return read_answer(200, state_.session_index(), '[' + body + ']');
}

}  // namespace lictor::dev
