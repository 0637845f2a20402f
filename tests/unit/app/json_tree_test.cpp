#include "app/json_tree.h"

#include <string>

#include "unit/refusal.h"

namespace lictor::app {

TEST_CASE("a value knows the line of its key, or its own") {
  const auto tree = parse_json_tree(
                        "// a comment\n"
                        "{\n"
                        "  \"a\": 1,\n"
                        "  \"b\":\n"
                        "    [10,\n"
                        "     /* two\n"
                        "        lines */ 20\n"
                        "    ],\n"
                        "  \"c\": {\"d\": 2.5\n"
                        "  }, \"e\": -7\n"
                        "}\n"
                        "// the end",
                        "x.json")
                        .value();
  const auto line = [&](const char* name) { return tree.lines.members.find(name)->second.line; };
  CHECK(tree.lines.line == 2);
  CHECK(line("a") == 3);
  CHECK(line("b") == 4);
  const JsonLines& items = tree.lines.members.at("b");
  REQUIRE(items.items.size() == 2);
  CHECK(items.items[0].line == 5);
  CHECK(items.items[1].line == 7);
  CHECK(line("c") == 9);
  CHECK(tree.lines.members.at("c").members.at("d").line == 9);
  CHECK(line("e") == 10);
  CHECK(tree.value == nlohmann::json{{"a", 1}, {"b", {10, 20}}, {"c", {{"d", 2.5}}}, {"e", -7}});
}

TEST_CASE("all kinds of values are kept") {
  const std::string text =
      R"(["text \u00e9", true, false, null, 18446744073709551615, 1e3, {}, [], 1e300])";
  const auto tree = parse_json_tree(text, "x.json").value();
  CHECK(tree.value == nlohmann::json::parse(text));
  CHECK(tree.lines.items.size() == tree.value.size());
}

TEST_CASE("text that is not JSON is refused with file, line and column") {
  struct Case {
    std::string text;
    std::string error;
  };
  const Case cases[] = {
      {"{\n  \"a\": 1,\n}",
       "x.json:3:1: not JSON: unexpected '}'; expected string literal; remove the comma before it"},
      {"{\"a\": 1, // more to come\n}",
       "x.json:2:1: not JSON: unexpected '}'; expected string literal"},
      {"{\"a\": }", "x.json:1:7: not JSON: unexpected '}'; expected '[', '{', or a literal"},
      {"[1 2]", "x.json:1:4: not JSON: unexpected number literal; expected ']' or a comma"},
      {"{\n\"a\": 1\n\"b\": 2}",
       "x.json:3:3: not JSON: unexpected string literal; expected '}' or a comma"},
      {"{\"a\": 1", "x.json:1:7: not JSON: unexpected end of input; expected '}' or a comma"},
      {"{} {}", "x.json:1:4: not JSON: unexpected '{'; expected end of input"},
      {"{\"b\": 1, a: 1}", "x.json:1:10: not JSON: invalid literal; expected string literal"},
      {"{a: 1}", "x.json:1:2: not JSON: invalid literal; expected string literal"},
      {"[1e999]", "x.json:1:6: not JSON: number overflow parsing '1e999'"},
      {"{ /* never ends",
       "x.json:1:15: not JSON: invalid comment; missing closing '*/'; expected string literal"},
      {"{\"token\": \"SECRET\n}",  // what was read may not be shown
       "x.json:1:18: not JSON: invalid string: control character U+000A (LF) must be escaped to "
       "\\u000A or \\n"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const Error tree = refusal_of(parse_json_tree(c.text, "x.json"));
    CHECK(tree.code == ErrorCode::kInvalid);
    CHECK(tree.message == c.error);
  }
}

TEST_CASE("a key written twice is refused with both lines") {
  const Error error = refusal_of(parse_json_tree(
      "{\n\"queues\": [{},\n{\n\"name\": \"a\",\n\"*\": {\"x\": 1},\n\n\"name\": \"b\"}]}",
      "x.json"));
  CHECK(error.message ==
        "x.json:7: queues[1].name: written twice, first on line 4; remove one of the two");
  CHECK(parse_json_tree(R"({"a": {"b": 1}, "b": {"b": 2}})", "x.json"));
}

TEST_CASE("deep, long or truncated nonsense is refused without harm") {
  const Error error = refusal_of(parse_json_tree(std::string(1'000'000, '['), "x.json"));
  CHECK(error.message.ends_with("nested more than 32 levels deep"));
  CHECK(error.message.size() < 300);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK_FALSE(parse_json_tree(objects, "x.json"));
  std::string wide = "{";
  for (int i = 0; i < 100'000; ++i) wide += "\"k" + std::to_string(i) + "\":0,";
  CHECK(parse_json_tree(wide + "\"end\":0}", "x.json"));
  const std::string long_text = "{\"" + std::string(1'000'000, 'a');
  CHECK(refusal_of(parse_json_tree(long_text, "x.json")).message.size() < 300);
  CHECK_FALSE(parse_json_tree(std::string_view{"\0\0\0", 3}, "x.json"));
  CHECK_FALSE(parse_json_tree("\"\xff\xfe\"", "x.json"));
  CHECK_FALSE(parse_json_tree("\xef\xbb", "x.json"));
  CHECK(parse_json_tree("\xef\xbb\xbf{}", "x.json"));  // a byte order mark
  const std::string whole = R"({"a": [1, "t\u00e9xt", {"b": null}], /* c */ "d": -1.5e3})";
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    CAPTURE(cut);
    CHECK_FALSE(parse_json_tree(std::string_view{whole}.substr(0, cut), "x.json"));
  }
}

}  // namespace lictor::app
