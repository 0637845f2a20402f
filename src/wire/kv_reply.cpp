#include "wire/kv_reply.h"

#include <simdjson.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/text.h"

namespace lictor::wire {
namespace {

using nlohmann::json;

// Entries as they stream by. Takes both forms: [{entry}, ...] and
// {"Results": [{"KV": {entry}}, ...], "Errors": [...]}.
class EntryReader {
 public:
  TxnReply reply;
  std::string problem;

  void number(std::string_view name, std::uint64_t number) {
    if (name == "CreateIndex") entry_.create_index = number;
    if (name == "ModifyIndex") entry_.modify_index = number;
    if (name == "Flags") entry_.flags = number;
    if (name == "OpIndex") error_.index = static_cast<std::size_t>(number);
  }
  bool string(std::string_view name, std::string_view text) {
    if (name == "Key") {
      entry_.key = text;
      has_key_ = true;
    } else if (name == "Value") {
      auto value = base64_decode(text);
      if (!value) {
        problem = "a Value that is not base64";
        return false;
      }
      entry_.value = std::move(*value);
    } else if (name == "Session") {
      entry_.session = text;
    } else if (name == "What") {
      error_.what = text;
      has_what_ = true;
    }
    return true;
  }
  void expect_entries(std::size_t count) {
    if (reply.results.empty()) reply.results.reserve(count);
  }
  void end_object() {
    if (std::exchange(has_key_, false)) {
      reply.results.push_back(std::move(entry_));
      entry_ = {};
    }
    if (std::exchange(has_what_, false)) reply.errors.push_back(std::exchange(error_, {}));
  }

 private:
  KvEntry entry_;
  TxnReply::OpError error_;
  bool has_key_ = false;
  bool has_what_ = false;
};

// From simdjson, which is fast: a reply with 100,000 entries is 50 MB.
bool feed(EntryReader& reader, std::string_view name, simdjson::dom::element element) {
  if (std::string_view text; element.get(text) == simdjson::SUCCESS) {
    return reader.string(name, text);
  }
  if (std::uint64_t number = 0; element.get(number) == simdjson::SUCCESS) {
    reader.number(name, number);
  } else if (simdjson::dom::array array; element.get(array) == simdjson::SUCCESS) {
    reader.expect_entries(array.size());
    for (const simdjson::dom::element each : array) {
      if (!feed(reader, name, each)) return false;
    }
  } else if (simdjson::dom::object object; element.get(object) == simdjson::SUCCESS) {
    for (const auto& [key, value] : object) {
      if (!feed(reader, key, value)) return false;
    }
    reader.end_object();
  }
  return true;
}

// From nlohmann's parser, which says where a text stops being JSON, and has no limits of its own.
class SaxFeed : public nlohmann::json_sax<json> {
 public:
  explicit SaxFeed(EntryReader& reader) : reader_(reader) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t number) override {
    reader_.number(name_, number);
    return true;
  }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& text) override { return reader_.string(name_, text); }
  bool key(string_t& name) override {
    name_.swap(name);
    return true;
  }
  bool start_object(std::size_t) override { return true; }
  bool end_object() override {
    reader_.end_object();
    return true;
  }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t byte, const std::string&, const json::exception&) override {
    reader_.problem = "what is not JSON at byte " + std::to_string(byte);
    return false;
  }

 private:
  EntryReader& reader_;
  std::string name_;
};

// The strings of an array; what else is in it is passed over.
class NameReader : public nlohmann::json_sax<json> {
 public:
  std::vector<std::string> names;
  bool array = false;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& text) override {
    if (depth_ == 1) names.push_back(std::move(text));
    return true;
  }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override {
    if (depth_ == 0) array = true;
    return open();
  }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

 private:
  bool open() { return ++depth_ > 0; }
  int depth_ = 0;
};

// What Consul answers as a rule, ["a","b"] in plain ASCII, at the speed of copying it: with 100,000
// tasks a change is looked for in 2 MB of names. Nothing: it is in another form.
std::optional<std::vector<std::string_view>> plain_names(std::string_view body) {
  while (!body.empty() && body.back() == '\n') body.remove_suffix(1);
  if (body.size() < 2 || body.front() != '[' || body.back() != ']') return std::nullopt;
  if (!is_printable_ascii(body) || body.find('\\') != std::string_view::npos) return std::nullopt;
  std::vector<std::string_view> names;
  if (body == "[]") return names;
  names.reserve(static_cast<std::size_t>(std::count(body.begin(), body.end(), ',')) + 1);
  for (std::size_t at = 1;;) {
    if (body[at] != '"') return std::nullopt;
    const std::size_t end = body.find('"', at + 1);
    if (end == std::string_view::npos) return std::nullopt;
    names.push_back(body.substr(at + 1, end - at - 1));
    at = end + 1;
    if (at + 1 == body.size()) return names;  // the bracket
    if (body[at] != ',') return std::nullopt;
    ++at;
  }
}

// The memory of a parser is kept for the next reply, unless the reply was a large one: of as many
// parsers as there are replies read at once, which are fewer than the threads that read some.
class Parsers {
 public:
  static constexpr std::size_t kMostBytes = 64 * 1024;
  using Parser = std::unique_ptr<simdjson::dom::parser>;

  Parser take() {
    const std::lock_guard lock{mutex_};
    if (free_.empty()) return std::make_unique<simdjson::dom::parser>(kMostBytes);
    Parser parser = std::move(free_.back());
    free_.pop_back();
    return parser;
  }
  void put_back(Parser parser) {
    const std::lock_guard lock{mutex_};
    free_.push_back(std::move(parser));
  }

 private:
  std::mutex mutex_;
  std::vector<Parser> free_;
};

// `padded`: there is the room behind the text that simdjson wants, so that it need not be copied.
bool read_fast(EntryReader& reader, std::string_view body, bool padded) {
  static Parsers parsers;
  const auto read_by = [&](simdjson::dom::parser& parser) {
    simdjson::dom::element root;
    return parser.parse(body.data(), body.size(), !padded).get(root) == simdjson::SUCCESS &&
           feed(reader, {}, root);
  };
  if (body.size() > Parsers::kMostBytes) {
    simdjson::dom::parser large;
    return read_by(large);
  }
  auto parser = parsers.take();
  const bool went_well = read_by(*parser);
  parsers.put_back(std::move(parser));
  return went_well;
}

Result<TxnReply> read(std::string_view body, bool padded = false) {
  EntryReader reader;
  if (read_fast(reader, body, padded)) return std::move(reader.reply);
  reader = {};
  SaxFeed sax{reader};
  if (!json::sax_parse(body, &sax)) {
    return fail(ErrorCode::kFailed,
                "expected Consul's JSON, got " + reader.problem + ": " + excerpt(body));
  }
  return std::move(reader.reply);
}

}  // namespace

Result<std::vector<KvEntry>> read_kv_entries(std::string body) {
  body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  auto reply = read(body, true);
  if (!reply) return tl::unexpected(std::move(reply.error()));
  return std::move(reply->results);
}

Result<TxnReply> read_txn_reply(std::string_view body) { return read(body); }

// With sixty claims it has sixty entries, of which this is all that counts.
std::optional<std::uint64_t> read_txn_index(std::string_view body) {
  if (body.size() > Parsers::kMostBytes) return std::nullopt;
  // One for each thread that reads such answers, which are few.
  thread_local simdjson::ondemand::parser parser{Parsers::kMostBytes};
  thread_local std::string padded;  // with the room behind the text that simdjson wants
  padded.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  padded = body;
  const char* const name = "ModifyIndex";
  std::optional<std::uint64_t> greatest;
  simdjson::ondemand::document reply;
  simdjson::ondemand::array results;
  if (parser.iterate(padded).get(reply) != simdjson::SUCCESS ||
      reply["Results"].get_array().get(results) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  for (auto result : results) {
    std::uint64_t index = 0;
    if (result["KV"][name].get_uint64().get(index) != simdjson::SUCCESS) return std::nullopt;
    greatest = std::max(index, greatest.value_or(0));
  }
  // Comes last: the reply is whole.
  const auto whole = reply["Errors"].is_null();
  return whole.error() == simdjson::SUCCESS && whole.value_unsafe() ? greatest : std::nullopt;
}

Result<core::KeyList> read_key_names(std::string body) {
  auto text = std::make_shared<const std::string>(std::move(body));
  if (auto plain = plain_names(*text)) return core::KeyList{std::move(text), *std::move(plain)};
  NameReader reader;
  if (!json::sax_parse(*text, &reader) || !reader.array) {
    return fail(ErrorCode::kFailed, "expected a JSON array of names, got " + excerpt(*text));
  }
  return core::KeyList{reader.names};
}

}  // namespace lictor::wire
