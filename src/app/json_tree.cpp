// nlohmann's parser reports neither lines nor keys that are written twice. So its SAX interface
// builds a tree of our own, and the iterator that feeds the parser counts the lines:
//
//   text --CursorIterator--> sax_parse() --> TreeBuilder: open levels --> JsonValue, with its line
//              |                                  |
//              +--- Cursor: the line now ---------+

#include "app/json_tree.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"

namespace lictor::app {
namespace {

// Where the parser is. Its lexer reads one character past a number and puts it back; since `line`
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

// The handler of nlohmann's SAX interface, whose function names it takes.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, std::string_view file, const Cursor& cursor)
      : text_(text), file_(file), cursor_(cursor) {}

  [[nodiscard]] JsonValue take_root() { return std::move(root_); }
  [[nodiscard]] std::string take_error() { return std::move(error_); }

  bool null() { return add(make(JsonKind::kNull)); }
  bool boolean(bool value) {
    JsonValue node = make(JsonKind::kBoolean);
    node.boolean = value;
    return add(std::move(node));
  }
  bool number_integer(std::int64_t value) {
    JsonValue node = make(JsonKind::kWhole);
    node.whole = value;
    node.number = static_cast<double>(value);
    node.text = std::to_string(value);
    return add(std::move(node));
  }
  bool number_unsigned(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return number_integer(static_cast<std::int64_t>(value));
    }
    return number_float(static_cast<double>(value), std::to_string(value));
  }
  bool number_float(double value, const std::string& written) {
    JsonValue node = make(JsonKind::kFraction);
    node.number = value;
    node.text = written;
    return add(std::move(node));
  }
  bool string(std::string& value) {
    JsonValue node = make(JsonKind::kString);
    node.text = std::move(value);
    return add(std::move(node));
  }
  bool binary(nlohmann::json::binary_t& /*value*/) { return false; }  // JSON text has none

  bool start_object(std::size_t /*size*/) { return open(JsonKind::kObject); }
  bool start_array(std::size_t /*size*/) { return open(JsonKind::kArray); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Level& level = levels_.back();
    level.next_key = std::move(name);
    level.next_line = cursor_.line;
    const auto [first, fresh] = level.lines.emplace(level.next_key, cursor_.line);
    if (fresh) return true;
    return refuse("written twice, first on line " + std::to_string(first->second) +
                  "; remove one of the two");
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
  struct Level {
    JsonValue value;
    std::map<std::string, int> lines;  // of the keys so far
    std::string next_key;
    int next_line = 0;
  };

  [[nodiscard]] JsonValue make(JsonKind kind) const {
    JsonValue node;
    node.kind = kind;
    node.line = cursor_.line;
    if (!levels_.empty() && levels_.back().value.kind == JsonKind::kObject) {
      node.key = levels_.back().next_key;
      node.line = levels_.back().next_line;
    }
    return node;
  }

  bool add(JsonValue node) {
    if (levels_.empty()) {
      root_ = std::move(node);
    } else {
      levels_.back().value.items.push_back(std::move(node));
    }
    return true;
  }

  bool open(JsonKind kind) {
    if (levels_.size() == kMaxConfigDepth) {
      return refuse("nested more than " + std::to_string(kMaxConfigDepth) + " levels deep");
    }
    Level level;
    level.value = make(kind);
    levels_.push_back(std::move(level));
    return true;
  }

  bool close() {
    JsonValue node = std::move(levels_.back().value);
    levels_.pop_back();
    return add(std::move(node));
  }

  bool refuse(const std::string& message) {
    std::string path;
    for (const Level& level : levels_) {
      path = level.value.kind == JsonKind::kObject ? member_path(path, level.next_key)
                                                   : item_path(path, level.value.items.size());
    }
    error_ = std::string{file_} + ":" + std::to_string(cursor_.line) + ": " + excerpt(path, 120) +
             ": " + message;
    return false;
  }

  std::string_view text_;
  std::string_view file_;
  const Cursor& cursor_;
  std::vector<Level> levels_;  // the arrays and objects that are open
  JsonValue root_;
  std::string error_;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  if (kind != JsonKind::kObject) return nullptr;
  const auto found = std::find_if(items.begin(), items.end(),
                                  [&](const JsonValue& item) { return item.key == name; });
  return found == items.end() ? nullptr : &*found;
}

std::string json_text(const JsonValue& value) {
  const auto listed = [&](char open, char close) {
    std::string text{open};
    for (const JsonValue& item : value.items) {
      if (text.size() > 1) text += ',';
      if (value.kind == JsonKind::kObject) text += json_quoted(item.key) + ':';
      text += json_text(item);
    }
    return text + close;
  };
  switch (value.kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBoolean:
      return value.boolean ? "true" : "false";
    case JsonKind::kWhole:
    case JsonKind::kFraction:
      return value.text;
    case JsonKind::kString:
      return json_quoted(value.text);
    case JsonKind::kArray:
      return listed('[', ']');
    case JsonKind::kObject:
      break;
  }
  return listed('{', '}');
}

Result<JsonValue> parse_json_tree(std::string_view text, std::string_view file) {
  Cursor cursor{text.data(), text.data() + text.size()};
  TreeBuilder builder{text, file, cursor};
  const bool whole = nlohmann::json::sax_parse(CursorIterator{&cursor}, CursorIterator{nullptr},
                                               &builder, nlohmann::json::input_format_t::json,
                                               /*strict=*/true, /*ignore_comments=*/true);
  if (!whole) return fail(ErrorCode::kInvalid, builder.take_error());
  return builder.take_root();
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
