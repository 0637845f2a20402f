#include "cli/screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/printable.h"

namespace lictor::cli {
namespace {

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(STDOUT_FILENO, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

// The first `width` columns of a line. An escape takes none.
std::string cut(std::string_view line, std::size_t width) {
  std::string kept;
  std::size_t column = 0;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '\x1b') {
      const std::size_t end = line.find('m', i);
      kept += line.substr(i, end - i + 1);
      i = end + 1;
      continue;
    }
    std::size_t next = i + 1;
    while (next < line.size() && (static_cast<unsigned char>(line[next]) & 0xC0U) == 0x80U) ++next;
    if (column++ < width) kept += line.substr(i, next - i);
    i = next;
  }
  return kept;
}

sigset_t screen_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGWINCH}) sigaddset(&signals, number);
  return signals;
}

}  // namespace

void Screen::block_signals() {
  const sigset_t signals = screen_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Result<std::unique_ptr<Screen>> Screen::open() {
  const Terminal terminal = detect_terminal(stdout);
  if (::isatty(STDIN_FILENO) != 1 || !terminal.moves) {
    return fail(
        ErrorCode::kInvalid,
        "top needs a terminal, and one that moves its cursor (TERM is not \"dumb\"); \"lictor "
        "stats --json\" prints the counts once, \"lictor check\" the findings");
  }
  std::unique_ptr<Screen> screen{new Screen};
  screen->color_ = terminal.color;
  const sigset_t signals = screen_signals();
  screen->signals_ = UniqueFd{signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)};
  ::tcgetattr(STDIN_FILENO, &screen->before_);
  termios raw = screen->before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
  write_all("\x1b[?1049h\x1b[?25l");  // the other screen, no cursor
  return screen;
}

void Screen::reset() {
  write_all("\x1b[?25h\x1b[?1049l");
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
}

Screen::Size Screen::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {size.ws_row, size.ws_col};
}

// Overwrites in place and clears what is left of each line: a screen that is cleared first
// flickers.
void Screen::draw(const Page& page, const Page& last) {
  const Size size = this->size();
  const std::string text = page.text(color_);
  std::string shown = "\x1b[H";
  std::string_view rest = text;
  for (std::size_t row = 1; row < size.rows; ++row) {
    const std::size_t end = rest.find('\n');
    shown += cut(rest.substr(0, end), size.columns) + "\x1b[0m\x1b[K\r\n";
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  shown += cut(last.text(color_), size.columns) + "\x1b[0m\x1b[K\x1b[J";
  write_all(shown);
}

// An escape sequence arrives in one read(), as terminals send it.
Screen::Input Screen::read(std::chrono::milliseconds wait) {
  std::array<pollfd, 2> polled{{{STDIN_FILENO, POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
  if (::poll(polled.data(), polled.size(), static_cast<int>(wait.count())) <= 0) return {};
  signalfd_siginfo signal{};
  if (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
    return {signal.ssi_signo == SIGWINCH ? Key::kResized : Key::kQuit};
  }
  std::array<char, 16> bytes{};
  const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (count <= 0) return {(polled[0].revents & (POLLIN | POLLHUP)) != 0 ? Key::kQuit : Key::kNone};
  const std::string_view typed{bytes.data(), static_cast<std::size_t>(count)};
  if (typed == "\x1b[A") return {Key::kUp};
  if (typed == "\x1b[B") return {Key::kDown};
  if (typed[0] == '\x1b') return {Key::kOther};
  const bool quit = typed[0] == 'q' || typed[0] == '\x03' || typed[0] == '\x04';
  const Key key = quit           ? Key::kQuit
                  : typed == "k" ? Key::kUp
                  : typed == "j" ? Key::kDown
                                 : Key::kOther;
  return {key, typed[0]};
}

}  // namespace lictor::cli
