#include "dev/store_server.h"

#include <unistd.h>

#include <algorithm>
#include <list>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "dev/answer.h"
#include "httpd/server.h"

namespace lictor::dev {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::size_t kMaxConnections = 200;  // Consul's http_max_conns_per_client
constexpr auto kPatience = 60s;
constexpr std::size_t kMaxHeadBytes = 32 * 1024;
constexpr std::size_t kMaxBodyBytes = 8 * 1024 * 1024;
constexpr auto kLookAtClients = 1s;  // how often waiting queries whose client has gone are dropped

// The model over HTTP. All of it runs on one worker, so nothing is locked.
//
//   request --> Model::handle() --answer--> sent
//                    |                        ^ a write changed the index, its wait is over, or its
//                    +--must wait--> waiting_-+ client has gone
//
// The model has no clock, so one timer of the server lets time pass in it.
class Store {
 public:
  Store(Model& model, OnChange on_change) : model_(model), on_change_(std::move(on_change)) {}

  void take(const httpd::ExchangePtr& exchange) {
    const httpd::Request& from = exchange->request();
    Query query{exchange, {}, boot_now()};
    query.request.method = from.method;
    query.request.target = from.target;
    query.request.body = from.body;
    if (const auto wait = blocking_wait(query.request)) {
      // Consul adds up to a sixteenth (consul.md 4.1).
      const auto more = static_cast<double>(wait->count()) / 16 * random_.fraction();
      query.until += *wait + Duration{static_cast<Duration::rep>(more)};
    }
    const std::uint64_t before = model_.index();
    if (!answers(query)) waiting_.push_back(std::move(query));
    if (model_.index() != before) answer_waiting();
    set_timer(exchange);
  }

 private:
  struct Query {
    httpd::ExchangePtr exchange;
    http::Request request;
    Instant until;  // of a blocking query
  };

  bool answers(Query& query) {
    const Instant now = boot_now();
    auto answered = model_.handle(now, query.request, now >= query.until || query.exchange->gone());
    if (!answered) return false;
    auto headers = headers_of(query.request, *answered);  // by the body, too
    query.exchange->answer({answered->status, "", std::move(answered->body), std::move(headers)});
    return true;
  }

  // Answers the queries that a write, a deadline or their client's end makes ready.
  void answer_waiting() {
    std::uint64_t before = 0;
    do {  // Time may pass in the model while it answers.
      before = model_.index();
      if (on_change_ && before != shown_) on_change_(model_.state());
      shown_ = before;
      waiting_.remove_if([this](Query& query) { return answers(query); });
    } while (model_.index() != before);
  }

  // Any exchange will do: the timer is the server's.
  void set_timer(const httpd::ExchangePtr& exchange) {
    const Instant now = boot_now();
    Instant next = model_.next_deadline();
    for (const Query& query : waiting_) next = std::min({next, query.until, now + kLookAtClients});
    if (next >= timer_) return;
    timer_ = next;
    const auto delay = std::chrono::ceil<milliseconds>(std::max(Duration{}, next - now));
    exchange->later(delay, [this, exchange, next] {
      if (timer_ != next) return;  // an earlier one was set
      timer_ = Instant::max();
      model_.advance(boot_now());
      answer_waiting();
      set_timer(exchange);
    });
  }

  Model& model_;
  const OnChange on_change_;
  Random random_{random_seed()};
  std::list<Query> waiting_;
  std::uint64_t shown_ = 0;
  Instant timer_ = Instant::max();
};

}  // namespace

Result<std::unique_ptr<httpd::Server>> serve_store(std::vector<httpd::Listener> listeners,
                                                   Model& model, OnChange on_change) {
  httpd::Options options;
  options.handle = [store = std::make_shared<Store>(model, std::move(on_change))](
                       const httpd::ExchangePtr& exchange) { store->take(exchange); };
  options.max_workers = 1;
  options.max_connections = kMaxConnections;
  options.answers_when_full = false;  // as Consul does (consul.md 8)
  options.keeps_alive = true;
  options.max_head_bytes = kMaxHeadBytes;
  options.max_body_bytes = kMaxBodyBytes;
  options.idle_time = options.read_time = options.answer_time = kPatience;
  return httpd::Server::start(std::move(listeners), std::move(options));
}

}  // namespace lictor::dev
