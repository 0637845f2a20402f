#include "net/token_source.h"

#include <pthread.h>
#include <sys/stat.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/clock.h"
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

// Tokens are all of one length, and a file's time moves in steps of milliseconds: a second change
// in the same step would look like none. So a file that changed just now counts as not seen.
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
  Look look;
  std::mutex mutex;
  std::condition_variable changed;  // `ending` is set
  std::string token;
  bool ending = false;

  std::function<void(const std::string& file)> on_new;

  // The thread: reads `file`, which was last seen as `seen`, whenever it has changed.
  void watch(const std::string& file, FileInfo seen, Duration check_every);
};

TokenSource::TokenSource(Read read, Look look) : state_(std::make_shared<State>()) {
  state_->read = std::move(read);
  state_->look = look;
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
    // Before the read: a change in between is then seen as one at the next check.
    const FileInfo info = info_of(file);
    LICTOR_TRY(state_->token, state_->read(file));
    start_thread([state = state_, file = std::move(file), seen = seen_as(info), check_every] {
      state->watch(file, seen, check_every);
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
void TokenSource::State::watch(const std::string& file, FileInfo seen, Duration check_every) {
  pthread_setname_np(pthread_self(), "lictor-token");
  std::unique_lock lock{mutex};
  while (!changed.wait_for(lock, check_every, [this] { return ending; })) {
    lock.unlock();
    const FileInfo info = info_of(file);
    const bool fresh = info.st_ino != 0 && (look == Look::kAlways || !is_same(info, seen));
    const auto read_token = fresh ? read(file) : Result<std::string>{};
    lock.lock();
    if (!fresh || !read_token) continue;
    seen = seen_as(info);
    if (std::exchange(token, *read_token) == token || !on_new) continue;
    lock.unlock();
    on_new(file);
    lock.lock();
  }
}

}  // namespace lictor::net
