#include "net/token_source.h"

#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/try.h"

namespace lictor::net {
std::thread start_thread(std::function<void()> run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread{std::move(run)};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

struct TokenSource::State {
  Read read;
  std::mutex mutex;
  std::condition_variable changed;  // `ending` is set
  std::string token;
  bool ending = false;

  std::function<void(const std::string& file)> on_new;

  // Runs on the thread.
  void watch(const std::string& file, Duration check_every);
};

TokenSource::TokenSource(Read read) : state_(std::make_shared<State>()) {
  state_->read = std::move(read);
}

TokenSource::~TokenSource() {
  {
    const std::lock_guard lock{state_->mutex};
    state_->ending = true;
  }
  state_->changed.notify_one();
}

Result<void> TokenSource::open(const std::string& token, std::string file, Duration check_every,
                               std::function<void(const std::string& file)> on_new) {
  if (!file.empty()) {
    state_->on_new = std::move(on_new);
    LICTOR_TRY(state_->token, state_->read(file));
    start_thread([state = state_, file = std::move(file), check_every] {
      state->watch(file, check_every);
    }).detach();
    return {};
  }
  const std::string_view fixed = trimmed(token);
  if (!is_access_token(fixed)) {
    return fail(ErrorCode::kInvalid,
                "Consul token: expected printable ASCII without spaces, got something else (not "
                "shown); correct token or CONSUL_HTTP_TOKEN");
  }
  state_->token = fixed;
  return {};
}

std::string TokenSource::current() const {
  const std::lock_guard lock{state_->mutex};
  return state_->token;
}

// Reads without the mutex, so that current() never waits for the file.
void TokenSource::State::watch(const std::string& file, Duration check_every) {
  pthread_setname_np(pthread_self(), "lictor-token");
  std::unique_lock lock{mutex};
  while (!changed.wait_for(lock, check_every, [this] { return ending; })) {
    lock.unlock();
    const auto read_token = read(file);
    lock.lock();
    if (!read_token || std::exchange(token, *read_token) == token || !on_new) continue;
    lock.unlock();
    on_new(file);
    lock.lock();
  }
}

}  // namespace lictor::net
