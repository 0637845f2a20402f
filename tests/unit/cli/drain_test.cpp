#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "client/control.h"
#include "harness.h"
#include "model_consul.h"

namespace lictor::cli::test {
namespace {

using nlohmann::json;

constexpr const char* kWish = "lictor/q/members/a/drain";

// A queue of two partitions, which "a" leads, and "b", which leads none.
struct Drained {
  Drained() {
    consul.put("lictor/q/partitions", "2");
    consul.put("lictor/q/members/a", R"({"node":"a"})", a);
    consul.put("lictor/q/members/b", R"({"node":"b"})", b);
    for (const char* key : {"lictor/q/leader/2/0", "lictor/q/leader/2/1"}) {
      consul.put(key, R"({"node":"a"})", a);
    }
  }
  void move_all() {
    for (const char* key : {"lictor/q/leader/2/0", "lictor/q/leader/2/1"}) {
      consul.release(key, a);
      consul.put(key, R"({"node":"b"})", b);
    }
  }
  [[nodiscard]] bool wishes(const std::string& node) {
    Store store{consul};
    return client::is_draining(store, wire::Layout::under("lictor/", "q"), node).value();
  }
  ModelConsul consul;
  const std::string a = consul.session(), b = consul.session();
};

Error error_of(const Result<int>& code) {
  REQUIRE_FALSE(code);
  return code.error();
}

}  // namespace

TEST_CASE("drain writes the wish, once, and tells what follows; undrain takes it back") {
  Drained fleet;
  Stage first{fleet.consul};
  REQUIRE(first.run("drain a") == 0);
  CHECK(first.out().starts_with("a is draining: it leads partitions 0-1, which it gives away, "));
  CHECK(contains(first.out(), "takes none until \"lictor undrain a\"\njobs that still run after "));
  CHECK(first.err().empty());
  CHECK(fleet.wishes("a"));
  CHECK_FALSE(fleet.wishes("b"));

  Stage again{fleet.consul, true};
  REQUIRE(again.run("drain a") == 0);
  CHECK(json::parse(again.out()) == json{{"queue", "q"},
                                         {"node", "a"},
                                         {"changed", false},
                                         {"draining", true},
                                         {"partitions", {0, 1}}});

  Stage back{fleet.consul};
  REQUIRE(back.run("undrain a") == 0);
  CHECK(back.out().starts_with("a takes partitions again: "));
  CHECK_FALSE(fleet.wishes("a"));
  Stage twice{fleet.consul, true};
  REQUIRE(twice.run("undrain a") == 0);
  CHECK(json::parse(twice.out()).at("changed") == false);
}

TEST_CASE("drain complains if no other member takes what the host gives away") {
  Drained fleet;
  fleet.consul.put("lictor/q/members/b/drain", "{}");
  Stage stage{fleet.consul};
  REQUIRE(stage.run("drain a") == 0);
  CHECK(contains(stage.err(), "no other member takes partitions: the tasks of those that a gives"));
}

TEST_CASE("drain --wait ends when the host leads no partition") {
  Drained fleet;
  fleet.consul.on_wait = [&] { fleet.move_all(); };
  Stage stage{fleet.consul};
  REQUIRE(stage.run("drain a --wait") == 0);
  CHECK(contains(stage.out(), "\na leads no partition\n"));
  CHECK_FALSE(fleet.consul.on_wait);
  // Nothing to wait for.
  Stage document{fleet.consul, true};
  REQUIRE(document.run("drain a --wait") == 0);
  CHECK(json::parse(document.out()).at("partitions") == json::array());
}

TEST_CASE("drain --wait fails at its timeout, and when the wish is taken back") {
  Drained fleet;
  Stage late{fleet.consul, true};
  const Error timeout = error_of(late.run("drain a --wait --wait-timeout 0s"));
  CHECK(timeout.code == ErrorCode::kFailed);
  CHECK(contains(timeout.message, "a still leads partitions 0-1 after 0s: "));
  CHECK(json::parse(late.out()).at("partitions") == json{0, 1});
  fleet.consul.on_wait = [&] {
    fleet.consul.remove(kWish);
    fleet.consul.put("lictor/q/leader/2/0", R"({"node":"a","more":1})", fleet.a);
  };
  Stage ended{fleet.consul};
  CHECK(contains(error_of(ended.run("drain a --wait")).message, "ended the drain"));
}

TEST_CASE("drain refuses a queue of one partition, an unknown host and what is no name") {
  ModelConsul undivided;
  undivided.put("lictor/q/members/a", "{}", undivided.session());
  Stage one{undivided};
  const Error error = error_of(one.run("drain a"));
  CHECK(exit_code(error.code) == kUsage);
  CHECK(contains(error.message, "use \"lictor leader --step-down\""));

  Drained fleet;
  Stage stage{fleet.consul};
  const Error unknown = error_of(stage.run("drain host"));
  CHECK(exit_code(unknown.code) == kNotFound);
  CHECK(contains(unknown.message,
                 "no member host in queue \"q\" (lictor/q/members/); the members "
                 "are a, b"));
  CHECK(exit_code(error_of(stage.run("undrain host")).code) == kNotFound);
  for (const char* name : {"", "a/drain", "..", "a/"}) {
    CHECK(exit_code(error_of(stage.run_words({"drain", name})).code) == kUsage);
    CHECK(exit_code(error_of(stage.run_words({"undrain", name})).code) == kUsage);
  }
  CHECK_FALSE(fleet.wishes("host"));
}

TEST_CASE("undrain also ends the wish for a host that has left") {
  Drained fleet;
  fleet.consul.put("lictor/q/members/gone/drain", "{}");
  Stage stage{fleet.consul};
  REQUIRE(stage.run("undrain gone") == 0);
  CHECK(contains(stage.out(), "it is no member now"));
  CHECK_FALSE(fleet.wishes("gone"));
}

TEST_CASE("without the right to write the wish, drain names the key") {
  Drained fleet;
  fleet.consul.refuse = [](const net::Request& request) -> std::optional<http::Response> {
    if (request.method != "PUT") return std::nullopt;
    return reply(403, "Permission denied");
  };
  Stage stage{fleet.consul};
  const Error error = error_of(stage.run("drain a"));
  CHECK(exit_code(error.code) == kDenied);
  CHECK(contains(error.message, kWish));
}

}  // namespace lictor::cli::test
