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
      "the settings of queue b: concurrency is 3, not 2; executor * of queue default is missing; "
      "executor Mail of queue default: exec differs; executor New of queue default is added");
  CHECK(difference(one, config_digest(file(R"({"root":"s/","queues":[{}]})"))) ==
        "the other settings: root is s/, not r/; the settings of queue b are missing; executor * "
        "of queue "
        "default is missing; executor Mail of queue default is missing");
  CHECK(difference(one, {}).empty());  // a version before this one tells no parts
}

TEST_CASE("a configuration that differs is told by setting, but for what may be a secret") {
  const auto with = [](const char* executor) {
    return config_digest({{"queues", {{{"executors", {{"Mail", json::parse(executor)}}}}}}});
  };
  const ConfigParts one =
      with(R"({"exec": ["/a", "--key=s3cret"], "timeout": "10s", "backoff": {"initial": "1s"}})");
  CHECK_FALSE(contains(json(one).dump(), "s3cret"));
  const std::string mail = "executor Mail of queue default: ";
  CHECK(difference(one, with(R"({"exec": ["/a", "--key=s3cret"], "timeout": "20s",
                               "backoff": {"initial": "2s"}})")) ==
        mail + "backoff.initial is 2s, not 1s; " + mail + "timeout is 20s, not 10s");
  CHECK(difference(one, with(R"({"exec": ["/a", "--key=other"], "backoff": {"initial": "1s"}})")) ==
        mail + "exec differs; " + mail + "timeout is unset, not 10s");
  CHECK(difference(with(R"({"noop": {}, "env": {"K": "a"}})"),
                   with(R"({"noop": {}, "env": {"K": "b"}, "max_attempts": 1})")) ==
        mail + "env differs; " + mail + "max_attempts is 1, not unset");
  // A version before this one tells digests alone.
  ConfigParts older = with(R"({"exec": ["/b"]})");
  for (auto& [part, digest] : older) digest.resize(8);
  CHECK(difference(one, older) == "executor Mail of queue default differs");
  CHECK(difference(older, one) == "executor Mail of queue default differs");
  // Whatever else an entry may hold.
  for (const char* odd : {"", "1", "{", "12345678{", "12345678[1]", "12345678{}}"}) {
    CAPTURE(odd);
    CHECK(contains(difference(one, {{"default/Mail", odd}}), "executor Mail"));
  }
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
  // Of one with many settings its parts.
  json many = json::object();
  for (int i = 0; i < 150; ++i) many["T" + std::to_string(i)] = {{"timeout", "1234567890123s"}};
  for (const auto& [part, digest] : config_digest({{"queues", {{{"executors", many}}}}})) {
    CHECK(digest.size() == 8);
  }
}

}  // namespace lictor::client
