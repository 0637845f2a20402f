#include "net/curl_transport.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "base/text.h"
#include "net/tls_files.h"

namespace lictor::net {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kPooledTransfers = 128;
constexpr int kLongestPollMs = 60'000;  // libcurl's own deadlines, ours and wakeups come sooner.

thread_local bool is_network_thread = false;

// Consul's words for "this agent has no leader to ask" (its agent/structs/errors.go), and 429: this
// agent's share of requests is used up. Another address may do better.
bool should_ask_elsewhere(const Response& response) {
  if (response.status == 429) return true;
  if (response.status < 500) return false;
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"No cluster leader", "No known Consul servers",
                                              "node is not the leader", "leadership lost",
                                              "rpc error"},
      [&](std::string_view words) { return response.body.find(words) != std::string::npos; });
}

milliseconds round_up(Duration duration) { return std::chrono::ceil<milliseconds>(duration); }

}  // namespace

bool on_network_thread() { return is_network_thread; }

Result<std::unique_ptr<CurlTransport>> CurlTransport::open(Options options, Tuning tuning) {
  if (options.addresses.empty() || options.addresses.size() > Failover::kMaxAddresses) {
    return fail(ErrorCode::kInvalid, "Consul addresses: expected 1 to " +
                                         std::to_string(Failover::kMaxAddresses) + ", got " +
                                         std::to_string(options.addresses.size()) +
                                         "; correct addresses or CONSUL_HTTP_ADDR");
  }
  if (options.connect_timeout <= milliseconds{0}) {
    return fail(ErrorCode::kInvalid, "Consul connect_timeout: expected more than 0ms, got " +
                                         std::to_string(options.connect_timeout.count()) +
                                         "ms; 1s is the default");
  }
  if (!std::ranges::all_of(options.consul_namespace, [](char c) { return c > 0x20 && c < 0x7f; })) {
    return fail(ErrorCode::kInvalid, "Consul namespace \"" + excerpt(options.consul_namespace) +
                                         "\": expected printable ASCII without spaces; correct "
                                         "namespace or CONSUL_NAMESPACE");
  }
  Client client;
  for (const std::string& address : options.addresses) {
    Result<Endpoint> endpoint = parse_endpoint(address, options.tls_server_name);
    if (!endpoint) return tl::unexpected{std::move(endpoint.error())};
    client.endpoints.push_back(*std::move(endpoint));
  }
  Result<std::string> bundle = load_tls_files(options);
  if (!bundle) return tl::unexpected{std::move(bundle.error())};
  client.ca_bundle = *std::move(bundle);
  client.options = options;

  std::unique_ptr<CurlTransport> transport{new CurlTransport(std::move(client), tuning)};
  if (Result<void> started = transport->start(options); !started) {
    return tl::unexpected{std::move(started.error())};
  }
  return transport;
}

CurlTransport::CurlTransport(Client client, Tuning tuning)
    : client_(std::move(client)),
      tuning_(tuning),
      failover_(client_.endpoints.size(), tuning.avoid_for) {}

Result<void> CurlTransport::start(const Options& options) {
  if (auto opened = token_.open(options.token, options.token_file, tuning_.check_token_file_every);
      !opened) {
    return opened;
  }
  static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (global == CURLE_OK) multi_.reset(curl_multi_init());
  // Without its wakeup pipe a request would lie in the inbox until something else happens.
  if (!multi_ || curl_multi_wakeup(multi_.get()) != CURLM_OK) {
    return fail(ErrorCode::kFailed,
                "HTTP client: expected libcurl to start, it did not; check the limits of memory "
                "and open files");
  }
  curl_multi_setopt(multi_.get(), CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  limit_connections();

  // Signals are for the main thread; SIGPIPE of a closed connection is for nobody.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread{[this] { run(); }};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

CurlTransport::~CurlTransport() {
  if (!thread_.joinable()) return;
  LICTOR_ASSERT(std::this_thread::get_id() != thread_.get_id());  // It would join itself.
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  curl_multi_wakeup(multi_.get());
  thread_.join();
}

RequestId CurlTransport::send(Request request, Callback done) {
  LICTOR_ASSERT(done != nullptr);
  const RequestId id{last_id_.fetch_add(1, std::memory_order_relaxed) + 1};
  post({id, std::move(request), std::move(done), boot_now()});
  return id;
}

void CurlTransport::cancel(RequestId request) { post({request, {}, {}, {}}); }

void CurlTransport::post(Order order) {
  bool wake = false;
  {
    const std::lock_guard lock{mutex_};
    wake = inbox_.empty() && std::this_thread::get_id() != thread_.get_id();
    inbox_.push_back(std::move(order));
  }
  if (wake) curl_multi_wakeup(multi_.get());
}

void CurlTransport::set_token(std::string token) { token_.set(token); }

void CurlTransport::run() {
  is_network_thread = true;
  pthread_setname_np(pthread_self(), "lictor-net");
  while (take_orders()) {
    const Instant now = boot_now();
    expire_waiting(now);
    start_waiting(now);
    int ignored = 0;
    LICTOR_ASSERT(curl_multi_perform(multi_.get(), &ignored) == CURLM_OK);
    collect_done();
    const int timeout_ms = poll_timeout_ms(boot_now());
    if (timeout_ms > 0) {
      LICTOR_ASSERT(curl_multi_poll(multi_.get(), nullptr, 0, timeout_ms, nullptr) == CURLM_OK);
    }
  }
  do {
    cancel_all();
  } while (take_orders(), !live_.empty());
  is_network_thread = false;
}

// False once the transport is to stop.
bool CurlTransport::take_orders() {
  bool stopping = false;
  {
    const std::lock_guard lock{mutex_};
    orders_.swap(inbox_);
    stopping = stopping_;
  }
  for (Order& order : orders_) accept(std::move(order));
  orders_.clear();
  return !stopping;
}

void CurlTransport::accept(Order order) {
  if (!order.done) return cancel_now(order.id);
  TransferPtr transfer;
  if (pool_.empty()) {
    transfer = std::make_unique<Transfer>();
  } else {
    transfer = std::move(pool_.back());
    pool_.pop_back();
  }
  transfer->begin(order.id, std::move(order.request), std::move(order.done), order.sent_at);
  if (transfer->request.long_poll) return attempt(boot_now(), std::move(transfer));
  waiting_.push_back(order.id);
  waiting_expires_ = std::min(waiting_expires_, transfer->deadline());
  live_.emplace(order.id, std::move(transfer));
}

void CurlTransport::start_waiting(Instant now) {
  while (!waiting_.empty() && short_running_ < tuning_.max_short_requests) {
    auto node = live_.extract(waiting_.front());
    waiting_.pop_front();
    if (!node.empty()) attempt(now, std::move(node.mapped()));
  }
  if (waiting_.empty()) waiting_expires_ = Instant::max();
}

void CurlTransport::expire_waiting(Instant now) {
  if (now < waiting_expires_) return;
  waiting_expires_ = Instant::max();
  std::deque<RequestId> still;
  for (const RequestId id : waiting_) {
    const auto found = live_.find(id);
    if (found == live_.end()) continue;
    if (found->second->deadline() > now) {
      waiting_expires_ = std::min(waiting_expires_, found->second->deadline());
      still.push_back(id);
      continue;
    }
    TransferPtr transfer = std::move(found->second);
    live_.erase(found);
    transfer->response.delivery = Delivery::kNotSent;
    transfer->add_error("not sent: " + std::to_string(tuning_.max_short_requests) +
                        " other requests were under way for all of its " +
                        std::to_string(transfer->request.timeout.count()) + "ms");
    finish(std::move(transfer));
  }
  waiting_ = std::move(still);
}

// Tries the next address, or finishes with what the earlier ones gave.
void CurlTransport::attempt(Instant now, TransferPtr transfer) {
  const std::optional<std::size_t> endpoint = failover_.next(now, transfer->tried);
  if (!endpoint) return finish(std::move(transfer));
  const Duration left = transfer->deadline() - now;
  if (left <= Duration::zero()) {
    transfer->response.delivery = Delivery::kNotSent;
    transfer->add_error(client_.endpoints[*endpoint].address + ": not sent: its " +
                        std::to_string(transfer->request.timeout.count()) + "ms were over");
    return finish(std::move(transfer));
  }
  transfer->prepare(client_, *endpoint, token_.current(now), round_up(left));
  launch(std::move(transfer));
}

void CurlTransport::launch(TransferPtr transfer) {
  LICTOR_ASSERT(curl_multi_add_handle(multi_.get(), transfer->easy()) == CURLM_OK);
  transfer->running = true;
  ++running_;
  if (!transfer->request.long_poll) ++short_running_;
  limit_connections();
  const RequestId id = transfer->id;
  live_.emplace(id, std::move(transfer));
}

// Takes the handle from libcurl; of a transfer that is not over this closes the connection.
void CurlTransport::withdraw(Transfer& transfer) {
  LICTOR_ASSERT(curl_multi_remove_handle(multi_.get(), transfer.easy()) == CURLM_OK);
  transfer.running = false;
  --running_;
  if (!transfer.request.long_poll) --short_running_;
}

void CurlTransport::collect_done() {
  int ignored = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &ignored)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;  // The message goes with the handle.
    Transfer* self = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self);
    auto node = live_.extract(self->id);
    LICTOR_ASSERT(!node.empty());
    conclude(std::move(node.mapped()), code);
  }
}

void CurlTransport::conclude(TransferPtr transfer, CURLcode code) {
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
  finish(std::move(transfer));
}

void CurlTransport::cancel_now(RequestId id) {
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
                                         : "cancelled; the request may have been carried out");
  finish(std::move(node.mapped()));
}

void CurlTransport::cancel_all() {
  while (!live_.empty()) cancel_now(live_.begin()->first);
  waiting_.clear();
}

void CurlTransport::finish(TransferPtr transfer) {
  const Callback done = std::move(transfer->done);
  Response response = std::move(transfer->response);
  transfer->reset();
  if (pool_.size() < kPooledTransfers) pool_.push_back(std::move(transfer));
  done(std::move(response));
}

// libcurl counts busy connections too, so a fixed limit would, with that many long polls, close
// every other connection after each request.
void CurlTransport::limit_connections() {
  const std::size_t limit = running_ + tuning_.max_idle_connections;
  if (limit == connection_limit_) return;
  connection_limit_ = limit;
  curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(limit));
}

int CurlTransport::poll_timeout_ms(Instant now) {
  {
    // A callback that sends does not wake its own thread, nor does who sends after it.
    const std::lock_guard lock{mutex_};
    if (!inbox_.empty()) return 0;
  }
  if (!waiting_.empty() && short_running_ < tuning_.max_short_requests) return 0;
  milliseconds timeout{kLongestPollMs};
  if (waiting_expires_ != Instant::max()) {
    timeout = std::clamp(round_up(waiting_expires_ - now), milliseconds{0}, timeout);
  }
  return static_cast<int>(timeout.count());
}

}  // namespace lictor::net
