#pragma once

// The whole terminal for one command: the alternate screen, no cursor, keys without Enter and
// without echo.
//
// A program that ends must give the terminal back, however it ends. So SIGTERM, SIGHUP and SIGINT
// are blocked in all threads and read from a file descriptor beside the keys: they arrive as kQuit,
// the command returns, and the destructor restores the terminal. SIGWINCH comes the same way and
// only draws again. Ctrl-C is a key here (ISIG is off), so a question can be left by it.

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "cli/console.h"
#include "lictor/result.h"

namespace lictor::cli {

/// The whole terminal, while it exists. Its end, also by SIGTERM or SIGHUP, brings back the earlier
/// content. Not thread safe.
class Screen {
 public:
  enum class Key { kNone, kOther, kUp, kDown, kQuit, kResized };
  struct Input {
    Key key = Key::kNone;
    char character = 0;  ///< the first one typed; 0 for signals and escapes
  };

  /// Blocks the signals that end the screen, for this thread and those that it starts later. Call
  /// it before any other thread exists: such a thread would let a signal end the process without
  /// restoring the terminal.
  static void block_signals();

  /// Call it after block_signals(). Errors: kInvalid, standard input or output is no terminal, or
  /// one that knows no escapes.
  [[nodiscard]] static Result<std::unique_ptr<Screen>> open();
  ~Screen() { reset(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  struct Size {
    std::size_t rows = 24, columns = 80;
  };
  [[nodiscard]] Size size() const;

  /// Shows these lines, cut to the screen; `last` stays at the bottom.
  void draw(const Page& page, const Page& last);

  /// Gives the terminal back as it was.
  void reset();

  /// Waits for a key, for `wait` at most. kQuit: q, Ctrl-C, a signal, or the terminal is gone.
  [[nodiscard]] Input read(std::chrono::milliseconds wait);

 private:
  Screen() = default;

  termios before_{};
  UniqueFd signals_;
  bool color_ = false;
};

}  // namespace lictor::cli
