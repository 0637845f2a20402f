// Consul's replies to any request. The first line is status and X-Consul-Index, the rest the body.

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/json_text.h"
#include "fuzz.h"
#include "wire/consul.h"
#include "wire/kv_reply.h"

namespace lictor::fuzz {
namespace {

using namespace core;
using nlohmann::json;

const wire::Layout kLayout = wire::Layout::under("lictor/", "default");

const RequestId kRequest{7};

Commit some_commit() {
  const auto record = std::make_shared<const std::string>(R"({"taskType": "T"})");
  Commit commit{kRequest, "session", {}};
  commit.ops.push_back(RestampOp{kLayout.task_key("a"), 1, record, {}, 0});
  commit.ops.push_back(FinishOp{kLayout.task_key("b"), 2, {{"app/x", "v", false, 3}}, {}});
  commit.ops.push_back(
      BuryOp{kLayout.task_key("c"), 3, record, true, {}, "failed", "e", {}, {}, 1});
  return commit;
}

// The parts of entries that lictor reads are the same when Consul writes them again.
void check_entries(std::string_view body) {
  const auto entries = wire::read_kv_entries(std::string{body});
  if (!entries) return FUZZ_REQUIRE(!entries.error().message.empty());
  std::string written{'['};
  for (const wire::KvEntry& entry : *entries) {
    written += written.size() > 1 ? ",{" : "{";
    written += "\"Key\":" + json_quoted(entry.key) + ",\"Flags\":" + std::to_string(entry.flags) +
               ",\"Value\":\"" + base64_encode(entry.value) +
               "\",\"Session\":" + json_quoted(entry.session) +
               ",\"CreateIndex\":" + std::to_string(entry.create_index) +
               ",\"ModifyIndex\":" + std::to_string(entry.modify_index) + "}";
  }
  const auto again = wire::read_kv_entries(written + "]");
  FUZZ_REQUIRE(again && again->size() == entries->size());
  for (std::size_t i = 0; i < entries->size(); ++i) {
    FUZZ_REQUIRE((*again)[i].key == (*entries)[i].key);
    FUZZ_REQUIRE((*again)[i].value == (*entries)[i].value);
    FUZZ_REQUIRE((*again)[i].session == (*entries)[i].session);
    FUZZ_REQUIRE((*again)[i].flags == (*entries)[i].flags);
    FUZZ_REQUIRE((*again)[i].create_index == (*entries)[i].create_index);
    FUZZ_REQUIRE((*again)[i].modify_index == (*entries)[i].modify_index);
  }
}

// The fast reader of names and a whole parser agree.
void check_names(std::string_view body) {
  const auto read = wire::read_key_names(std::string{body});
  if (!read) return FUZZ_REQUIRE(!read.error().message.empty());
  const json parsed = json::parse(body, nullptr, false);
  FUZZ_REQUIRE(parsed.is_array());
  std::vector<std::string> expected;
  for (const json& item : parsed) {
    if (item.is_string()) expected.push_back(item.get<std::string>());
  }
  std::sort(expected.begin(), expected.end());
  const auto& names = read->in_order();
  FUZZ_REQUIRE(std::equal(names.begin(), names.end(), expected.begin(), expected.end()));
}

template <class Record>
void check_records(const std::vector<Record>& records) {
  for (const StoredRecord& record : records) {
    if (const auto* bad = std::get_if<BadRecord>(&record)) FUZZ_REQUIRE(!bad->error.empty());
  }
}

void check_listing(const http::Response& response) {
  const auto listed = wire::decode(kLayout, ListTasks{kRequest, 0}, response);
  FUZZ_REQUIRE(listed.request == kRequest);
  FUZZ_REQUIRE(listed.ok == listed.error.empty());
  FUZZ_REQUIRE(listed.ok || listed.keys.size() == 0);
  for (const auto key : listed.keys.in_order()) FUZZ_REQUIRE(kLayout.task_id(key));
}

void check_fetch(const http::Response& response) {
  const FetchTasks fetch{kRequest, {kLayout.task_key("a"), kLayout.task_key("b")}};
  const auto fetched = wire::decode(kLayout, fetch, response);
  FUZZ_REQUIRE(fetched.ok == fetched.error.empty());
  check_records(fetched.records);
  for (const auto* keys : {&fetched.missing, &fetched.folders}) {
    for (const std::string& key : *keys) {
      FUZZ_REQUIRE(key == fetch.keys[0] || key == fetch.keys[1]);
    }
  }
}

void check_versions(const http::Response& response) {
  const CheckTasks check{kRequest, {{kLayout.task_key("a"), 1}, {kLayout.task_key("b"), 2}}};
  const auto checked = wire::decode(check, response);
  FUZZ_REQUIRE(checked.ok == checked.error.empty());
  for (const auto* keys : {&checked.changed, &checked.missing}) {
    for (const std::string& key : *keys) {
      FUZZ_REQUIRE(key == check.versions[0].key || key == check.versions[1].key);
    }
  }
}

void check_commit(const http::Response& response) {
  const Commit commit = some_commit();
  const auto committed = wire::decode(commit, response);
  FUZZ_REQUIRE(committed.outcome != Outcome::kUnknown || !committed.error.empty());
  FUZZ_REQUIRE(committed.outcome == Outcome::kRejected || committed.failures.empty());
  // A write that was refused without a reason would never be tried again.
  FUZZ_REQUIRE(committed.outcome != Outcome::kRejected || !committed.failures.empty());
  for (const auto& failure : committed.failures) {
    FUZZ_REQUIRE(failure.op == Committed::kFence || failure.op < commit.ops.size());
  }
}

void check_sessions_and_locks(const http::Response& response) {
  const auto created = wire::decode(CreateSession{kRequest}, response);
  FUZZ_REQUIRE((created.outcome == Outcome::kApplied) == !created.session.empty());
  FUZZ_REQUIRE((created.outcome == Outcome::kApplied) == created.error.empty());
  static_cast<void>(wire::decode(RenewSession{kRequest, "session"}, response));
  static_cast<void>(wire::decode(DestroySession{kRequest, "session"}, response));
  const auto lock = wire::decode(AcquireLock{kRequest, "session"}, response);
  FUZZ_REQUIRE(lock.answer == LockReplied::Answer::kAcquired || !lock.error.empty());
  static_cast<void>(wire::decode(ReleaseLock{kRequest, "session", 1}, response));
}

void check_single_keys(const http::Response& response) {
  const auto leader = wire::decode(ReadLeader{kRequest, true, 0}, response);
  FUZZ_REQUIRE(leader.ok == leader.error.empty());
  FUZZ_REQUIRE(leader.session.empty() || !leader.holder.empty());
  const auto control = wire::decode(WatchControl{kRequest, 0}, response);
  FUZZ_REQUIRE((control.ok && !control.unreadable) == control.error.empty());
  FUZZ_REQUIRE(!control.unreadable || (control.ok && control.paused && !control.by.empty()));
  const auto history = wire::decode(kLayout, ListHistory{kRequest}, response);
  FUZZ_REQUIRE(history.ok == history.error.empty());
  const auto bucket = wire::decode(ReadRate{kRequest}, response);
  FUZZ_REQUIRE(bucket.ok == bucket.error.empty());
  wire::ScheduleCache cache;
  const auto schedules = wire::decode(kLayout, ListSchedules{kRequest, 0}, response, cache);
  FUZZ_REQUIRE(schedules.ok == schedules.error.empty());
  for (const auto& entry : schedules.entries) {
    FUZZ_REQUIRE((entry.definition == nullptr) == !entry.error.empty());
  }
}

}  // namespace
}  // namespace lictor::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lictor;
  std::string_view text = fuzz::text_of(data, size);
  std::string line{fuzz::take_until(text, "\n")};
  http::Response response;
  response.delivery = http::Delivery::kReplied;
  char* rest = line.data();
  response.status = static_cast<int>(std::strtol(rest, &rest, 10));
  response.consul_index = std::strtoull(rest, &rest, 10);
  response.body = text;
  FUZZ_REQUIRE(!wire::describe(response).empty());

  fuzz::check_entries(text);
  fuzz::check_names(text);
  fuzz::check_listing(response);
  fuzz::check_versions(response);
  fuzz::check_fetch(response);
  fuzz::check_commit(response);
  fuzz::check_sessions_and_locks(response);
  fuzz::check_single_keys(response);
  return 0;
}
