#include "client/config_digest.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "unit/contains.h"

namespace lictor::client {
namespace {

using nlohmann::json;

json file(const char* text) { return json::parse(text); }

}  // namespace

TEST_CASE("two configurations are compared by executor, by queue and by the rest") {
  const ConfigParts one = config_digest(file(
      R"({"root":"r/","queues":[{"executors":{"Mail":{"exec":["/a"],"timeout":"1s"},"*":{"noop":{}}}},
          {"name":"b","concurrency":2}]})"));
  // The order of members does not matter.
  CHECK(difference(
            one,
            config_digest(file(
                R"({"queues":[{"executors":{"*":{"noop":{}},"Mail":{"timeout":"1s","exec":["/a"]}}},
          {"concurrency":2,"name":"b"}],"root":"r/"})")))
            .empty());
  CHECK(
      difference(
          one,
          config_digest(file(
              R"({"root":"r/","queues":[{"executors":{"Mail":{"exec":["/b"],"timeout":"1s"},"New":{}}},
          {"name":"b","concurrency":3}]})"))) ==
      "the settings of queue b differ; executor * of queue default is missing; executor Mail of "
      "queue default differs; executor New of queue default is added");
  CHECK(difference(one, config_digest(file(R"({"root":"s/","queues":[{}]})"))) ==
        "the other settings differ; the settings of queue b are missing; executor * of queue "
        "default is missing; executor Mail of queue default is missing");
  CHECK(difference(one, {}).empty());  // a version before this one tells no parts
}

TEST_CASE("the digests of the parts hold no secret") {
  const ConfigParts parts =
      config_digest(file(R"({"queues":[{"executors":{"Mail":{"exec":["/a","--key=s3cret"]}}}]})"));
  CHECK_FALSE(contains(json(parts).dump(), "s3cret"));
}

TEST_CASE("the schedules of a queue are a part of their own") {
  const auto with = [](const char* schedules) {
    return config_digest({{"queues", {{{"schedules", json::parse(schedules)}}}}});
  };
  CHECK(difference(with(R"({"a": {"every": "1h"}})"), with(R"({"a": {"every": "2h"}})")) ==
        "the schedules of queue default differ");
  CHECK(difference(with(R"({"a": {"every": "1h"}})"), config_digest(file(R"({"queues":[{}]})"))) ==
        "the schedules of queue default are missing");
}

TEST_CASE("of a configuration with very many parts only the whole is compared") {
  json executors = json::object();
  for (int i = 0; i < 300; ++i) executors["T" + std::to_string(i)] = json::object();
  CHECK(config_digest({{"queues", {{{"executors", executors}}}}}).empty());
}

}  // namespace lictor::client
