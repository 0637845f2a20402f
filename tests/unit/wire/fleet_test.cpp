#include "wire/fleet.h"

#include <nlohmann/json.hpp>

#include "unit/consul_replies.h"
#include "unit/contains.h"
#include "unit/json_members.h"
#include "unit/refusal.h"

namespace lictor::wire {
namespace {

using nlohmann::json;
using namespace unit;
using Answer = core::DivisionReply::Answer;

const Binding kFleet{.layout = Layout::under("l/", "q"), .queue = "q"};

TEST_CASE("the number of partitions is a number from 1 to 256, and nothing else") {
  CHECK(read_count("16").value() == 16);
  CHECK(read_count("256\n").value() == 256);
  for (const char* value : {"", "0", "257", "-1", "1.5", "16x", "sixteen", "99999999999"}) {
    CAPTURE(value);
    CHECK(contains(refusal_of(read_count(value)).message, "from 1 to 256"));
  }
}

TEST_CASE("of a member's numbers, those out of range are limited, all else is 1") {
  const auto of = [](const char* entry, const char* queue) {
    return number_of(queue_numbers(json::parse(entry), "weights"), queue);
  };
  const char* entry = R"({"weights":{"a":16,"b":0,"c":9999999999,"d":-2,"e":1.5,"f":"3"}})";
  CHECK(of(entry, "a") == 16);
  CHECK(of(entry, "b") == 1);
  CHECK(of(entry, "c") == 256);
  for (const char* queue : {"d", "e", "f", "g"}) CHECK(of(entry, queue) == 1);
  for (const char* other : {"{}", "[]", "7", "null", R"({"weights":[2]})", R"({"weights":2})"}) {
    CAPTURE(other);
    CHECK(queue_numbers(json::parse(other), "weights").empty());
  }
}

TEST_CASE("one read tells who takes part, how many partitions there are, and who leads") {
  const http::Request request = encode(kFleet, core::ReadFleet{true});
  CHECK(request.only_reads);
  CHECK(json::parse(request.body).size() == 3);
  CHECK(json::parse(encode(kFleet, core::ReadFleet{false}).body).size() == 2);
  const core::FleetRead read = decode(
      kFleet, core::ReadFleet{true},
      applied(
          {entry("l/q/members/a", R"({"partitions":{"q":16,"other":3},"weights":{"q":2}})", 5, "s"),
           entry("l/q/members/b", "{}", 6, "t"), entry("l/q/members/b/drain", "", 7),
           entry("l/q/members/by-hand", "{}", 8), entry("l/q/partitions", "16", 9),
           entry("l/q/partitions-of-mine", "5", 10), entry("l/q/leader", "", 11),
           entry("l/q/leader/16/3", R"({"node":"a"})", 12, "s"), entry("l/q/leaders", "", 13)}));
  CHECK(read.error.empty());
  REQUIRE(read.members.size() == 2);  // an entry without a session is nobody's
  CHECK(read.members[0].member == core::BalancerMember{"a", 2, false});
  CHECK(read.members[0].desired_partitions == 16);
  CHECK(read.members[1].member == core::BalancerMember{"b", 1, true});
  CHECK(read.members[1].desired_partitions == 1);
  CHECK(read.count == 16);
  CHECK(read.count_index == 9);
  REQUIRE(read.locks.size() == 2);
  CHECK(read.locks[0].count == 1);
  CHECK(read.locks[1].key == "l/q/leader/16/3");
  CHECK(read.locks[1].count == 16);
  CHECK(read.locks[1].read.holder == "a");
}

// A server that has just started answers other reads from what it has replayed so far.
TEST_CASE("each read is by a quorum") {
  for (const bool with_locks : {false, true}) {
    const http::Request request = encode(kFleet, core::ReadFleet{with_locks});
    CHECK(request.target == "/v1/txn?consistent");
    CHECK(request.only_reads);
  }
  CHECK(encode(kFleet, core::ProbeSingle{}).target == "/v1/txn?consistent");
  CHECK(encode(kFleet, core::ReadCount{}).target == "/v1/kv/l/q/partitions?consistent");
}

TEST_CASE("an unreadable answer is an error that says where") {
  const auto error_of = [](const http::Response& response) {
    return decode(kFleet, core::ReadFleet{}, response).error;
  };
  CHECK(error_of(applied({entry("l/q/partitions", "many", 9)})).find("l/q/partitions") == 0);
  CHECK_FALSE(error_of(reply(500, "no cluster leader")).empty());
  CHECK_FALSE(error_of(reply(200, "<html>")).empty());
  const auto refused = [](int status, const std::string& body) {
    return decode(kFleet, core::ReadFleet{}, reply(status, body)).refused;
  };
  CHECK(refused(403, "Permission denied"));
  CHECK_FALSE(refused(500, "No cluster leader"));
}

TEST_CASE("the number is written if there is none, and only if no lock has changed") {
  const json first = json::parse(encode(kFleet, core::CreateCount{16, {}}, WallTime{}).body);
  REQUIRE(first.size() == 2);
  for (const json& op : first) {
    CHECK(op["KV"]["Verb"] == "cas");
    CHECK_FALSE(op["KV"].contains("Index"));  // 0: it must not exist
  }
  core::FleetRead::Lock leader{"l/q/leader", {}}, other{"l/q/leader/4/1", {}};
  leader.read.modify_index = 42;
  other.read.modify_index = 43;
  const json after =
      json::parse(encode(kFleet, core::CreateCount{16, {leader, other}}, WallTime{}).body);
  REQUIRE(after.size() == 3);
  CHECK(after[0]["KV"] == json{{"Verb", "check-index"}, {"Key", "l/q/leader/4/1"}, {"Index", 43}});
  check_members(after[1]["KV"], {{"Key", "l/q/leader"}, {"Index", 42}});
  CHECK(after[2]["KV"]["Key"] == "l/q/partitions");
}

TEST_CASE("the flags of the number tell by which serialize_by it divides") {
  Binding other = kFleet;
  other.layout.serialize_by = "/taskPara/host";
  const auto written_by = [](const Binding& binding) {
    const json body = json::parse(encode(binding, core::CreateCount{16, {}, 9}, WallTime{}).body);
    CHECK(body[1]["KV"]["Index"] == 9);
    return body[1]["KV"].value("Flags", std::uint64_t{0});
  };
  CHECK(written_by(kFleet) == 0);
  CHECK(written_by(other) == 15501096059404245272U);  // on every host, in every version
  const auto differs = [](const Binding& binding, std::uint64_t flags) {
    json number = json::parse(entry("l/q/partitions", "16", 9));
    number["Flags"] = flags;
    return decode(binding, core::ReadFleet{true}, applied({number.dump()})).maps_otherwise;
  };
  CHECK_FALSE(differs(kFleet, 0));
  CHECK(differs(kFleet, written_by(other)));
  CHECK_FALSE(differs(other, written_by(other)));
  CHECK(differs(other, 0));
  CHECK(contains(encode(other, core::ChangeCount{4, 1, 9, "s"}).body, R"("Flags":155010960594)"));
}

TEST_CASE("the number changes under the locks of the session, and one needs no number") {
  const json to_four = json::parse(encode(kFleet, core::ChangeCount{4, 2, 9, "s"}).body);
  REQUIRE(to_four.size() == 3);
  CHECK(to_four[1]["KV"] ==
        json{{"Verb", "check-session"}, {"Key", "l/q/leader/2/1"}, {"Session", "s"}});
  check_members(to_four[2]["KV"], {{"Verb", "cas"}, {"Index", 9}});
  const json to_one = json::parse(encode(kFleet, core::ChangeCount{1, 2, 9, "s"}).body);
  CHECK(to_one[2]["KV"] == json{{"Verb", "delete-cas"}, {"Key", "l/q/partitions"}, {"Index", 9}});
  // A transaction takes 64 operations.
  CHECK(json::parse(encode(kFleet, core::ChangeCount{4, 256, 9, "s"}).body).size() <= 64);
}

TEST_CASE("a lost lock is deleted unless it has changed since") {
  core::DeleteLocks ask;
  for (int i = 0; i < 100; ++i) ask.locks.push_back({"l/q/leader/100/" + std::to_string(i), {}});
  ask.locks[1].read.modify_index = 43;
  const json ops = json::parse(encode(kFleet, ask).body);
  CHECK(ops.size() <= 64);
  CHECK(ops[1]["KV"] == json{{"Verb", "delete-cas"}, {"Key", "l/q/leader/100/1"}, {"Index", 43}});
}

TEST_CASE("a number that may not be written: the error has the rules to grant") {
  const auto read = [](const http::Response& response) {
    return decode(kFleet, core::ChangeCount{}, response);
  };
  const core::DivisionReply refused = read(failed("Permission denied", 1));
  CHECK(refused.answer == Answer::kRefused);
  CHECK(refused.error.starts_with("Permission denied; "));
  CHECK(contains(refused.error, R"(key "l/q/partitions" { policy = "write" })"));
  CHECK(contains(refused.error, R"(key_prefix "l/q/leader/" { policy = "write" })"));
  const core::DivisionReply late = read(failed("index is stale", 1));
  CHECK(late.answer == Answer::kNo);
  CHECK(late.error == "index is stale");
  CHECK(read(reply(500, "no leader")).answer == Answer::kUnknown);
  CHECK(read(reply(429, "slow down")).answer == Answer::kUnknown);
  CHECK(read(reply(400, "bad request")).answer == Answer::kRefused);
}

TEST_CASE("a missing number is proved, or the token may not ask") {
  const auto read = [](const http::Response& response) {
    return decode(kFleet, core::ProbeSingle{}, response).answer;
  };
  CHECK(read(applied({})) == Answer::kYes);
  CHECK(read(failed("Permission denied")) == Answer::kRefused);
  CHECK(read(failed("key exists")) == Answer::kUnknown);
  CHECK(read(reply(400, "bad request")) == Answer::kUnknown);
}

TEST_CASE("whether there is a number: an answer without an index is not Consul's") {
  const auto read = [](const http::Response& response) {
    return decode(kFleet, core::ReadCount{}, response).answer;
  };
  CHECK(read(found({}, 7)) == Answer::kYes);
  CHECK(read(reply(404, "", 7)) == Answer::kNo);
  CHECK(read(reply(404, "")) == Answer::kUnknown);
  CHECK(read(reply(403, "Permission denied")) == Answer::kRefused);
  CHECK(read(reply(500, "")) == Answer::kUnknown);
}

TEST_CASE("the right to another number is asked for by a transaction that cannot be applied") {
  const json asked = json::parse(encode(kFleet, core::ProbeChange{8}).body);
  REQUIRE(asked.size() == 4);
  CHECK(asked[0]["KV"] == json{{"Verb", "check-not-exists"}, {"Key", "l/q/partitions"}});
  CHECK(asked[1]["KV"] == json{{"Verb", "check-index"}, {"Key", "l/q/partitions"}, {"Index", 1}});
  CHECK(asked[2]["KV"]["Key"] == "l/q/partitions");
  CHECK(asked[3]["KV"]["Key"] == "l/q/leader/8/0");
  const auto read = [](const http::Response& response) {
    return decode(kFleet, core::ProbeChange{8}, response);
  };
  const std::pair<std::string, std::size_t> exists{"failed to check index, key doesn't exist", 1};
  CHECK(read(failed({exists})).answer == Answer::kYes);
  const core::DivisionReply refused = read(failed({exists, {"Permission denied", 3}}));
  CHECK(refused.answer == Answer::kRefused);
  CHECK(contains(refused.error, R"(key "l/q/partitions" { policy = "write" })"));
  CHECK(read(reply(500, "no leader")).answer == Answer::kUnknown);
}

TEST_CASE("claims that members have given up are read from entries that a session holds") {
  const core::ReadOwners ask{RequestId{7}};
  CHECK(encode(kFleet, ask).target == "/v1/kv/l/q/members/?recurse&consistent");
  const auto read =
      decode(kFleet, ask,
             found({entry("l/q/members/a", R"({"given_up":{"q":"i-3","r":"i-9"}})", 5, "s1"),
                    entry("l/q/members/b", R"({"given_up":{"q":"j-4"}})", 6),
                    entry("l/q/members/c", R"({"given_up":[1]})", 7, "s2"),
                    entry("l/q/members/d", "nonsense", 8, "s3"),
                    entry("l/q/members/e", R"({"given_up":{"q":5}})", 9, "s4"),
                    entry("short", R"({"given_up":{"q":"k-1"}})", 9, "s5"),
                    entry("l/q/members/a/drain", "", 9)},
                   9));
  CHECK(read.request == RequestId{7});
  CHECK(read.ok);
  CHECK(read.given_up == core::GivenUp{{"a", "i-3"}});
}

TEST_CASE("members that may not be read are refused, and a reply that is lost is neither") {
  const core::ReadOwners ask{RequestId{7}};
  const auto none = decode(kFleet, ask, reply(404, "", 9));
  CHECK(none.ok);
  CHECK(none.given_up.empty());
  const auto denied = decode(kFleet, ask, reply(403, "Permission denied"));
  CHECK_FALSE(denied.ok);
  CHECK(denied.refused);
  const char* text = "rate limit exceeded";
  for (const auto& answer : {reply(429, text), reply(500, text), reply(503, text), {}}) {
    const auto failed = decode(kFleet, ask, answer);
    CHECK_FALSE(failed.ok);
    CHECK_FALSE(failed.refused);
  }
}

TEST_CASE("the locks are reported by partition, whatever other keys are there") {
  const LocksRead read = decode_locks(
      kFleet, 2,
      found({entry("l/q/leader/2/1", R"({"node":"a"})", 12, "s"), entry("l/q/leader/2/7", "", 13)},
            14));
  REQUIRE(read.ok);
  REQUIRE(read.locks.size() == 2);
  CHECK_FALSE(read.locks[0].found);
  CHECK(read.locks[1].session == "s");
  CHECK(read.locks[1].consul_index == 14);
  const LocksRead none = decode_locks(kFleet, 2, reply(404, "", 14));
  CHECK(none.ok);
  CHECK_FALSE(none.locks[1].found);
  CHECK_FALSE(decode_locks(kFleet, 2, reply(404, "")).ok);  // not Consul's
  CHECK_FALSE(decode_locks(kFleet, 2, reply(500, "")).ok);
}

}  // namespace
}  // namespace lictor::wire
