#include "net/token_source.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/try.h"

namespace lictor::net {
namespace {

// An unusable file is most likely being replaced. After so many readings it is not.
constexpr int kUnusableReadings = 3;

}  // namespace

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

  OnChange on_change;

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
                               OnChange on_change) {
  if (!file.empty()) {
    state_->on_change = std::move(on_change);
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
  int unusable = 0;
  std::unique_lock lock{mutex};
  while (!changed.wait_for(lock, check_every, [this] { return ending; })) {
    lock.unlock();
    const auto read_token = read(file);
    lock.lock();
    const bool is_back = read_token && unusable >= kUnusableReadings;
    unusable = read_token ? 0 : std::min(unusable, kUnusableReadings) + 1;
    const bool is_new = read_token && std::exchange(token, *read_token) != token;
    if (!on_change || (!is_new && !is_back && unusable != kUnusableReadings)) continue;
    lock.unlock();
    on_change(file, read_token ? std::string{} : read_token.error().message);
    lock.lock();
  }
}

}  // namespace lictor::net
