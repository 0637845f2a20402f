#include "cli/process.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/errno_text.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "client/store.h"

namespace lictor::cli {

namespace {

// Lock-free, as a signal handler needs them.
std::atomic<int> came{0};
std::atomic<int> event_fd{-1};

// This is a signal handler: it may only call async-signal-safe functions, and leaves errno as it
// was.
void note(int number) {
  const int error = errno;
  came = number;
  constexpr std::uint64_t kOne = 1;
  [[maybe_unused]] const ssize_t full_is_readable_too = write(event_fd, &kOne, sizeof kOne);
  errno = error;
}

std::array<char, 511> last_words;  // good while a LastWords lives
std::size_t last_words_size = 0;

// This is a signal handler, too. The signal ends the process in its own way, so that a shell sees
// it.
void speak_and_die(int number) {
  [[maybe_unused]] const ssize_t nobody_to_tell =
      write(STDERR_FILENO, last_words.data(), last_words_size);
  signal(number, SIG_DFL);
  raise(number);
}

// Sets `action` for the three signals, except those that are already ignored.
void handle(const struct sigaction& action) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

}  // namespace

void catch_signals(SecondSignal second) {
  if (event_fd < 0) event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_fd < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;  // else output that waits for its reader is lost
  if (second == SecondSignal::kEndsAtOnce) action.sa_flags |= static_cast<int>(SA_RESETHAND);
  handle(action);
}

bool interrupted() { return came != 0; }

int interruption_fd() { return event_fd; }

LastWords::LastWords(std::string_view words) {
  last_words_size = printable(words, true).copy(last_words.data(), last_words.size());
  struct sigaction action {};
  action.sa_handler = speak_and_die;
  handle(action);
}

LastWords::~LastWords() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  handle(action);
}

void end_if_interrupted() {
  if (came == 0) return;
  signal(came, SIG_DFL);
  raise(came);
}

void report_slow_replies(net::Transport& transport, const std::vector<std::string>& addresses,
                         const Console& console) {
  constexpr Duration kNoticeAfter = std::chrono::seconds{2};
  const std::string line =
      fmt::format("{}{}: Consul at {} has not answered for {}; this request ends after {}\n",
                  console.err_terminal().moves ? "\r\x1b[K" : "", program_name(),
                  printable(fmt::format("{}", fmt::join(addresses, ", "))),
                  format_duration(kNoticeAfter), format_duration(client::kStoreTimeout));
  transport.on_slow_reply(kNoticeAfter, [line] { std::fputs(line.c_str(), stderr); });
}

}  // namespace lictor::cli
