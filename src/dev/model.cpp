#include "dev/model.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/assert.h"
#include "base/text.h"
#include "dev/answer.h"

namespace lictor::dev {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDefaultWait = 300s;
constexpr Duration kMaxWait = 600s;
constexpr Duration kTombstoneLife = 15min;

std::optional<http::Response> query_fault(const httpd::Url& url) {
  if (const std::string wait = url.get("wait"); !wait.empty() && !parse_go_duration(wait)) {
    return answer(400, "Invalid wait time");
  }
  if (const std::string index = url.get("index"); !index.empty() && !parse_go_uint(index)) {
    return answer(400, "Invalid index");
  }
  return std::nullopt;
}

http::Response no_endpoint(const std::string& path) {
  if (path == "/") return answer(200, "lictor dev: a model of Consul in memory; nothing is kept\n");
  if (path.starts_with("/v1/acl/")) return answer(401, "ACL support disabled");
  if (!path.starts_with("/v1/")) return answer(404);
  return answer(501, "lictor dev has no " + path +
                         ": it models keys, sessions and transactions in memory; for this, run a "
                         "real agent: consul agent -dev");
}

std::string agent_self(const std::string& node) {
  const nlohmann::json self{{"Config",
                             {{"Datacenter", "dc1"},
                              {"NodeName", node},
                              {"Revision", ""},
                              {"Server", true},
                              {"Version", "1.8.7"}}},
                            {"Meta", {{"lictor-dev", "a model in memory: nothing is kept"}}}};
  return self.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Consul refuses control characters.
bool has_control(std::string_view path) {
  return std::any_of(path.begin(), path.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// Consul redirects such a path to the clean one.
bool is_clean(std::string_view path) {
  for (const char* part : {"//", "/./", "/../"}) {
    if (path.find(part) != std::string_view::npos) return false;
  }
  return !path.ends_with("/.") && !path.ends_with("/..");
}

}  // namespace

Model::Model(ModelOptions options) : options_(std::move(options)), random_(options_.seed) {}

// Time passes first, so that a request never finds a session whose end is over. A waiting query is
// asked again as a whole: the model keeps no state of it.
std::optional<http::Response> Model::handle(Instant now, const http::Request& request,
                                            bool wait_over) {
  advance(now);
  const auto url = httpd::parse_url(request.target);
  if (!url || has_control(url->path)) return answer(400);
  if (!is_clean(url->path)) {
    return answer(400, "path: lictor dev takes no \"//\", \"/./\" or \"/../\"; encode a / as %2F");
  }
  Answer answered = route(Call{request, *url, wait_over, now});
  schedule_reaping(now);
  if (answered && answered->status == 200 && url->has("pretty") && !url->has("raw")) {
    const auto body = nlohmann::ordered_json::parse(answered->body, nullptr, false);
    if (!body.is_discarded()) answered->body = body.dump(4) + "\n";
  }
  return answered;
}

// Checks in Consul's own order: endpoint, method, parameters, then the handler.
Model::Answer Model::route(const Call& call) {
  const std::string& path = call.url.path;
  const std::string& method = call.request.method;
  const auto under = [&](std::string_view prefix) { return path.starts_with(prefix); };
  const std::string_view allowed = allowed_methods(path);
  if (allowed.empty()) return no_endpoint(path);
  if ((',' + std::string{allowed} + ',').find(',' + method + ',') == std::string::npos) {
    return answer(405, "method " + method + " not allowed");
  }
  // Consul checks these parameters of writes to keys, too.
  if (method == "GET" || under("/v1/kv/")) {
    if (auto fault = query_fault(call.url)) return fault;
  }
  if (path == "/v1/agent/self") return answer(200, agent_self(options_.node));
  if (path == "/v1/status/leader") return answer(200, "\"127.0.0.1:8300\"");
  if (under("/v1/agent/")) return answer(200);  // a service or its check
  if (under("/v1/kv/")) return kv(call, path.substr(7));
  if (under("/v1/session/")) return session(call, path.substr(12));
  return txn(call);
}

// As in Consul, an index not above the client's is nothing new. 0, or none, never blocks.
bool Model::blocks(const Call& call, std::uint64_t index) {
  if (call.wait_over) return false;
  const auto least = parse_go_uint(call.url.get("index"));
  return least && *least != 0 && index <= *least;
}

std::optional<Duration> blocking_wait(const http::Request& request) {
  if (request.method != "GET") return std::nullopt;
  const auto url = httpd::parse_url(request.target);
  if (!url) return std::nullopt;
  const auto index = parse_go_uint(url->get("index"));
  if (!index || *index == 0) return std::nullopt;
  const auto wait = parse_go_duration(url->get("wait"));
  return wait && *wait > Duration{} ? std::min<Duration>(*wait, kMaxWait) : kDefaultWait;
}

void Model::advance(Instant now) {
  while (!expiries_.empty()) {
    // Ordered by time, then by id, so that the same calls give the same results.
    const auto first = std::min_element(expiries_.begin(), expiries_.end(),
                                        [](auto& a, auto& b) { return a.second < b.second; });
    if (first->second > now) break;
    end_session(first->second, std::string{first->first});
  }
  std::erase_if(lock_delays_, [&](const auto& delay) { return delay.second <= now; });
  while (!reapings_.empty() && reapings_.begin()->first <= now) {
    state_.reap(reapings_.begin()->second);
    reapings_.erase(reapings_.begin());
  }
}

Instant Model::next_deadline() const {
  Instant next = Instant::max();
  if (!reapings_.empty()) next = std::min(next, reapings_.begin()->first);
  for (const auto& [id, at] : expiries_) next = std::min(next, at);
  for (const auto& [key, at] : lock_delays_) next = std::min(next, at);
  return next;
}

void Model::fail_over(Instant now) {
  advance(now);
  for (const auto& [id, session] : state_.sessions()) start_timer(now, session);
}

void Model::restore(Instant now, const State& snapshot) {
  advance(now);
  forget_lock_delays();
  state_.restore(snapshot);
  expiries_.clear();
  fail_over(now);
}

void Model::invalidate_session(Instant now, const std::string& id) {
  advance(now);
  if (state_.sessions().contains(id)) end_session(now, id);
}

// Drawn at each renewal, so that a simulation meets the whole range that Consul allows.
void Model::start_timer(Instant now, const SessionRecord& session) {
  if (session.ttl == Duration{}) return;
  const auto more = static_cast<double>(session.ttl.count()) * random_.fraction();
  expiries_[session.id] = now + session.ttl + Duration{static_cast<Duration::rep>(more)};
}

// `now` is when the session ended, perhaps before the call: the lock-delay counts from there.
void Model::end_session(Instant now, const std::string& id) {
  state_.next_index();
  const auto it = state_.sessions().find(id);
  LICTOR_ASSERT(it != state_.sessions().end());
  const Duration delay = std::min<Duration>(it->second.lock_delay, 60s);
  for (const std::string& key : state_.remove_session(id)) {
    if (delay > Duration{}) lock_delays_[key] = now + delay;
  }
  expiries_.erase(id);
  schedule_reaping(now);
}

// Adds one entry for all deletions of a call: reaping is by index, so the last covers the others.
void Model::schedule_reaping(Instant now) {
  if (state_.tombstone_index() <= last_tombstone_) return;
  last_tombstone_ = state_.tombstone_index();
  reapings_[now + kTombstoneLife] = last_tombstone_;
}

bool Model::in_lock_delay(Instant now, const std::string& key) const {
  const auto it = lock_delays_.find(key);
  return it != lock_delays_.end() && now < it->second;
}

std::string Model::session_fault(const std::string& id) const {
  if (id.empty()) return "missing session";
  if (id.size() != 36) return "failed session lookup: index error: UUID must be 36 characters";
  if (!state_.sessions().contains(id)) return "invalid session " + quote(id);
  return {};
}

}  // namespace lictor::dev
