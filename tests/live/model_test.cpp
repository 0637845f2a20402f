// The model of Consul (src/dev) compared with a real agent: the same random scripts for both, and
// every status, body and relation between indexes.

#include "dev/model.h"

#include <array>
#include <cstdlib>
#include <future>
#include <optional>
#include <regex>

#include <doctest/doctest.h>

#include "base/base64.h"
#include "base/random.h"
#include "consul_agent.h"
#include "net/transport.h"
#include "same_answers.h"
#include "support.h"

namespace lictor::live {
namespace {

constexpr std::size_t kSteps = 15;  // of a script

// A request in the names of both servers.
struct Step {
  http::Request real;
  http::Request model;
};

class Script {
 public:
  Script(std::uint64_t seed, net::Transport& agent, std::string node)
      : random_(seed), agent_(agent), node_(std::move(node)), model_({seed, "dev-node"}) {
    model_.limit_operations(operations_of_a_transaction());
    root_ = "m" + std::to_string(seed) + "/";
  }
  // Whether both said the same all the time; otherwise transcript() has the whole story.
  bool run() {
    // The tables' own indexes, which a missing key answers with, are then this script's.
    bool same = perform(plain("PUT", "/v1/kv/" + root_ + "begin", "x")) && create_session("0s");
    for (std::size_t i = 0; same && i < kSteps; ++i) same = step();
    clean_up();
    return same;
  }
  [[nodiscard]] const std::string& transcript() const { return transcript_; }

 private:
  std::size_t draw(std::size_t below) { return random_.next() % below; }
  template <class... Texts>
  std::string one_of(Texts... texts) {
    const std::array<std::string, sizeof...(texts)> all{texts...};
    return all[draw(all.size())];
  }
  std::string key() {
    return root_ + one_of("a", "b", "ab", "d/", "d/a", "d/e/f", "x y", "\xc3\xa9");
  }
  std::string prefix() { return root_ + one_of("", "a", "b", "d/", "d/e", "none/"); }
  std::string value() { return one_of("", "1", "2", "<&>"); }

  static std::string path(const std::string& key) {
    return "/v1/kv/" + replaced(replaced(key, " ", "%20"), "\xc3\xa9", "%C3%A9");
  }

  static Step plain(std::string method, std::string target, std::string body = {}) {
    const http::Request request = request_of(std::move(method), std::move(target), std::move(body));
    return {request, request};
  }
  // An index that has been seen, or none, or one beyond all, as {the agent's, the model's}.
  std::pair<std::string, std::string> index() {
    if (names_.indexes.empty() || draw(4) == 0) {
      const std::string text = one_of("0", "900000000000");
      return {text, text};
    }
    auto it = names_.indexes.begin();
    std::advance(it, draw(names_.indexes.size()));
    if (draw(2) == 0) it = std::prev(names_.indexes.end());
    return {std::to_string(it->first), std::to_string(it->second)};
  }
  std::pair<std::string, std::string> session() {
    if (names_.sessions.empty() || draw(8) == 0) {
      const std::string text = one_of("", "short", "00000000-0000-0000-0000-000000000000");
      return {text, text};
    }
    auto it = names_.sessions.begin();
    std::advance(it, draw(names_.sessions.size()));
    return *it;
  }
  // `text` with {i} and {s} replaced by an index and a session, in both servers' names.
  Step named(std::string method, const std::string& target, const std::string& body = {}) {
    Step step = plain(std::move(method), target, body);
    const auto put_in = [&](const std::string& what, auto draw_one) {
      for (std::string http::Request::*text : {&http::Request::target, &http::Request::body}) {
        for (std::size_t at; (at = (step.real.*text).find(what)) != std::string::npos;) {
          const auto [real, model] = draw_one();
          (step.real.*text).replace(at, what.size(), real);
          (step.model.*text).replace((step.model.*text).find(what), what.size(), model);
        }
      }
    };
    put_in("{i}", [&] { return index(); });
    put_in("{s}", [&] { return session(); });
    return step;
  }

  bool step() {
    const std::size_t drawn = draw(12);
    if (drawn < 2) return perform(write());
    if (drawn < 4) return perform(lock());
    if (drawn < 5) return perform(read());
    if (drawn < 8) return perform(txn());
    if (drawn < 9) return create_session(one_of("0s", "20s"));
    if (drawn < 10) return perform(session_step());
    return drawn < 11 ? blocking_read() : watched_write();
  }

  Step write() {
    const std::size_t drawn = draw(6);
    if (drawn < 1) return named("PUT", path(key()) + one_of("", "?flags=7", "?flags=x"), value());
    if (drawn < 3) return named("PUT", path(key()) + "?cas={i}" + one_of("", "&flags=7"), value());
    if (drawn < 4) return named("DELETE", path(key()) + "?cas={i}");
    if (drawn < 5) return named("DELETE", path(key()));
    return named("DELETE", path(prefix()) + one_of("?recurse", "?recurse=x", "?recurse&cas=1"));
  }

  Step lock() {
    return named("PUT",
                 path(key()) + one_of("?acquire={s}", "?acquire={s}", "?release={s}",
                                      "?acquire={s}&flags=3", "?acquire={s}&cas={i}"),
                 value());
  }

  Step read() {
    const std::size_t drawn = draw(4);
    if (drawn == 0) {
      return named("GET", path(key()) + one_of("", "?raw", "?consistent", "?stale"));
    }
    if (drawn < 3) {
      return named("GET", path(prefix()) + (drawn == 1 ? "?recurse"
                                                       : one_of("?keys", "?keys&separator=/",
                                                                "?keys&separator=a")));
    }
    return named(one_of("GET", "PUT", "POST"),
                 one_of("/v1/kv/", "/v1/kv/%09", "/v1/txn", "/v1/session/info/",
                        "/v1/kv/x?index=1&wait=5", "/v1/kv/x?index=-1"));
  }

  std::string operation() {
    const std::string verb =
        one_of("set", "set", "cas", "cas", "get", "get-tree", "delete", "delete-cas", "delete-tree",
               "lock", "lock", "unlock", "check-index", "check-session", "check-session",
               "check-not-exists");
    const bool tree = verb.ends_with("-tree");
    // A delete-tree of the empty key would take all there is.
    const std::string name = tree ? prefix() : draw(30) == 0 ? "" : key();
    json kv{{"Verb", verb}, {"Key", name}};
    std::string text = kv.dump();
    text.pop_back();
    if (draw(20) == 0) text += R"(,"Foo":1)";
    if (verb.ends_with("cas") || verb == "check-index") text += R"(,"Index":{i})";
    if (verb.ends_with("lock") || verb == "check-session") text += R"(,"Session":"{s}")";
    if (draw(4) == 0) text += R"(,"flags":5)";
    if (draw(2) == 0) text += R"(,"Value":")" + base64_encode(value()) + '"';
    return "{\"KV\":" + text + "}}";
  }

  Step txn() {
    std::string body;
    for (std::size_t n = draw(6) + 1; n > 0; --n) body += (body.empty() ? "" : ",") + operation();
    if (draw(40) == 0) {
      const std::string op = operation();
      for (std::size_t i = 0; i < operations_of_a_transaction(); ++i) body += ',' + op;
    }
    return named("PUT", one_of("/v1/txn", "/v1/txn", "/v1/txn?consistent"), '[' + body + ']');
  }

  bool create_session(const std::string& lock_delay) {
    const std::string delay = one_of("\"" + lock_delay + "\"", "\"" + lock_delay + "\"", "0", "20");
    const std::string body = R"({"Name":"s)" + std::to_string(names_.sessions.size()) +
                             R"(","LockDelay":)" + delay + R"(,"Behavior":")" +
                             one_of("release", "release", "delete", "") + R"(","TTL":")" +
                             one_of("", "3600s", "24h") + '"' +
                             one_of("", R"(,"Checks":[])", R"(,"NodeChecks":["serfHealth"])") + '}';
    return perform(plain("PUT", "/v1/session/create", body));
  }

  Step session_step() {
    const std::size_t drawn = draw(5);
    if (drawn == 0) return named("PUT", "/v1/session/renew/{s}");
    if (drawn == 1) return named("PUT", "/v1/session/destroy/{s}");
    if (drawn == 2) return named("GET", "/v1/session/info/{s}");
    if (drawn == 3) return named("GET", "/v1/session/list");
    return plain(
        "PUT", "/v1/session/create",
        one_of(R"({"TTL":"9.999s"})", R"({"TTL":"10"})", R"({"TTL":10})", R"({"TTL":"abc"})",
               R"({"LockDelay":"5"})", R"({"Behavior":"x"})", R"({"Node":"nosuch"})",
               R"({"Checks":["nosuch"]})", "[]", R"({"TTL":"-10s"})", R"({"TTL":"86401s"})"));
  }

  std::string watched() {
    return one_of(path(key()) + "?index={i}", path(prefix()) + "?recurse&index={i}",
                  path(prefix()) + "?keys&index={i}", std::string{"/v1/session/list?index={i}"});
  }
  // Where the model would wait, the agent may not answer before the wait is over; where it would
  // not wait, the agent must answer long before.
  bool blocking_read() {
    Step step = named("GET", watched());
    const bool waits = !model_.handle(now_, step.model);
    for (http::Request* request : {&step.real, &step.model}) {
      request->target += waits ? "&wait=10ms" : "&wait=9m";
      request->long_poll = true;
    }
    const std::int64_t begin = monotonic_ns();
    if (!perform(step)) return false;
    if (!waits || seconds_between(begin, monotonic_ns()) >= 0.01) return true;
    return differs("the model waits, the agent did not");
  }
  // A query that waits while something is written.
  bool watched_write() {
    // For a missing key the model wakes more often than Consul does.
    const std::string target = path(root_ + "w/" + one_of("?recurse", "?keys", "k"));
    const std::string plain_target = replaced(target, "/w/k", "/w/k?");
    if (!perform(plain("PUT", path(root_ + "w/k"), std::to_string(draw(3))))) return false;
    if (!perform(plain("GET", target))) return false;
    Step query = plain("GET", plain_target);
    query.real.target += "&wait=9m&index=" + std::to_string(last_real_);
    query.model.target += "&wait=9m&index=" + std::to_string(last_model_);
    query.real.long_poll = true;
    std::promise<http::Response> answered;
    agent_.send(query.real,
                [&](http::Response response) { answered.set_value(std::move(response)); });
    auto answer = answered.get_future();
    // A delete-tree after a write in one transaction does not wake watchers below: Consul's own
    // error, which the model does not have.
    Step other;
    do {
      other = draw(2) == 0 ? write() : txn();
    } while (contains(other.real.body, "delete-tree"));
    const bool same =
        perform(other) && perform(named(one_of("PUT", "DELETE"), path(root_ + "w/k"), "1"));
    std::optional<http::Response> expected = model_.handle(now_, query.model);
    if (!expected) {
      // Nothing has changed for it; now something does.
      static_cast<void>(perform(plain("PUT", path(root_ + "w/k"), "wake up")));
      expected = model_.handle(now_, query.model);
    }
    const bool woke = answer.wait_for(patience()) == std::future_status::ready;
    if (!woke) {
      static_cast<void>(perform(plain("PUT", path(root_ + "w/k"), "give up")));
      answer.wait();
      return differs("the agent was not woken: " + query.real.target);
    }
    // Either write may have woken it, so only facts that don't depend on that are compared.
    return same && (answer.get().status != 500 || differs("the watch failed"));
  }

  bool differs(const std::string& what) {
    transcript_ += what + '\n';
    return false;
  }

  static std::string shown(const http::Response& response) {
    return std::to_string(response.status) + " [" + std::to_string(response.consul_index) + "] " +
           response.body;
  }

  bool perform(const Step& step) {
    transcript_ += step.real.method + ' ' + step.real.target + ' ' + step.real.body + '\n';
    http::Response real = agent_.perform(step.real);
    if (real.delivery != http::Delivery::kReplied) return differs("no answer: " + real.error);
    auto model = model_.handle(now_, step.model, true);
    transcript_ += "    agent: " + shown(real) + "\n    model: " + shown(*model) + '\n';
    last_real_ = real.consul_index;
    last_model_ = model->consul_index;
    take_out_known(step.real.target, real, *model);
    return same(step, real, *model);
  }

  bool same(const Step& step, const http::Response& real, const http::Response& model) {
    if (real.status != model.status) return false;
    if (!names_.same_index(real.consul_index, model.consul_index)) return false;
    if (real.known_leader != model.known_leader) return false;
    if (real.status == 400) return true;  // its reason is for a person
    if (names_a_duration(real.body)) return true;
    json a = json::parse(renamed(real.body), nullptr, false);
    json b = json::parse(model.body, nullptr, false);
    if (a.is_discarded() || b.is_discarded() || contains(step.real.target, "?raw")) {
      static const std::regex kCas{"cas=[0-9]+"};  // drawn in the names of each
      return same_text(names_, std::regex_replace(renamed(real.body), kCas, "cas"),
                       std::regex_replace(model.body, kCas, "cas"));
    }
    if (step.real.target.starts_with("/v1/session/create")) {
      names_.sessions.emplace(a.value("ID", ""), b.value("ID", ""));
      return true;
    }
    if (step.real.target.starts_with("/v1/session/list")) {
      // In the order of the ids, which are chance.
      for (json* list : {&a, &b}) {
        std::sort(list->begin(), list->end(),
                  [](const json& x, const json& y) { return x["Name"] < y["Name"]; });
      }
    }
    return same_json(names_, a, b);
  }
  // Its text is that of Go's library.
  static bool names_a_duration(const std::string& fault) {
    return contains(fault, "invalid: time: ") || contains(fault, "Invalid Session TTL '-");
  }

  [[nodiscard]] std::string renamed(std::string text) const {
    for (const auto& [real, model] : names_.sessions) text = replaced(text, real, model);
    return replaced(std::move(text), node_, "dev-node");
  }

  void clean_up() {
    for (const auto& [real, model] : names_.sessions) {
      static_cast<void>(agent_.perform(plain("PUT", "/v1/session/destroy/" + real).real));
    }
    static_cast<void>(agent_.perform(plain("DELETE", "/v1/kv/" + root_ + "?recurse").real));
  }

  Random random_;
  net::Transport& agent_;
  const std::string node_;
  dev::Model model_;
  const Instant now_{std::chrono::hours{1}};
  std::string root_;
  Names names_;
  std::uint64_t last_real_ = 0;
  std::uint64_t last_model_ = 0;
  std::string transcript_;
};

TEST_CASE("the model answers random scripts as a Consul does") {
  const ConsulAgent consul;
  const auto agent = transport_to(consul);

  const std::uint64_t first = from_environment("LICTOR_SEED", 1);
  const std::uint64_t count = from_environment("LICTOR_SEEDS", 1000);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);  // LICTOR_SEED=<seed> LICTOR_SEEDS=1 replays it.
    Script script{seed, *agent, consul.node()};
    const bool same = script.run();
    if (!same) FAIL_CHECK("they differ at the end of:\n" << script.transcript());
    REQUIRE(same);
  }
  const std::string differences = differences_seen();
  if (!differences.empty()) MESSAGE("not as 1.8.7, as is known:\n" << differences);
}

}  // namespace
}  // namespace lictor::live
