#include "exec/http_runner.h"

#include <algorithm>
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
    return fail(ErrorCode::kUnavailable, "the lease ran out before it started");
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

// A stop that comes with its start finds it: the starts are taken first. Once closing, all requests
// are aborted. False: the runner closes and no request is left.
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
  for (Post& post : arrivals) waiting_.push_back(std::move(post));
  for (const AttemptId attempt : stops) abort(attempt);
  while (closing && !waiting_.empty()) abort(waiting_.front()->id());
  while (closing && !posts_.empty()) abort(posts_.begin()->first);
  while (!waiting_.empty() &&
         (call_.max_connections == 0 || posts_.size() < call_.max_connections)) {
    Post next = std::move(waiting_.front());
    waiting_.pop_front();
    send(std::move(next));
  }
  return !closing;
}

void HttpRunner::send(Post post) {
  const AttemptId id = post->id();
  if (auto ready = post->prepare(call_, owners_); !ready) {
    Exit exit = ended(id, Ending::kNotStarted, std::move(ready.error().message));
    return finish(std::move(post), std::move(exit));
  }
  if (const CURLMcode code = curl_multi_add_handle(multi_.get(), post->easy()); code != CURLM_OK) {
    return finish(std::move(post), ended(id, Ending::kNotStarted, curl_multi_strerror(code)));
  }
  posts_.emplace(id, std::move(post));
}

void HttpRunner::abort(AttemptId attempt) {
  const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Post& post) { return post->id() == attempt; });
  if (waits != waiting_.end()) {
    Post post = std::move(*waits);
    waiting_.erase(waits);
    Exit exit = post->stopped();
    return finish(std::move(post), std::move(exit));
  }
  auto node = posts_.extract(attempt);
  if (node.empty()) return;
  LICTOR_ASSERT(curl_multi_remove_handle(multi_.get(), node.mapped()->easy()) == CURLM_OK);
  Exit exit = node.mapped()->stopped();
  finish(std::move(node.mapped()), std::move(exit));
}

void HttpRunner::collect() {
  int ignored = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &ignored)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* const easy = message->easy_handle;
    const CURLcode code = message->data.result;  // read before the handle is removed
    void* self = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &self);
    auto node = posts_.extract(static_cast<HttpPost*>(self)->id());
    Exit exit = node.mapped()->conclude(code);
    LICTOR_ASSERT(curl_multi_remove_handle(multi_.get(), easy) == CURLM_OK);
    finish(std::move(node.mapped()), std::move(exit));
    if (!waiting_.empty()) curl_multi_wakeup(multi_.get());
  }
}

void HttpRunner::finish(Post post, Exit exit) {
  board_.release(slot_of(first_slot_, post->attempt()));
  post->on_exit()(std::move(exit));
}

}  // namespace lictor::exec
