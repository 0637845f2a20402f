#include "cli/input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>

#include "base/clock.h"
#include "base/errno_text.h"
#include "base/read_file.h"
#include "base/unique_fd.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostBytes = 16U << 20U;  // of an argument; a record is far smaller
constexpr auto kPause = 200ms;
constexpr std::size_t kReadBytes = 65'536;

}  // namespace

Result<std::string> read_argument(const std::string& flag, const std::string& argument) {
  const bool is_stdin = argument == "-";
  if (!is_stdin && !argument.starts_with('@')) return argument;
  const std::string file = is_stdin ? "standard input" : argument.substr(1);
  const UniqueFd opened{is_stdin ? -1 : ::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  const auto text = is_stdin || opened
                        ? read_up_to(is_stdin ? STDIN_FILENO : opened.get(), kMostBytes)
                        : std::nullopt;
  if (text && text->size() <= kMostBytes) return *text;
  return fail(ErrorCode::kInvalid,
              flag + ": cannot read " + file + ": " + (text ? "it is too large" : errno_text()));
}

std::optional<std::string> LineReader::next() {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  while (auto line = next_line()) {
    ++number_;
    if (number_ == 1 && line->starts_with(kByteOrderMark)) line->erase(0, kByteOrderMark.size());
    if (line->ends_with('\r')) line->pop_back();
    if (line->find_first_not_of(" \t") == std::string::npos) continue;
    if (on_pause_ && !first_at_) first_at_ = boot_now();
    return line;
  }
  return std::nullopt;
}

std::optional<std::string> LineReader::next_line() {
  std::size_t looked_at = begin_;
  while (true) {
    const std::size_t end = text_.find('\n', looked_at);
    if (end != std::string::npos) {
      std::string line = text_.substr(begin_, end - begin_);
      begin_ = end + 1;
      return line;
    }
    text_.erase(0, begin_);
    begin_ = 0;
    looked_at = text_.size();
    if (ended_) {
      if (text_.empty()) return std::nullopt;
      return std::exchange(text_, {});  // the last line may lack its line feed
    }
    read_more();
  }
}

// Waits for input, but not beyond kPause after the first line since the last pause: no line waits
// longer for the lines after it. False: stop reading.
bool LineReader::wait() {
  std::array<pollfd, 2> ready{{{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
  while (true) {
    const Duration left =
        first_at_ ? std::max<Duration>(0ms, *first_at_ + kPause - boot_now()) : 0ms;
    const auto limit = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
    const int count = poll(ready.data(), ready.size(), first_at_ ? limit : -1);
    if (count < 0 && errno == EINTR) continue;
    stopped_ = count > 0 && ready[1].revents != 0;
    if (count != 0) return !stopped_;
    first_at_.reset();
    if (!on_pause_()) return false;
  }
}

void LineReader::read_more() {
  if (!wait()) {
    ended_ = true;
    text_.clear();
    return;
  }
  const std::size_t have = text_.size();
  text_.resize(have + kReadBytes);
  ssize_t n = 0;
  do {
    n = read(fd_, text_.data() + have, kReadBytes);
  } while (n < 0 && errno == EINTR);
  if (n < 0) error_ = errno;
  ended_ = n <= 0;
  text_.resize(have + static_cast<std::size_t>(n > 0 ? n : 0));
  if (error_ != 0) text_.clear();  // drop a partial line
}

}  // namespace lictor::cli
