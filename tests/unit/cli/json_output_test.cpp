#include "cli/json_output.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "harness.h"
#include "model_consul.h"

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

TEST_CASE("an empty result is a document, with an error beside it") {
  const std::vector<std::pair<const char*, const char*>> commands{
      {"show x", "tasks"}, {"dead show x", "tasks"}, {"why x", "reasons"}};
  test::ModelConsul consul;
  for (const auto& [words, name] : commands) {
    test::Stage scene{consul, true};
    const auto code = scene.run(words);
    REQUIRE_FALSE(code);
    CHECK(code.error().code == ErrorCode::kNotFound);
    const auto told = nlohmann::json::parse(scene.out());
    CHECK(told.at("id") == "x");
    CHECK(told.at(name) == nlohmann::json::array());

    test::Stage plain{consul};
    REQUIRE_FALSE(plain.run(words));
    CHECK(plain.out().empty());
  }
}

TEST_CASE("a missing leader is a document for --step-down, too") {
  test::ModelConsul consul;
  test::Stage scene{consul, true};
  REQUIRE_FALSE(scene.run("leader --step-down"));
  CHECK(nlohmann::json::parse(scene.out()).at("lock") == "free");
}

TEST_CASE("without an answer of Consul there is no document, and only the first id is tried") {
  const auto lost = test::undelivered(http::Delivery::kLost);
  test::Scene shown{{lost}, true};
  REQUIRE_FALSE(shown.run("show x"));
  CHECK(shown.out().empty());
  test::Scene cancelled{{lost}};
  CHECK(cancelled.run("cancel x y") == kUnreachable);
  CHECK(cancelled.consul.asked.size() == 1);
}

}  // namespace
}  // namespace lictor::cli
