#include "base/json_text.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace lictor;

// Two parsers read a record, one that is fast and one that tells what is wrong.
TEST_CASE("an object is taken exactly when nlohmann parses it") {
  const std::string deep(2'000, '[');
  const std::string long_text(20'000, 'x');
  std::vector<std::string> values{
      "1",      "-0",        "01",        "-",        "1.",           ".5",
      "1e5",    "1e",        "+1",        "0x1",      "1e308",        "1e309",
      "-1e999", "NaN",       "nul",       "null",     "true",         "True",
      "tru",    "Infinity",  R"("a")",    R"("\n")",  R"("\x")",      R"("\u00")",
      R"("\")", "\"\n\"",    "\"\t\"",    "\"\x7f\"", "\"\xc3\xa9\"", "\"\xc3\"",
      "\xff",   "[]",        "[1,]",      "[,1]",     "[1 2]",        "{}",
      "{1:2}",  "",          "1 2",       "// a",     "/* a */ 1",    "1}",
      "\v1",    R"({"a":})", R"({"a" 1})"};
  for (const char* longer :
       {"18446744073709551615", "18446744073709551616", "-9223372036854775809",
        "123456789012345678901234567890", "0.1234567890123456789012345", R"("\u0041")",
        R"("\ud800")", R"("\udc00")", R"("\ud800\udc00")", R"("\udc00\ud800")", R"("\ud800x")",
        "\"\xed\xa0\x80\"", "\xc2\xa0-1", "\"\xf4\x90\x80\x80\"", "\"\xc0\x80\"", R"({"a":1,})",
        R"({"a":1,"a":2})"}) {
    values.emplace_back(longer);
  }
  values.push_back(deep + std::string(2'000, ']'));
  values.push_back('"' + long_text + '"');
  values.push_back('"' + long_text);
  for (const std::string& value : values) {
    for (const char* shape : {"{\"v\":?}", " {\"v\" : ? , \"w\":[?]}\n", "{\"v\":?}x", "?"}) {
      std::string text;
      for (const char c : std::string{shape}) c == '?' ? void(text += value) : void(text += c);
      CAPTURE(text.substr(0, 100));
      const auto parsed = nlohmann::json::parse(text, nullptr, false);
      CHECK(split_object(text).has_value() == parsed.is_object());
    }
  }
}

TEST_CASE("members are found whatever stands in their strings") {
  const std::string object =
      R"({"a\\":"\\","b\"":"\\\"","":"","c":"}]\"{[","d":{"e":["\\",{"f":"]}\\"}]},"g":[],)"
      R"("\u0068":1 ,"i": -0.5e3})";
  const auto parsed = nlohmann::ordered_json::parse(object);
  const auto members = split_object(object).value();
  REQUIRE(members.size() == parsed.size());
  std::size_t i = 0;
  for (const auto& [name, value] : parsed.items()) {
    CAPTURE(name);
    CHECK(members[i].name == name);
    CHECK(nlohmann::ordered_json::parse(members[i].value_text) == value);
    ++i;
  }
}
