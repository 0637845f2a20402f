// nlohmann's parser reports neither lines nor keys that are written twice. So its SAX interface
// builds the tree, and the iterator that feeds the parser counts the lines:
//
//   text --CursorIterator--> sax_parse() --> TreeBuilder: open values --> JsonTree
//              |                                  |
//              +--- Cursor: the line now ---------+

#include "app/json_tree.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace lictor::app {
namespace {

// The parser's place. Its lexer reads one character past a number and puts it back; since `line`
// moves only with the character after a newline, it is the line of the last token all the same.
struct Cursor {
  const char* at;
  const char* end;
  int line = 1;
  bool line_ended = false;
};

// The parser moves its iterators about; all of them advance the one cursor.
class CursorIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  explicit CursorIterator(Cursor* cursor) : cursor_(cursor) {}

  reference operator*() const { return *cursor_->at; }
  CursorIterator& operator++() {
    if (cursor_->line_ended) ++cursor_->line;
    cursor_->line_ended = *cursor_->at == '\n';
    ++cursor_->at;
    return *this;
  }
  // The only comparison made is with the end of the input.
  friend bool operator==(const CursorIterator& a, const CursorIterator& b) {
    return a.at_end() == b.at_end();
  }
  friend bool operator!=(const CursorIterator& a, const CursorIterator& b) { return !(a == b); }

 private:
  [[nodiscard]] bool at_end() const { return cursor_ == nullptr || cursor_->at == cursor_->end; }

  Cursor* cursor_;
};

// "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error while parsing
// object - unexpected '}'; last read: '"a" }'; expected string literal" says twice where it is, and
// shows what was read, which may be a token. `before`: the text up to there.
std::string describe_syntax_error(std::string_view what, std::string_view before) {
  if (const auto dash = what.find(" - "); dash != std::string_view::npos) {
    what.remove_prefix(dash + 3);
  } else if (const auto bracket = what.find("] "); bracket != std::string_view::npos) {
    what.remove_prefix(bracket + 2);
  }
  std::string text{what};
  if (const auto read = text.find("; last read: '"); read != std::string::npos) {
    const auto expected = text.rfind("; expected ");
    text.erase(read, expected != std::string::npos && expected > read ? expected - read
                                                                      : std::string::npos);
  }
  const auto last = before.find_last_not_of(" \t\r\n");
  const bool after_comma =
      last != std::string_view::npos && before[last] == ',' &&
      (text.starts_with("unexpected '}'") || text.starts_with("unexpected ']'"));
  if (text.ends_with("expected '}'") || text.ends_with("expected ']'")) text += " or a comma";
  return "not JSON: " + excerpt(text, 160) + (after_comma ? "; remove the comma before it" : "");
}

// The handler of nlohmann's SAX interface, with that interface's function names.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, std::string_view file, const Cursor& cursor)
      : text_(text), file_(file), cursor_(cursor) {}

  [[nodiscard]] JsonTree take_tree() { return std::move(tree_); }
  [[nodiscard]] std::string take_error() { return std::move(error_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string& /*written*/) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t& /*value*/) { return false; }  // JSON text has none

  bool start_object(std::size_t /*size*/) { return open(nlohmann::json::object()); }
  bool start_array(std::size_t /*size*/) { return open(nlohmann::json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    const Place& in = open_.back();
    key_ = std::move(name);
    const auto [known, fresh] = in.lines->members.try_emplace(key_);
    if (!fresh) {
      return refuse(member_path(in.path, key_), "written twice, first on line " +
                                                    std::to_string(known->second.line) +
                                                    "; remove one of the two");
    }
    known->second.line = cursor_.line;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& error) {
    // `position` counts the end of the input as a character. Reports the last character read.
    const std::size_t end = std::min(position, text_.size());
    const std::size_t start = end - std::min<std::size_t>(end, 1);
    const std::string_view before = text_.substr(0, start);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    error_ = std::string{file_} + ":" + std::to_string(line) + ":" +
             std::to_string(start - line_start + 1) + ": " +
             describe_syntax_error(error.what(), before);
    return false;
  }

 private:
  // A value, which stays where it is until its container is closed.
  struct Place {
    nlohmann::json* value;
    JsonLines* lines;
    std::string path;
  };

  // The place of the next value: at the top, below the last key, or behind the last item.
  Place next_place() {
    if (open_.empty()) {
      tree_.lines.line = cursor_.line;
      return {&tree_.value, &tree_.lines, ""};
    }
    const auto& [in, lines, path] = open_.back();
    if (in->is_object()) {
      return {&(*in)[key_], &lines->members[key_], member_path(path, key_)};
    }
    lines->items.emplace_back().line = cursor_.line;
    in->push_back(nullptr);
    return {&in->back(), &lines->items.back(), item_path(path, in->size() - 1)};
  }

  bool add(nlohmann::json value) {
    *next_place().value = std::move(value);
    return true;
  }

  bool open(nlohmann::json empty) {
    Place place = next_place();
    if (open_.size() == kMaxConfigDepth) {
      return refuse(place.path,
                    "nested more than " + std::to_string(kMaxConfigDepth) + " levels deep");
    }
    *place.value = std::move(empty);
    open_.push_back(std::move(place));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  bool refuse(const std::string& path, const std::string& message) {
    error_ = std::string{file_} + ":" + std::to_string(cursor_.line) + ": " + excerpt(path, 120) +
             ": " + message;
    return false;
  }

  std::string_view text_;
  std::string_view file_;
  const Cursor& cursor_;
  std::vector<Place> open_;  // the arrays and objects that are not closed yet
  std::string key_;          // the last one
  JsonTree tree_;
  std::string error_;
};

}  // namespace

Result<JsonTree> parse_json_tree(std::string_view text, std::string_view file) {
  Cursor cursor{text.data(), text.data() + text.size()};
  TreeBuilder builder{text, file, cursor};
  const bool whole = nlohmann::json::sax_parse(CursorIterator{&cursor}, CursorIterator{nullptr},
                                               &builder, nlohmann::json::input_format_t::json,
                                               /*strict=*/true, /*ignore_comments=*/true);
  if (!whole) return fail(ErrorCode::kInvalid, builder.take_error());
  return builder.take_tree();
}

std::string member_path(std::string_view path, std::string_view name) {
  std::string longer{path};
  if (!is_word(name, "_-")) return longer + "[\"" + excerpt(name) + "\"]";
  if (!longer.empty()) longer += '.';
  return longer.append(name);
}

std::string item_path(std::string_view path, std::size_t index) {
  return std::string{path} + "[" + std::to_string(index) + "]";
}

}  // namespace lictor::app
