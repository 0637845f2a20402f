#pragma once

// The output of a command. Data goes to standard output, and messages to standard error, so that a
// pipe gets data alone.
//
// Producers and other daemons write much of what is shown here. So all text is made printable in
// this one place: no task can move the cursor, turn the direction of a line, or add a line that
// looks like another one's. Without a terminal there are no colours, no progress line and no limit
// of the width.
//
//   Table, Sheet --> Page (text with styles) --> Console --> colours, if the stream shows them

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lictor/result.h"

namespace lictor::cli {

enum class Style { kPlain, kBold, kDim, kGreen, kYellow, kRed };

/// The abilities of a stream.
struct Terminal {
  bool is_terminal = false;
  bool color = false;
  std::size_t width = 0;  ///< columns; 0: no limit
  bool moves = false;     ///< its cursor, by escapes
};

/// Looks at `stream`, NO_COLOR (no-color.org: set and not empty), TERM and the window's size.
[[nodiscard]] Terminal detect_terminal(std::FILE* stream);

/// Styled text. Everything that is added is made printable.
class Page {
 public:
  void add(std::string_view text, Style style = Style::kPlain);
  void add(Page other);
  [[nodiscard]] bool empty() const { return parts_.empty(); }
  /// The text, with the escapes of the styles if `color`.
  [[nodiscard]] std::string text(bool color) const;

 private:
  std::vector<std::pair<std::string, Style>> parts_;
};

/// The start of each error: "lictor", or the name of the program that links lictor. Set it
/// before threads start.
[[nodiscard]] std::string& program_name();

/// A command's output: data to standard output, messages to standard error. Makes all text
/// printable (only print_bytes() doesn't) and keeps each line one line, so callers need not. Not
/// thread safe.
class Console {
 public:
  Console(std::FILE* out, std::FILE* err, Terminal out_terminal, Terminal err_terminal)
      : out_(out), err_(err), out_terminal_(out_terminal), err_terminal_(err_terminal) {}
  [[nodiscard]] static Console standard();

  /// From now on the commands that note(), report_error() and suggesting() suggest name this queue,
  /// since without a name they would work on another one, or none.
  void name_queue(std::string queue) { queue_ = std::move(queue); }
  /// The same commands repeat these options of the running command: " --config ./lictor.json".
  void repeat_options(std::string options) { options_ = std::move(options); }
  /// Adds that queue and those options to the commands in `text`. Not for data.
  [[nodiscard]] std::string suggesting(std::string_view text) const;

  /// Prints lines.
  void print(std::string_view text);
  void print(const Page& page);
  void print_line(std::string_view line);
  /// Prints the bytes unchanged.
  void print_bytes(std::string_view bytes);

  /// Prints one line to standard error.
  void note(std::string_view line);
  /// Prints lines to standard error.
  void note_lines(std::string_view text);
  /// Prints "<program>: <message>" to standard error.
  void report_error(std::string_view message);
  /// Prints "<program>: <message>" without colour, for a message that is no error.
  void report_note(std::string_view message);

  /// Asks a yes-or-no question. std::nullopt without a terminal.
  [[nodiscard]] std::optional<bool> confirm(std::string_view question);

  /// A line that the next one overwrites; on a terminal only.
  void progress(std::string_view line);
  void end_progress();

  [[nodiscard]] const Terminal& out_terminal() const { return out_terminal_; }
  /// Columns of standard output; 0: no limit.
  [[nodiscard]] std::size_t width() const { return out_terminal_.width; }
  [[nodiscard]] const Terminal& err_terminal() const { return err_terminal_; }

  /// Flushes standard output. Errors, once: kFailed, the output is incomplete, say on a full disk.
  /// A reader that closed its pipe ("| head") is no error.
  [[nodiscard]] Result<void> flush();
  /// Flushes standard output and keeps the progress line. Errors: as flush().
  [[nodiscard]] Result<void> flush_keep_progress();
  /// Whether further output is lost.
  [[nodiscard]] bool reader_gone() const { return error_number_ != 0; }

 private:
  void flush_out();
  void write_err(const std::string& text);
  void emit(const std::string& text);

  std::FILE* out_;
  std::FILE* err_;
  Terminal out_terminal_;
  Terminal err_terminal_;
  std::string queue_, options_;
  int error_number_ = 0;  // the first failure of print()
  bool reported_ = false;
  bool progress_shown_ = false;
};

struct Cell {
  std::string text;  ///< made printable by the table
  Style style = Style::kPlain;
};

/// Rows under titles, aligned to the left. A column that is empty in every row is left out.
class Table {
 public:
  explicit Table(std::vector<std::string> titles) : titles_(std::move(titles)) {}

  void add_row(std::vector<Cell> cells);

  /// For a terminal of `width` columns (0: no limit) the last column is cut, since it holds the
  /// longest texts, and before it the first one, in the middle.
  [[nodiscard]] Page render(std::size_t width) const;

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<Cell>> rows_;
};

/// The output of "show": a line a field, and blocks below them.
class Sheet {
 public:
  /// Adds nothing for an empty value.
  void line(const std::string& name, const std::string& value, Style style = Style::kPlain);
  void block(const std::string& title, const std::string& text);

  Page page;
};

}  // namespace lictor::cli
