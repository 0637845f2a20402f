#include "httpd/call.h"

#include <microhttpd.h>
#include <unistd.h>

#include <utility>

namespace lictor::httpd {

// After close() nothing is kept: the server's thread, which would drop it, is gone.
void Shared::post(std::shared_ptr<Call> call) {
  {
    const std::lock_guard lock{mutex};
    if (closed) return;
    ready.push_back(std::move(call));
  }
  notify();
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
