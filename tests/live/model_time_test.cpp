// The model of Consul (src/dev) compared with a real agent where time matters: what wakes a
// blocking query, when a session ends, how long a lock-delay lasts. For the agent time passes; the
// model's clock follows when the agent shows that it has. Only relations are compared.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <future>
#include <list>
#include <optional>
#include <utility>

#include <doctest/doctest.h>

#include "base/random.h"
#include "consul_agent.h"
#include "dev/model.h"
#include "net/transport.h"
#include "same_answers.h"
#include "support.h"

namespace lictor::live {
namespace {

// A blocking query at both servers.
struct Query {
  std::string target;  // without index and wait
  std::uint64_t real_index = 0;
  std::uint64_t model_index = 0;
  std::string wait = "9m";
  http::Request at_model;
  bool key_exists = false;  // of others the model wakes more often than Consul does
  std::future<std::pair<http::Response, std::int64_t>> answer;  // and when it came
  std::int64_t sent_ns = 0;

  [[nodiscard]] std::string blocking(std::uint64_t index) const {
    return target + (contains(target, "?") ? '&' : '?') + "index=" + std::to_string(index) +
           "&wait=" + wait;
  }
};

// The agent and a model get the same requests. {0}, {1} in a request are the sessions made here.
class TimedPair {
 public:
  TimedPair(net::Transport& agent, std::string node, std::uint64_t seed)
      : agent_(agent), node_(std::move(node)), model({seed, "dev-node"}) {}
  // Asks both; a difference fails the test. Returns the agent's answer.
  http::Response ask(const std::string& method, const std::string& target,
                     const std::string& body = {}, bool with_index = true) {
    const auto real = ask_agent(method, target, body);
    const auto said = ask_model(method, target, body);
    last_model_index_ = said.consul_index;
    compare(method + ' ' + target + ' ' + body, real, said, with_index);
    return real;
  }

  http::Response ask_agent(const std::string& method, const std::string& target,
                           const std::string& body = {}) {
    return agent_.perform(request_of(method, named(target, 0), named(body, 0)));
  }
  http::Response ask_model(const std::string& method, const std::string& target,
                           const std::string& body = {}) {
    return *model.handle(now, request_of(method, named(target, 1), named(body, 1)), true);
  }

  void create_session(const std::string& body) {
    const auto real = agent_.perform(request_of("PUT", "/v1/session/create", body));
    const auto said = *model.handle(now, request_of("PUT", "/v1/session/create", body));
    REQUIRE(real.status == 200);
    REQUIRE(said.status == 200);
    sessions_.push_back({json::parse(real.body)["ID"], json::parse(said.body)["ID"]});
    names_.sessions.insert({sessions_.back()[0], sessions_.back()[1]});
  }
  // Reads `target`, for the index to wait from.
  Query prepare(const std::string& target) {
    Query query;
    query.target = target;
    // A missing key answers with its table's index, which moves with other tests' writes.
    const http::Response real = ask("GET", target, {}, false);
    query.key_exists = real.status == 200 && target.starts_with("/v1/kv/");
    query.real_index = real.consul_index;
    query.model_index = last_model_index_;
    return query;
  }

  void begin(Query& query) {
    query.at_model = request_of("GET", named(query.blocking(query.model_index), 1));
    CHECK_FALSE(model.handle(now, query.at_model));
    http::Request real = request_of("GET", named(query.blocking(query.real_index), 0));
    real.long_poll = true;
    real.timeout = std::chrono::minutes{10};
    auto promise = std::make_shared<std::promise<std::pair<http::Response, std::int64_t>>>();
    query.answer = promise->get_future();
    query.sent_ns = monotonic_ns();
    agent_.send(std::move(real), [promise](http::Response response) {
      promise->set_value({std::move(response), monotonic_ns()});
    });
  }
  // The model has woken; so must the agent.
  void expect_woken(Query& query) {
    const http::Response said = model.handle(now, query.at_model).value();
    REQUIRE(query.answer.wait_for(patience()) == std::future_status::ready);
    // A deleted key answers with its table's index, which other writes have moved meanwhile.
    const bool is_there = said.status == 200 && query.target.starts_with("/v1/kv/");
    compare("woken: " + query.target, query.answer.get().first, said, is_there);
  }

  void compare(const std::string& asked, http::Response real, http::Response said,
               bool with_index) {
    // "PUT /v1/txn [...]", "woken: /v1/kv/a"
    const std::string target = asked.substr(std::min(asked.find('/'), asked.size()));
    take_out_known(target.substr(0, target.find(' ')), real, said);
    const auto shown = [](const http::Response& response) {
      return std::to_string(response.status) + " [" + std::to_string(response.consul_index) + "] " +
             response.body + response.error;
    };
    INFO(asked << "\n  agent: " << shown(real) << "\n  model: " << shown(said));
    CHECK(real.status == said.status);
    CHECK(real.known_leader == said.known_leader);
    if (with_index) CHECK(names_.same_index(real.consul_index, said.consul_index));
    std::string text = replaced(real.body, node_, "dev-node");
    for (const auto& [at_agent, at_model] : names_.sessions) {
      text = replaced(text, at_agent, at_model);
    }
    const json a = json::parse(text, nullptr, false);
    const json b = json::parse(said.body, nullptr, false);
    CHECK((a.is_discarded() || b.is_discarded() ? same_text(names_, text, said.body)
                                                : same_json(names_, a, b)));
  }

  [[nodiscard]] std::string named(std::string text, std::size_t side) const {
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      text = replaced(std::move(text), '{' + std::to_string(i) + '}', sessions_[i].at(side));
    }
    return text;
  }
  [[nodiscard]] bool model_has(std::size_t session) const {
    return model.state().sessions().count(sessions_.at(session)[1]) != 0;
  }

 private:
  net::Transport& agent_;
  std::string node_;
  Names names_;
  std::vector<std::array<std::string, 2>> sessions_;
  std::uint64_t last_model_index_ = 0;

 public:
  dev::Model model;
  Instant now{std::chrono::hours{1}};
};

// A query that arrives after another's write would find that its table has moved. Each that is being
// served is three goroutines of the agent at the least. Waits until their number stays, and is at
// least this.
int settled_goroutines(net::Transport& agent, int least) {
  int seen = 0;
  REQUIRE(eventually([&] {
    const auto self = json::parse(agent.perform(request_of("GET", "/v1/agent/self")).body);
    const int now = std::stoi(self["Stats"]["runtime"]["goroutines"].get<std::string>());
    return now == std::exchange(seen, now) && now >= least;
  }));
  return seen;
}

// A query and the one write that follows it.
struct Watched {
  std::string root;
  std::string target;
  http::Request write;
  std::optional<Query> query;
  bool far_index = false;
  bool wakes = false;
};

Watched draw_watched(Random& random, int number) {
  const auto one_of = [&](const auto&... texts) {
    const std::array<std::string, sizeof...(texts)> all{texts...};
    return all[random.next() % all.size()];
  };
  Watched drawn;
  drawn.root = "w" + std::to_string(1000 + number) + '/';
  const std::string kv = "/v1/kv/" + drawn.root;
  const std::string session = '{' + std::to_string(number) + '}';
  const auto key = [&] {
    return kv + one_of("a", "b", "ab", "d/a", "d/bc", "d/bd", "none", "abc", "d/none", "d/b",
                       "none/a", "n", "nonesuch", "lock");
  };
  const auto prefix = [&] {
    return kv + one_of("", "a", "d/", "d/b", "none/", "gone/", "d/none/", "n", "lock");
  };
  drawn.target = random.next() % 8 == 0   ? "/v1/session/info/" + session
                 : random.next() % 2 == 0 ? key()
                                          : prefix() + one_of("?recurse", "?keys");
  const auto op = [&] {
    return json{{"KV",
                 {{"Verb", one_of("set", "delete", "delete-cas", "get", "check-not-exists")},
                  {"Key", key().substr(7)},
                  {"Value", one_of("MQ==", "NA==")}}}};
  };
  const auto write = [&] {
    const auto which = random.next() % 8;
    if (which < 2) return request_of("PUT", key(), one_of("1", "2"));
    if (which == 2) return request_of("DELETE", key());
    if (which == 3) return request_of("DELETE", prefix() + "?recurse");
    if (which == 4) return request_of("PUT", key() + one_of("?cas=0", "?cas=7"), "3");
    if (which == 5) {
      return request_of("PUT", "/v1/session/" + one_of("destroy/", "renew/") + session);
    }
    if (which == 6) return request_of("PUT", kv + "lock?release=" + session, one_of("", "held"));
    return request_of("PUT", "/v1/txn", json::array({op(), op()}).dump());
  };
  drawn.write = write();
  drawn.far_index = random.next() % 10 == 0;
  return drawn;
}

TEST_CASE("a blocking query wakes on what wakes it at a Consul, and on nothing else") {
  const ConsulAgent consul;
  const auto agent = transport_to(consul);
  TimedPair pair{*agent, consul.node(), 1};
  Random random{from_environment("LICTOR_SEED", 1)};
  constexpr int kQueries = 350;  // less than 200 of them, as many as one client may have, are begun
  std::vector<Watched> all;
  for (int i = 0; i < kQueries; ++i) all.push_back(draw_watched(random, i));

  for (int i = 0; i < kQueries; ++i) {
    const std::string kv = "/v1/kv/" + all[i].root;
    // The outermost two keep the roots apart in Consul's tree, whatever is deleted between them.
    for (const char* key : {"!", "a", "ab", "b", "d/a", "d/bc", "d/bd", "gone/a", "~"}) {
      pair.ask("PUT", kv + key, "1");
    }
    pair.ask("DELETE", kv + "gone/a");
    pair.create_session(R"({"LockDelay":"0s","TTL":"1h","Behavior":")" +
                        std::string{i % 2 == 0 ? "release" : "delete"} + "\"}");
    pair.ask("PUT", kv + "lock?acquire={" + std::to_string(i) + '}', "held");
  }
  for (Watched& watched : all) {
    watched.query = pair.prepare(watched.target);
    if (watched.far_index) watched.query->real_index = watched.query->model_index = 900'000'000'000;
  }
  // The model's forecast: for a query that does not wake, the test must wait out its end.
  {
    dev::Model foretold = pair.model;
    const auto side = [&](http::Request request) {
      request.target = pair.named(request.target, 1);
      request.body = pair.named(request.body, 1);
      return request;
    };
    std::vector<http::Request> waiting;
    for (Watched& watched : all) {
      const Query& query = *watched.query;
      waiting.push_back(side(request_of("GET", query.blocking(query.model_index))));
      REQUIRE_FALSE(foretold.handle(pair.now, waiting.back()));
    }
    for (Watched& watched : all) REQUIRE(foretold.handle(pair.now, side(watched.write), true));
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].wakes = foretold.handle(pair.now, waiting[i]).has_value();
      if (!all[i].wakes) all[i].query->wait = "6s";
    }
  }
  std::vector<Watched*> begun;
  for (Watched& watched : all) {
    if (watched.query->key_exists || !watched.wakes) begun.push_back(&watched);
  }

  const int before = settled_goroutines(*agent, 1);
  for (Watched* watched : begun) pair.begin(*watched->query);
  settled_goroutines(*agent, before + 3 * static_cast<int>(begun.size()));
  for (Watched& watched : all) {
    pair.ask(watched.write.method, watched.write.target, watched.write.body);
  }
  std::size_t woken = 0;
  for (Watched* each : begun) {
    Watched& watched = *each;
    Query& query = *watched.query;
    CAPTURE(watched.target);
    CAPTURE(watched.far_index);
    CAPTURE(pair.named(watched.write.method + ' ' + watched.write.target + ' ' + watched.write.body,
                       0));
    if (watched.wakes) {
      ++woken;
      pair.expect_woken(query);
      continue;
    }
    REQUIRE(query.answer.wait_for(patience()) == std::future_status::ready);
    const auto [real, at_ns] = query.answer.get();
    CHECK(seconds_between(query.sent_ns, at_ns) >= 6);
    const auto said = pair.model.handle(pair.now, query.at_model, true).value();
    // On a slow machine the wait was over before the write, and the state then is another one.
    if (!watched.far_index) pair.compare("not woken: " + query.target, real, said, true);
  }
  CHECK(woken > 15);
  CHECK(woken + 20 < begun.size());
}

// One story of a session that holds keys ({0}), with a rival ({1}), on a clock of its own.
struct Saga {
  Saga(net::Transport& agent, const std::string& node, int number, const std::string& behavior,
       const std::string& lock_delay, const std::string& ttl)
      : pair(agent, node, static_cast<std::uint64_t>(number)),
        kv("/v1/kv/s" + std::to_string(1000 + number) + '/'),
        key(kv + "lock") {
    for (const char* other : {"!", "~"}) pair.ask("PUT", kv + other, "1");
    begun_ns = monotonic_ns();
    pair.create_session(R"({"Behavior":")" + behavior + R"(","LockDelay":")" + lock_delay +
                        R"(","TTL":")" + ttl + R"("})");
    pair.create_session("{}");
    for (const char* held : {"lock", "lock2"}) pair.ask("PUT", kv + held + "?acquire={0}", "held");
    pair.ask("PUT", key + "?acquire={1}", "taken");
  }

  void watch(const std::string& target) {
    queries.push_back(pair.prepare(target));
    pair.begin(queries.back());
  }
  // The session has ended in the model; so it must at the agent.
  void expect_watches_woken() {
    for (Query& query : queries) pair.expect_woken(query);
    ended_ns = monotonic_ns();
  }
  // Checks what a lock-delay bars and what not. If the machine was so slow that the delay may be
  // over by now, asks nothing.
  void expect_lock_delay(double seconds) {
    if (seconds_between(ended_ns, monotonic_ns()) > seconds / 3) return;
    pair.ask("GET", key, {}, false);
    pair.ask("PUT", key + "?acquire={1}", "taken");
    pair.ask("PUT", "/v1/txn", transaction("lock"));
    pair.ask("PUT", "/v1/txn", transaction("unlock"));
    pair.ask("PUT", key + "?release={1}");
    pair.ask("PUT", key, "a plain write");
    pair.ask("DELETE", key);
    pair.ask("PUT", kv + "free?acquire={1}", "taken");
  }
  // The rival gets it at the agent in the end, and by then at the model.
  void expect_lock_delay_over(double seconds, Duration delay) {
    http::Response real;
    REQUIRE(eventually([&] {
      real = pair.ask_agent("PUT", key + "?acquire={1}", "taken");
      return real.body == "true";
    }));
    CHECK(seconds_between(begun_ns, monotonic_ns()) >= seconds);
    pair.now += delay - 1ns;
    CHECK(pair.ask_model("PUT", key + "?acquire={1}", "taken").body == "false");
    pair.now += 1ns;
    pair.compare("after the lock-delay", real, pair.ask_model("PUT", key + "?acquire={1}", "taken"),
                 false);
    pair.ask("GET", kv + "lock2", {}, false);
    pair.ask("PUT", "/v1/txn", transaction("check-session"));
  }
  [[nodiscard]] std::string transaction(const std::string& verb) const {
    return json::array({{{"KV", {{"Verb", verb}, {"Key", key.substr(7)}, {"Session", "{1}"}}}}})
        .dump();
  }

  TimedPair pair;
  std::string kv;
  std::string key;
  std::list<Query> queries;
  std::int64_t begun_ns = 0;
  std::int64_t ended_ns = 0;
};

TEST_CASE("sessions expire and are renewed, and lock-delays bar, as at a Consul") {
  const ConsulAgent consul;
  const auto agent = transport_to(consul);
  int number = 0;
  const auto tell = [&](const char* behavior, const char* lock_delay, const char* ttl) {
    return std::make_unique<Saga>(*agent, consul.node(), number++, behavior, lock_delay, ttl);
  };
  std::vector<std::unique_ptr<Saga>> expiring;
  std::vector<std::unique_ptr<Saga>> renewed;
  std::vector<std::unique_ptr<Saga>> destroyed;
  constexpr const char* kTargets[] = {"lock",  "lock?raw",  "?recurse",
                                      "?keys", "l?recurse", "session"};
  for (const char* behavior : {"release", "delete"}) {
    for (std::size_t i = 0; i < std::size(kTargets); ++i) {
      expiring.push_back(tell(behavior, "12s", "10s"));
    }
    renewed.push_back(tell(behavior, "15s", "10s"));
    destroyed.push_back(tell(behavior, "8s", ""));
  }
  const int before = settled_goroutines(*agent, 1);
  for (std::size_t i = 0; i < expiring.size(); ++i) {
    Saga& saga = *expiring[i];
    const std::string target = kTargets[i % std::size(kTargets)];
    saga.watch(target == "session" ? "/v1/session/info/{0}" : saga.kv + target);
  }
  settled_goroutines(*agent, before + 3 * static_cast<int>(expiring.size()));

  for (const auto& saga : destroyed) {
    saga->watch(saga->key);
    saga->begun_ns = monotonic_ns();
    saga->pair.ask("PUT", "/v1/session/destroy/{0}");
    saga->expect_watches_woken();
    saga->expect_lock_delay(8);
  }
  // Renewed every 7 s it outlives two TTLs.
  for (int renewal = 1; renewal <= 3; ++renewal) {
    for (const auto& saga : renewed) {
      REQUIRE(eventually(
          [&] { return seconds_between(saga->begun_ns, monotonic_ns()) >= 7.0 * renewal; }));
      // So slow a machine may have lost it, and then there is nothing to compare.
      if (seconds_between(saga->begun_ns, monotonic_ns()) > 7.0 * renewal + 2) continue;
      saga->pair.now += 7s;
      saga->pair.ask("PUT", "/v1/session/renew/{0}", {}, false);
      saga->pair.ask("PUT", saga->key + "?acquire={1}", "taken");
    }
  }

  for (const auto& saga : destroyed) {
    saga->expect_lock_delay_over(8, 8s);
    // Neither a release nor a deletion begins one.
    saga->pair.create_session("{}");
    saga->pair.ask("PUT", saga->key + "?release={1}", "free");
    saga->pair.ask("PUT", saga->key + "?acquire={2}", "taken");
    saga->pair.ask("DELETE", saga->key);
    saga->pair.ask("PUT", saga->key + "?acquire={1}", "taken");
    saga->pair.ask("PUT", "/v1/txn", saga->transaction("unlock"));
    saga->pair.ask("PUT", saga->key + "?acquire={2}", "taken");
  }

  for (const auto& saga : expiring) {
    const Instant begun = saga->pair.now;
    while (saga->pair.model_has(0)) {
      saga->pair.now = saga->pair.model.next_deadline();
      saga->pair.model.advance(saga->pair.now);
    }
    CHECK(saga->pair.now >= begun + 10s);
    saga->expect_watches_woken();
    CHECK(seconds_between(saga->begun_ns, saga->ended_ns) >= 10);
    saga->pair.ask("PUT", "/v1/session/renew/{0}");
    saga->pair.ask("GET", "/v1/session/info/{0}", {}, false);
    saga->pair.ask("PUT", saga->kv + "free?acquire={0}", "taken");
    saga->expect_lock_delay(12);
  }
  for (const auto& saga : expiring) saga->expect_lock_delay_over(10 + 12, 12s);
  for (const auto& saga : renewed) saga->pair.ask("PUT", "/v1/session/destroy/{0}");
}

}  // namespace
}  // namespace lictor::live
