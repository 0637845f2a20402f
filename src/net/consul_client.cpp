#include "net/consul_client.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "base/try.h"
#include "net/tls_files.h"

namespace lictor::net {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kSocketsAtOnce = 32;

// Consul's words for "this agent has no leader to ask" (its agent/structs/errors.go), and for a
// limit of this agent. Another address may do better.
bool should_ask_elsewhere(const Response& response) {
  if (http::over_limit(response)) return true;
  if (response.status < 500) return false;
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"No cluster leader", "No known Consul servers",
                                              "node is not the leader", "leadership lost",
                                              "rpc error"},
      [&](std::string_view words) { return response.body.find(words) != std::string::npos; });
}

}  // namespace

Result<std::unique_ptr<ConsulClient>> ConsulClient::open(Options options, Tuning tuning) {
  if (options.addresses.empty() || options.addresses.size() > Failover::kMaxAddresses) {
    return fail(ErrorCode::kInvalid,
                fmt::format("Consul addresses: expected 1 to {}, got {}; correct addresses or "
                            "CONSUL_HTTP_ADDR",
                            Failover::kMaxAddresses, options.addresses.size()));
  }
  if (options.connect_timeout <= milliseconds{0}) {
    return fail(ErrorCode::kInvalid,
                fmt::format("Consul connect_timeout: expected more than 0ms, got {}ms; 1s is the "
                            "default",
                            options.connect_timeout.count()));
  }
  for (const auto& [name, value, remedy] :
       {std::tuple{"namespace", &options.consul_namespace, "namespace or CONSUL_NAMESPACE"},
        std::tuple{"partition", &options.consul_partition, "partition or CONSUL_PARTITION"}}) {
    if (std::ranges::all_of(*value, [](char c) { return c > 0x20 && c < 0x7f; })) continue;
    return fail(ErrorCode::kInvalid,
                fmt::format("Consul {} \"{}\": expected printable ASCII without spaces; correct {}",
                            name, excerpt(*value), remedy));
  }
  Client client;
  for (const std::string& address : options.addresses) {
    LICTOR_TRY(auto endpoint, parse_endpoint(address, options.tls_server_name));
    client.endpoints.push_back(std::move(endpoint));
  }
  if (auto checked = check_tls_files(options); !checked) {
    return tl::unexpected{std::move(checked.error())};
  }
  if (!options.consul_partition.empty()) {
    client.partition = "partition=" + percent_encoded(options.consul_partition, "-._~");
  }
  client.options = std::move(options);

  std::unique_ptr<ConsulClient> consul_client{
      new ConsulClient(std::move(client), std::move(tuning))};
  if (Result<void> started = consul_client->start(); !started) {
    return tl::unexpected{std::move(started.error())};
  }
  return consul_client;
}

ConsulClient::ConsulClient(Client client, Tuning tuning)
    : client_(std::move(client)),
      tuning_(std::move(tuning)),
      turns_(tuning_.max_polls, tuning_.expected_polls),
      backoff_(tuning_.backoff ? tuning_.backoff
                               : std::make_shared<RateBackoff>(Random{random_seed()})),
      failover_(client_.endpoints.size(), tuning_.avoid_for) {}

Result<void> ConsulClient::start() {
  const Options& options = client_.options;
  if (auto opened = token_.open(options.token, options.token_file, tuning_.check_token_file_every,
                                tuning_.on_token_change);
      !opened) {
    return opened;
  }
  // ca_file wins over ca_path, as with the consul command.
  const std::string ca_path = options.ca_file.empty() ? options.ca_path : std::string{};
  if (auto opened = ca_bundle_.open({}, ca_path, tuning_.check_ca_path_every); !opened) {
    return opened;
  }
  multi_ = new_curl_multi();
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!multi_ || !epoll_ || !wake_.open()) {
    return fail(ErrorCode::kFailed,
                "HTTP client: expected libcurl to start, it did not; check the limits of memory "
                "and open files");
  }
  const auto set = [this](CURLMoption option, auto value) {
    LICTOR_ASSERT(curl_multi_setopt(multi_.get(), option, value) == CURLM_OK);
  };
  set(CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  set(CURLMOPT_SOCKETFUNCTION, &ConsulClient::on_socket);
  set(CURLMOPT_SOCKETDATA, this);
  set(CURLMOPT_TIMERFUNCTION, &ConsulClient::on_timer);
  set(CURLMOPT_TIMERDATA, this);
  // libcurl counts busy connections too.
  const std::size_t places =
      tuning_.max_short_requests + tuning_.max_urgent_requests + tuning_.max_polls;
  set(CURLMOPT_MAXCONNECTS, static_cast<long>(places));
  watch(wake_.fd(), EPOLLIN);
  return {};
}

ConsulClient::~ConsulClient() {
  cancel_all();
  multi_.reset();  // closes its connections, which calls on_socket()
}

RequestId ConsulClient::send(Request request, Callback done) {
  const RequestId id{++last_id_};
  send(id, std::move(request), std::move(done), boot_now());
  return id;
}

void ConsulClient::send(RequestId id, Request request, Callback done, Instant sent_at) {
  LICTOR_ASSERT(done != nullptr);
  auto transfer = std::make_unique<Transfer>(id, std::move(request), std::move(done), sent_at);
  const Instant now = boot_now();
  const Request& asked = transfer->request;
  if (asked.watch) {
    turns_.add(now, id, *asked.watch);
    live_.emplace(id, std::move(transfer));
    start_polls(now);
  } else if (asked.long_poll) {
    attempt(now, std::move(transfer));
  } else {
    if (asked.urgent) {
      waiting_.push_front(id);
    } else {
      waiting_.push_back(id);
    }
    waiting_expires_ = std::min(waiting_expires_, transfer->deadline);
    live_.emplace(id, std::move(transfer));
    start_waiting(now);
  }
  act_on_time();  // an open connection sends the request now
}

int ConsulClient::on_socket(CURL*, curl_socket_t socket, int what, void* self, void*) {
  const auto& consul_client = *static_cast<ConsulClient*>(self);
  const std::uint32_t events =
      ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0U) | ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0U);
  if (events != 0) {
    consul_client.watch(socket, events);
  } else {  // A closed socket is no longer in the epoll set.
    epoll_ctl(consul_client.epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
  }
  return 0;
}

// The socket may or may not be in the epoll set: closing removes it, and its number is used again.
void ConsulClient::watch(int socket, std::uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.fd = socket;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket, &event) == 0) return;
  LICTOR_ASSERT(errno == ENOENT);
  LICTOR_ASSERT(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) == 0);
}

int ConsulClient::on_timer(CURLM*, long timeout_ms, void* self) {
  auto& consul_client = *static_cast<ConsulClient*>(self);
  if (timeout_ms < 0) {
    consul_client.timer_ = Instant::max();
  } else {
    consul_client.timer_ = timeout_ms == 0 ? Instant::min() : boot_now() + milliseconds{timeout_ms};
  }
  return 0;
}

void ConsulClient::act(curl_socket_t socket, int events) {
  int ignored = 0;
  LICTOR_ASSERT(curl_multi_socket_action(multi_.get(), socket, events, &ignored) == CURLM_OK);
  uncollected_ = true;
}

void ConsulClient::act_on(const epoll_event& event) {
  if (event.data.fd == wake_.fd()) return wake_.clear();
  int events = 0;
  if ((event.events & EPOLLIN) != 0) events |= CURL_CSELECT_IN;
  if ((event.events & EPOLLOUT) != 0) events |= CURL_CSELECT_OUT;
  if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) events |= CURL_CSELECT_ERR;
  act(event.data.fd, events);
}

void ConsulClient::act_on_time() {
  while (timer_ != Instant::max() && (timer_ == Instant::min() || timer_ <= boot_now())) {
    timer_ = Instant::max();  // libcurl sets it again
    act(CURL_SOCKET_TIMEOUT, 0);
  }
}

// Reads while the events fill the array, then works until libcurl wants nothing more at once: a
// request sent by a callback is under way before the owner waits again.
void ConsulClient::step(milliseconds wait) {
  std::array<epoll_event, kSocketsAtOnce> events{};
  int count = 0;
  do {
    count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                       static_cast<int>(wait.count()));
    wait = milliseconds{0};
    for (int i = 0; i < count; ++i) act_on(events[static_cast<std::size_t>(i)]);
  } while (count == static_cast<int>(events.size()));
  do {
    act_on_time();
    collect_done();
    const Instant now = boot_now();
    expire_waiting(now);
    start_waiting(now);
    start_polls(now);
  } while (timer_ == Instant::min());
}

Instant ConsulClient::next_deadline() const {
  if (uncollected_ || timer_ == Instant::min()) return Instant::min();
  Instant next = std::min(timer_, waiting_expires_);
  const Instant held_until = backoff_->held_until();
  const bool held = boot_now() < held_until;
  if (!waiting_.empty()) {
    const auto first = live_.find(waiting_.front());
    if (first == live_.end() || has_place(*first->second, held)) return Instant::min();
    if (held) next = std::min(next, held_until);
  }
  const Instant turn = turns_.next_deadline();
  return std::min(next, held && turn != Instant::max() ? std::max(turn, held_until) : turn);
}

bool ConsulClient::has_place(const Transfer& transfer, bool held) const {
  const std::size_t more = transfer.request.urgent ? tuning_.max_urgent_requests : 0;
  return (transfer.request.urgent || !held) && short_running_ < tuning_.max_short_requests + more;
}

bool ConsulClient::is_held(Instant now) {
  const bool held = now < backoff_->held_until();
  if (std::exchange(was_held_, held) && !held) {
    line_moved_ = now;
    waiting_expires_ = Instant::min();  // expire_waiting() then looks for the first deadline
  }
  return held;
}

Instant ConsulClient::end_in_line(const Transfer& transfer) const {
  if (transfer.request.urgent) return transfer.deadline;
  return std::max(transfer.deadline, line_moved_ + transfer.request.timeout);
}

void ConsulClient::start_waiting(Instant now) {
  const bool held = is_held(now);
  while (!waiting_.empty()) {
    const auto first = live_.find(waiting_.front());
    if (first != live_.end() && !has_place(*first->second, held)) return;
    waiting_.pop_front();
    if (first == live_.end()) continue;
    TransferPtr transfer = std::move(first->second);
    live_.erase(first);
    if (!transfer->request.urgent) transfer->deadline = now + transfer->request.timeout;
    attempt(now, std::move(transfer));
  }
  waiting_expires_ = Instant::max();
}

// Watches are held back with the rest: refusals in each turn would use up the limits.
void ConsulClient::start_polls(Instant now) {
  if (is_held(now)) return;
  while (const auto turn = turns_.next(now)) {
    auto node = live_.extract(turn->query);
    LICTOR_ASSERT(!node.empty());
    node.mapped()->begin_turn(now, turn->wait);
    attempt(now, std::move(node.mapped()));
  }
}

// Whether the answer shows no change and there is time left.
bool ConsulClient::takes_turns(const Transfer& transfer, Instant now) const {
  const Response& response = transfer.response;
  const auto& watch = transfer.request.watch;
  return watch && (http::replied(response, 200) || http::replied(response, 404)) &&
         response.consul_index == watch->index && now < response.sent_at + watch->wait;
}

void ConsulClient::expire_waiting(Instant now) {
  if (now < waiting_expires_) return;
  const bool held = is_held(now);
  waiting_expires_ = Instant::max();
  std::deque<RequestId> still;
  std::vector<TransferPtr> expired;
  for (const RequestId id : waiting_) {
    const auto found = live_.find(id);
    if (found == live_.end()) continue;
    const Transfer& transfer = *found->second;
    const bool waits_for_limits = held && !transfer.request.urgent;
    if (!waits_for_limits && end_in_line(transfer) <= now) {
      expired.push_back(std::move(found->second));
      live_.erase(found);
      continue;
    }
    if (!waits_for_limits) waiting_expires_ = std::min(waiting_expires_, end_in_line(transfer));
    still.push_back(id);
  }
  waiting_ = std::move(still);
  for (TransferPtr& transfer : expired) {  // their callbacks may send
    transfer->add_error(fmt::format("not sent: {} earlier requests were without an answer for {}ms",
                                    tuning_.max_short_requests, transfer->request.timeout.count()));
    finish(std::move(transfer));
  }
}

// Tries the next address, or finishes with the errors of the earlier ones.
void ConsulClient::attempt(Instant now, TransferPtr transfer) {
  const std::optional<std::size_t> endpoint = failover_.next(now, transfer->tried);
  if (!endpoint) return finish(std::move(transfer));
  const Duration left = transfer->deadline - now;
  if (left <= Duration::zero()) {
    transfer->add_error(fmt::format("{}: not sent: its {}ms were over",
                                    client_.endpoints[*endpoint].address,
                                    transfer->request.timeout.count()));
    return finish(std::move(transfer));
  }
  transfer->prepare(client_, *endpoint, token_.current(), ca_bundle_.current(),
                    std::chrono::ceil<milliseconds>(left));
  LICTOR_ASSERT(curl_multi_add_handle(multi_.get(), transfer->easy()) == CURLM_OK);
  transfer->running = true;
  transfer->launched = now;
  if (!transfer->request.long_poll) ++short_running_;
  const RequestId id = transfer->id;
  live_.emplace(id, std::move(transfer));
}

// Takes the handle from libcurl, which closes the connection of an unfinished transfer.
void ConsulClient::withdraw(Transfer& transfer) {
  LICTOR_ASSERT(curl_multi_remove_handle(multi_.get(), transfer.easy()) == CURLM_OK);
  transfer.running = false;
  if (!transfer.request.long_poll) --short_running_;
}

void ConsulClient::collect_done() {
  uncollected_ = false;
  int ignored = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &ignored)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;  // `message` is freed with the handle.
    Transfer* self = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self);
    auto node = live_.extract(self->id);
    LICTOR_ASSERT(!node.empty());
    conclude(std::move(node.mapped()), code);
  }
}

void ConsulClient::conclude(TransferPtr transfer, CURLcode code) {
  transfer->conclude(code, client_);
  withdraw(*transfer);
  const Instant now = boot_now();
  const Response& response = transfer->response;
  if (response.delivery != Delivery::kReplied || should_ask_elsewhere(response)) {
    failover_.failed(now, transfer->endpoint);
  } else {
    failover_.worked(transfer->endpoint);
  }
  if (response.delivery == Delivery::kNotSent) return attempt(now, std::move(transfer));
  if (response.delivery == Delivery::kReplied && !transfer->request.long_poll) line_moved_ = now;
  const auto kind = transfer->is_read() ? RateBackoff::Kind::kRead : RateBackoff::Kind::kWrite;
  if (http::over_limit(response)) {
    backoff_->refused(now, transfer->launched, kind);
  } else if (response.delivery == Delivery::kReplied) {
    backoff_->accepted(transfer->launched, kind);
  }
  if (takes_turns(*transfer, now)) {
    turns_.ended(now, transfer->id, response.elapsed);
    transfer->response.body = {};
    const RequestId id = transfer->id;
    live_.emplace(id, std::move(transfer));
    return;
  }
  finish(std::move(transfer));
}

void ConsulClient::cancel(RequestId id) {
  auto node = live_.extract(id);
  if (node.empty()) return;  // It was complete.
  Transfer& transfer = *node.mapped();
  if (transfer.running) withdraw(transfer);
  Response response;
  response.delivery = Delivery::kCancelled;
  response.endpoint = std::move(transfer.response.endpoint);
  response.sent_at = transfer.response.sent_at;
  transfer.response = std::move(response);
  transfer.add_error(transfer.tried == 0 ? "cancelled before it was sent"
                                         : "cancelled" + transfer.doubt());
  finish(std::move(node.mapped()));
}

// Cancels also the requests that callbacks send meanwhile.
void ConsulClient::cancel_all() {
  while (!live_.empty()) cancel(live_.begin()->first);
  waiting_.clear();
}

void ConsulClient::finish(TransferPtr transfer) {
  turns_.remove(transfer->id);
  const Callback done = std::move(transfer->done);
  Response response = std::move(transfer->response);
  transfer.reset();
  done(std::move(response));
}

}  // namespace lictor::net
