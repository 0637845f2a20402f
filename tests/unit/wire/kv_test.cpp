#include <utility>

#include <doctest/doctest.h>

#include "wire/kv_reply.h"
#include "wire/layout.h"

namespace lictor::wire {

TEST_CASE("everything of a queue lies under its root") {
  const Layout layout = Layout::under("lictor/", "default");
  CHECK(layout.tasks_prefix == "lictor/default/tasks/");
  CHECK(layout.leader_key == "lictor/default/leader");
  CHECK(layout.dead_prefix == "lictor/default/dead/");
  CHECK(layout.done_prefix == "lictor/default/done/");
  CHECK(layout.control_key == "lictor/default/control");
  CHECK(layout.members_prefix == "lictor/default/members/");
  CHECK(layout.schedules_prefix == "lictor/default/schedules/");
  CHECK(layout.schedule_key("nightly") == "lictor/default/schedules/nightly");
}

TEST_CASE("an id is the key's part after the prefix; folders are no tasks") {
  const Layout layout = Layout::under("l/", "q");
  CHECK(layout.task_id("l/q/tasks/42") == "42");
  CHECK(layout.task_id("l/q/tasks/a/b") == "a/b");
  CHECK(layout.task_key("a/b") == "l/q/tasks/a/b");
  for (const std::string none : {"l/q/tasks/", "l/q/tasks/folder/", "l/q/task", ""}) {
    CHECK_FALSE_MESSAGE(layout.task_id(none).has_value(), none);
  }
}

TEST_CASE("unusual keys are percent-encoded, segment by segment") {
  CHECK(kv_path("a/b-c_d.e~f") == "/v1/kv/a/b-c_d.e~f");
  CHECK(kv_path("a b+c%d?e#f&g;h") == "/v1/kv/a%20b%2Bc%25d%3Fe%23f%26g%3Bh");
  CHECK(kv_path("\"\\*") == "/v1/kv/%22%5C%2A");
  CHECK(kv_path("\xc3\xa4\t\xff") == "/v1/kv/%C3%A4%09%FF");
  CHECK(kv_path(std::string("\0z", 2)) == "/v1/kv/%00z");
  CHECK(query_value("a/b c") == "a%2Fb%20c");
}

TEST_CASE("entries are read with their 64 bits, and an empty value is null") {
  const auto entries = read_kv_entries(R"([
    {"LockIndex":3,"Key":"t/a","Flags":18446744073709551615,"Value":"Zm9v","Session":"s1",
     "CreateIndex":9007199254740993,"ModifyIndex":18446744073709551615},
    {"LockIndex":0,"Key":"t/b","Flags":0,"Value":null,"CreateIndex":1,"ModifyIndex":2}])")
                           .value();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].key == "t/a");
  CHECK(entries[0].value == "foo");
  CHECK(entries[0].session == "s1");
  CHECK(entries[0].flags == 18446744073709551615ULL);
  CHECK(entries[0].create_index == 9007199254740993ULL);  // a double would say ...992
  CHECK(entries[0].modify_index == 18446744073709551615ULL);
  CHECK(entries[1].key == "t/b");
  CHECK(entries[1].value.empty());
  CHECK(entries[1].session.empty());
  CHECK(entries[1].flags == 0);
}

TEST_CASE("a transaction's results and errors are read") {
  const auto good =
      read_txn_reply(
          R"({"Results":[{"KV":{"LockIndex":1,"Key":"t/lead","Flags":0,"Value":null,"Session":"s",)"
          R"("CreateIndex":234,"ModifyIndex":235}}],"Errors":null})")
          .value();
  REQUIRE(good.results.size() == 1);
  CHECK(good.results[0].key == "t/lead");
  CHECK(good.results[0].modify_index == 235);
  CHECK(good.errors.empty());

  const auto bad =
      read_txn_reply(
          R"({"Results":null,"Errors":[{"OpIndex":0,"What":"first"},{"OpIndex":17,"What":"second"}],)"
          R"("Index":0,"LastContact":0,"KnownLeader":true,"ConsistencyLevel":""})")
          .value();
  CHECK(bad.results.empty());
  REQUIRE(bad.errors.size() == 2);
  CHECK(bad.errors[0].index == 0);
  CHECK(bad.errors[1].index == 17);
  CHECK(bad.errors[1].what == "second");
  CHECK(read_txn_reply(R"({"Results":[],"Errors":null})")->results.empty());
}

TEST_CASE("a transaction's answer has the index of what was written, and counts only if whole") {
  const std::string whole =
      R"({"Results":[{"KV":{"Key":"t/lead","Value":null,"ModifyIndex":234}},)"
      R"({"KV":{"Key":"t/\",\"ModifyIndex\":99}]","ModifyIndex":18446744073709551615}},)"
      R"({"KV":{"Key":"t/a","ModifyIndex":12}}],"Errors":null})";
  CHECK(read_txn_reply(whole)->greatest_index() == 18446744073709551615ULL);
  CHECK(read_txn_reply(R"({"Results":null,"Errors":null})")->greatest_index() == 0);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK_FALSE(read_txn_reply(whole.substr(0, i)).has_value());
  }
}

namespace {
std::optional<std::vector<std::string>> names_in(std::string body) {
  std::vector<std::string> names;
  const auto read = read_key_names(std::move(body));
  if (read) names.assign(read->in_order().begin(), read->in_order().end());
  return read ? std::optional{names} : std::nullopt;
}
}  // namespace

TEST_CASE("names are read") {
  using Names = std::vector<std::string>;
  CHECK(names_in(R"(["a","b/c","\u00e4"])") == Names{"a", "b/c", "\xc3\xa4"});
  CHECK(names_in("[\"a\",\"\xc3\xa4\"]") == Names{"a", "\xc3\xa4"});
  CHECK(names_in(R"(["a]","b,",""])") == Names{"", "a]", "b,"});  // in order
  CHECK(names_in(R"([ "a" , "b\"\\" ])") == Names{"a", "b\"\\"});
  CHECK(names_in(R"(["a",["b"],{"c":"d"},1,null])") == Names{"a"});
  CHECK(names_in("[]\n") == Names{});
  CHECK(names_in("[]") == Names{});
  for (const char* broken : {R"(["a)", R"(["a])", R"(["a"x])", R"(["a",])", R"(["a","b\q"])",
                             R"([a"])", "]", "", "{}", "["}) {
    CHECK_FALSE(names_in(broken));
  }
}

TEST_CASE("a name out of order is found among very many names") {
  // Consul's order is that of the bytes; bytes that are not UTF-8 are listed as U+FFFD.
  std::string body = "[\"\xef\xbf\xbd\"";
  for (int i = 100'000; i < 200'000; ++i) body += ",\"\xc3\xa4" + std::to_string(i) + '"';
  const auto names = names_in(body + ']').value();
  CHECK(names.size() == 100'001);
  CHECK(names.front() ==
        "\xc3\xa4"
        "100000");
  CHECK(names.back() == "\xef\xbf\xbd");
}

TEST_CASE("an answer that is not Consul's is an error, not an empty one") {
  CHECK(read_kv_entries("<html>proxy")
            .error()
            .message.starts_with("expected Consul's JSON, got <html>proxy: "));
  CHECK(
      read_kv_entries(R"([{"Key":"a","Value":"not base64!"}])").error().message ==
      R"(expected Consul's JSON, got [{"Key":"a","Value":"not base64!"}]: a Value that is not base64)");
  CHECK_FALSE(read_kv_entries("").has_value());
  CHECK_FALSE(read_txn_reply("No cluster leader").has_value());
}

}  // namespace lictor::wire
