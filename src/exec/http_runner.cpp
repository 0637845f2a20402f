#include "exec/http_runner.h"

#include <utility>

#include "base/assert.h"

namespace lictor::exec {

Result<std::unique_ptr<HttpRunner>> HttpRunner::create(LeaseBoard& board, HttpCall call,
                                                       LeaseSlot slot) {
  CurlMulti multi = new_curl_multi();
  // The first wake-up creates libcurl's wake-up descriptor; find out here whether that works.
  if (!multi || curl_multi_wakeup(multi.get()) != CURLM_OK) {
    return fail(ErrorCode::kFailed,
                "http executor: libcurl cannot be set up; is the process out of memory or "
                "descriptors?");
  }
  return std::unique_ptr<HttpRunner>{
      new HttpRunner{board, std::move(call), slot, std::move(multi)}};
}

HttpRunner::HttpRunner(LeaseBoard& board, HttpCall call, LeaseSlot slot, CurlMulti multi)
    : board_(board),
      call_(std::move(call)),
      first_slot_(slot),
      multi_(std::move(multi)),
      thread_([this] { work(); }) {}

HttpRunner::~HttpRunner() {
  {
    const std::lock_guard lock{mutex_};
    closing_ = true;
  }
  curl_multi_wakeup(multi_.get());
  thread_.join();
}

// Counted on the lease board from here to finish(): if the request outlives the lease and its
// grace, the warden kills the daemon, as for any job inside it.
Result<void> HttpRunner::start(Attempt attempt, Instant deadline, ExitCallback on_exit) {
  const LeaseSlot slot = slot_of(first_slot_, attempt);
  auto post = std::make_unique<HttpPost>(std::move(attempt), deadline, std::move(on_exit));
  if (!board_.admit(slot)) {
    return fail(ErrorCode::kUnavailable, kLeaseOver);
  }
  {
    const std::lock_guard lock{mutex_};
    arrivals_.push_back(std::move(post));
  }
  curl_multi_wakeup(multi_.get());
  return {};
}

void HttpRunner::stop(AttemptId attempt, std::chrono::milliseconds) {
  {
    const std::lock_guard lock{mutex_};
    stops_.push_back(attempt);
  }
  curl_multi_wakeup(multi_.get());
}

void HttpRunner::work() {
  // start() and stop() wake the thread; libcurl shortens the wait for its own timers.
  constexpr int kIdleMs = 60'000;
  while (take_orders()) {
    int ignored = 0;
    LICTOR_ASSERT(curl_multi_perform(multi_.get(), &ignored) == CURLM_OK);
    collect();
    LICTOR_ASSERT(curl_multi_poll(multi_.get(), nullptr, 0, kIdleMs, nullptr) == CURLM_OK);
  }
}

// Starts are taken before stops, so a stop that comes with its start finds it. Once closing, all
// requests are aborted. False: the runner closes and no request is left.
bool HttpRunner::take_orders() {
  std::vector<Post> arrivals;
  std::vector<AttemptId> stops;
  bool closing = false;
  {
    const std::lock_guard lock{mutex_};
    arrivals.swap(arrivals_);
    stops.swap(stops_);
    closing = closing_;
  }
  for (Post& post : arrivals) send(std::move(post));
  for (const AttemptId attempt : stops) abort(attempt);
  while (closing && !posts_.empty()) abort(posts_.begin()->first);
  return !closing;
}

// libcurl sends nothing before curl_multi_perform(), so a stop that came with the start is in time.
void HttpRunner::send(Post arrival) {
  const AttemptId attempt = arrival->id();
  HttpPost& post = *posts_.emplace(attempt, std::move(arrival)).first->second;
  auto ready = post.prepare(call_, owners_);
  const CURLMcode added = ready ? curl_multi_add_handle(multi_.get(), post.easy()) : CURLM_OK;
  if (!ready || added != CURLM_OK) {
    const std::string error = ready ? curl_multi_strerror(added) : ready.error().message;
    return finish(attempt, ended(attempt, Ending::kNotStarted, error));
  }
  post.sent = true;
}

void HttpRunner::abort(AttemptId attempt) {
  const auto found = posts_.find(attempt);
  if (found != posts_.end()) finish(attempt, found->second->stopped());
}

void HttpRunner::collect() {
  int ignored = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &ignored)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;  // read before the handle is removed
    void* self = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self);
    auto& post = *static_cast<HttpPost*>(self);
    finish(post.id(), post.conclude(code));
  }
}

void HttpRunner::finish(AttemptId attempt, Exit exit) {
  const Post post = std::move(posts_.extract(attempt).mapped());
  if (post->sent) {
    LICTOR_ASSERT(curl_multi_remove_handle(multi_.get(), post->easy()) == CURLM_OK);
  }
  board_.release(slot_of(first_slot_, post->attempt()));
  post->on_exit()(std::move(exit));
}

}  // namespace lictor::exec
