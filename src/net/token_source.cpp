#include "net/token_source.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/read_file.h"
#include "base/text.h"

namespace lictor::net {
namespace {

constexpr std::size_t kMaxTokenBytes = 4096;  // Consul's are 36; JSON web tokens reach 2 KiB.

// Anything else, a line break above all, would let the token write headers of its own.
bool is_header_value(std::string_view text) {
  return text.size() <= kMaxTokenBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

Result<void> TokenSource::open(const std::string& token, std::string file, Duration check_every) {
  const std::lock_guard lock{mutex_};
  check_every_ = check_every;
  file_ = std::move(file);
  if (!file_.empty()) return read_file();
  token_ = trimmed(token);
  if (!is_header_value(token_)) {
    token_.clear();
    return fail(ErrorCode::kInvalid,
                "Consul token: expected printable ASCII without spaces, got something else (not "
                "shown); correct token or CONSUL_HTTP_TOKEN");
  }
  return {};
}

std::string TokenSource::current(Instant now) {
  const std::lock_guard lock{mutex_};
  if (!file_.empty() && now >= next_check_) {
    next_check_ = now + check_every_;
    struct stat info {};
    if (::stat(file_.c_str(), &info) == 0 && !is_same(info, seen_)) static_cast<void>(read_file());
  }
  return token_;
}

void TokenSource::set(const std::string& token) {
  const std::lock_guard lock{mutex_};
  const std::string_view text = trimmed(token);
  if (!is_header_value(text)) return;
  token_ = text;
  file_.clear();
}

Result<void> TokenSource::read_file() {
  // Before the read: a change in between is then seen as one at the next check.
  struct stat info {};
  if (::stat(file_.c_str(), &info) != 0) info = {};
  const Result<std::string> text = read_small_file("token_file", file_, kMaxTokenBytes);
  if (!text) return tl::unexpected{text.error()};
  const std::string_view token = trimmed(*text);
  if (token.empty() || !is_header_value(token)) {
    return fail(ErrorCode::kInvalid,
                "token_file \"" + file_ + "\": expected one token in printable ASCII, got " +
                    (token.empty() ? "nothing" : "something else (not shown)") +
                    "; write the token's secret ID to it");
  }
  token_ = token;
  // Tokens are all of one length, and a file's time moves in steps of milliseconds: a second change
  // in the same step would look like none. A file changed just now is read again at the next check.
  const auto age = wall_now().time_since_epoch() - std::chrono::seconds{info.st_mtim.tv_sec};
  seen_ = age > std::chrono::seconds{2} ? info : decltype(info){};
  return {};
}

}  // namespace lictor::net
