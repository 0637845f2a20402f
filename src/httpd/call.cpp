#include "httpd/call.h"

#include <microhttpd.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "base/clock.h"

namespace lictor::httpd {

Workers::Workers(std::size_t max_threads) : max_threads_(max_threads) {
  threads_.emplace_back([this] { run(); });
}

// Starts one more thread where fewer are idle than jobs wait: a slow handler must not delay the
// next request. Threads are kept, since requests come in bursts.
void Workers::post(std::chrono::milliseconds delay, Job job) {
  const std::lock_guard lock{mutex_};
  if (stopped_) return;
  jobs_.emplace(boot_now() + delay, std::move(job));
  if (idle_ < jobs_.size() && threads_.size() < max_threads_ && !stopping_) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {  // Out of threads: the existing ones do it.
    }
  }
  wake_.notify_one();
}

void Workers::stop() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    threads = std::exchange(threads_, {});
  }
  wake_.notify_all();
  for (std::thread& thread : threads) thread.join();
  const std::lock_guard lock{mutex_};
  stopped_ = true;
  jobs_.clear();
}

// A job that is not due yet is waited for by an idle thread, so no timer thread is needed.
void Workers::run() {
  std::unique_lock lock{mutex_};
  while (true) {
    if (jobs_.empty() && stopping_) return;
    const Instant at = jobs_.empty() ? Instant::max() : jobs_.begin()->first;
    const Instant now = boot_now();
    if (at > now && !stopping_) {
      ++idle_;
      at == Instant::max() ? wake_.wait(lock) : void(wake_.wait_for(lock, at - now));
      --idle_;
      continue;
    }
    auto job = jobs_.extract(jobs_.begin());
    lock.unlock();
    job.mapped()();
    job = {};
    lock.lock();
  }
}

// After close() nothing is kept: the server's thread, which would drop it, is gone.
void Shared::post(std::shared_ptr<Call> call) {
  {
    const std::lock_guard lock{mutex};
    if (closed) return;
    ready.push_back(std::move(call));
  }
  notify();
}

void Shared::notify() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake.get(), &one, sizeof one);
}

std::vector<std::shared_ptr<Call>> Shared::take_ready() {
  const std::lock_guard lock{mutex};
  return std::exchange(ready, {});
}

void Shared::close() {
  const std::lock_guard lock{mutex};
  closed = true;
  ready.clear();
}

// send() may have come first, from another thread: the response's own body still begins the stream.
void Call::answer(Response response) {
  {
    const std::lock_guard lock{shared_->mutex};
    if (std::exchange(answered_, true)) return;
    if (response.is_stream) unsent_.insert(0, std::exchange(response.body, {}));
    response_ = std::move(response);
  }
  shared_->post(shared_from_this());
}

void Call::later(std::chrono::milliseconds delay, std::function<void()> job) {
  shared_->workers.post(delay, std::move(job));
}

// A client that does not read is dropped: the sender must not wait for it, and its bytes must not
// fill the memory.
bool Call::send(std::string_view bytes) {
  bool fits = false;
  {
    const std::lock_guard lock{shared_->mutex};
    if (gone() || ended_) return false;
    fits = unsent_.size() + bytes.size() <= kMaxUnsentBytes;
    fits ? void(unsent_ += bytes) : set_gone();
  }
  shared_->post(shared_from_this());
  return fits;
}

void Call::end() {
  {
    const std::lock_guard lock{shared_->mutex};
    ended_ = true;
  }
  shared_->post(shared_from_this());
}

void Call::suspend() {
  MHD_suspend_connection(mhd);
  suspended = true;
}

void Call::resume() {
  if (mhd != nullptr && std::exchange(suspended, false)) MHD_resume_connection(mhd);
}

std::optional<Response> Call::take_response() {
  const std::lock_guard lock{shared_->mutex};
  return std::exchange(response_, std::nullopt);
}

ssize_t Call::read(char* buffer, std::size_t size) {
  const std::lock_guard lock{shared_->mutex};
  if (gone_) return MHD_CONTENT_READER_END_WITH_ERROR;
  const std::size_t n = unsent_.copy(buffer, size);
  unsent_.erase(0, n);
  if (n != 0) return static_cast<ssize_t>(n);
  if (ended_ || shared_->stopping) return MHD_CONTENT_READER_END_OF_STREAM;
  suspend();
  return 0;
}

}  // namespace lictor::httpd
