#include "cli/json_output.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace lictor::cli {
namespace {

TEST_CASE("a document is safe to show and still the same JSON") {
  const nlohmann::ordered_json value{{"z", "\x1b[1m\u009b\x7f\u00fc"}, {"a", "\xff"}};
  const std::string text = json_document(value);
  CHECK(text == "{\n  \"z\": \"\\u001b[1m\\u009b\\u007f\u00fc\",\n  \"a\": \"\ufffd\"\n}\n");
  CHECK(nlohmann::json::parse(text)["z"] == value["z"]);
}

TEST_CASE("JSON is indented without being changed") {
  CHECK(indented_json(R"({"n":123456789012345678901234567890,"n": 1.50,"e":{ },"l":[],)"
                      R"("s":"a,{\"b\":\\","a":[1,{"x":null}]})") ==
        "{\n"
        "  \"n\": 123456789012345678901234567890,\n"
        "  \"n\": 1.50,\n"
        "  \"e\": {},\n"
        "  \"l\": [],\n"
        "  \"s\": \"a,{\\\"b\\\":\\\\\",\n"
        "  \"a\": [\n"
        "    1,\n"
        "    {\n"
        "      \"x\": null\n"
        "    }\n"
        "  ]\n"
        "}");
}

}  // namespace
}  // namespace lictor::cli
