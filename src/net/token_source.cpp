#include "net/token_source.h"

#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/read_file.h"
#include "base/text.h"
#include "base/try.h"

namespace lictor::net {
namespace {

using FileInfo = struct stat;

bool is_same(const FileInfo& a, const FileInfo& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// Zeros if there is none.
FileInfo info_of(const std::string& path) {
  FileInfo info{};
  return ::stat(path.c_str(), &info) == 0 ? info : FileInfo{};
}

// Tokens are all of one length, and a file's time moves in steps of milliseconds: a second change in
// the same step would look like none. So a file that changed just now counts as not seen.
FileInfo seen_as(const FileInfo& info) {
  const auto age = wall_now().time_since_epoch() - std::chrono::seconds{info.st_mtim.tv_sec};
  return age > std::chrono::seconds{2} ? info : FileInfo{};
}

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
  FileInfo seen{};  // the thread's, once it runs

  std::mutex mutex;
  std::condition_variable changed;  // of `ending`
  std::string token;
  std::string file;  // empty: the token is fixed
  bool ending = false;
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

Result<void> TokenSource::open(const std::string& token, std::string file, Duration check_every) {
  State& state = *state_;
  if (!file.empty()) {
    // Before the read: a change in between is then seen as one at the next check.
    const FileInfo info = info_of(file);
    LICTOR_TRY(state.token, state.read(file));
    state.seen = seen_as(info);
    state.file = std::move(file);
    start_thread([shared = state_, check_every] { watch(*shared, check_every); }).detach();
    return {};
  }
  const std::string_view fixed = trimmed(token);
  if (!is_access_token(fixed)) {
    return fail(ErrorCode::kInvalid,
                "Consul token: expected printable ASCII without spaces, got something else (not "
                "shown); correct token or CONSUL_HTTP_TOKEN");
  }
  state.token = fixed;
  return {};
}

std::string TokenSource::current() const {
  const std::lock_guard lock{state_->mutex};
  return state_->token;
}

void TokenSource::set(const std::string& token) {
  const std::lock_guard lock{state_->mutex};
  const std::string_view text = trimmed(token);
  if (!is_access_token(text)) return;
  state_->token = text;
  state_->file.clear();
}

void TokenSource::watch(State& state, Duration check_every) {
  pthread_setname_np(pthread_self(), "lictor-token");
  std::unique_lock lock{state.mutex};
  while (!state.changed.wait_for(lock, check_every, [&] { return state.ending; })) {
    const std::string file = state.file;
    if (file.empty()) return;
    lock.unlock();
    const FileInfo info = info_of(file);
    const bool fresh = info.st_ino != 0 && !is_same(info, state.seen);
    const auto token = fresh ? state.read(file) : Result<std::string>{};
    lock.lock();
    if (!fresh || !token || state.file.empty()) continue;
    state.token = *token;
    state.seen = seen_as(info);
  }
}

}  // namespace lictor::net
