#include "model_store.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "wire/record.h"

namespace lictor::core::test {
namespace {

using nlohmann::ordered_json;

std::string ms_text(WallTime time) { return std::to_string(time.time_since_epoch().count()); }

std::string json_text(const Task& task) {
  ordered_json json;
  json["taskId"] = task.id;
  json["taskType"] = task.type;
  json["taskTaken"] = "false";
  json["taskPara"] = {{"what", *task.record}};
  if (task.task_time) json["taskTime"] = ms_text(*task.task_time);
  if (task.execute_at) json["executeAt"] = ms_text(*task.execute_at);
  if (task.expire_at) json["expireAt"] = ms_text(*task.expire_at);
  if (!task.serial_key.empty()) json["serialKey"] = task.serial_key;
  if (task.timeout) {
    json["timeout"] =
        std::to_string(std::chrono::ceil<std::chrono::milliseconds>(*task.timeout).count()) + "ms";
  }
  return json.dump();
}

}  // namespace

FakeStore::FakeStore(std::uint64_t seed) : model_({seed, "dev"}) {
  binding_.layout = wire::Layout::under("", "");
  binding_.layout.tasks_prefix = std::string{kTasks};
  binding_.layout.leader_key = "leader";
  binding_.layout.dead_prefix = "dead/";
  binding_.layout.done_prefix = "done/";
  binding_.layout.control_key = "control";
  binding_.session_checks.clear();
  binding_.queue = "sim";
}

http::Response FakeStore::ask(const http::Request& request) const {
  auto response = model_.handle(now_, request, true);
  if (!response) return {};
  response->elapsed = std::chrono::microseconds{100};
  return *response;
}

void FakeStore::write(const std::string& method, const std::string& target, std::string body) {
  http::Request request;
  request.method = method;
  request.target = target;
  request.body = std::move(body);
  static_cast<void>(ask(request));
}

std::string FakeStore::create_session(Instant now, Duration ttl, Duration lock_delay) {
  now_ = now;
  binding_.session_ttl = ttl;
  binding_.lock_delay = lock_delay;
  const CreateSession effect{RequestId{1}};
  return wire::decode(effect, ask(wire::encode(binding_, effect))).session;
}

bool FakeStore::renew(Instant now, const std::string& session) {
  now_ = now;
  const RenewSession effect{RequestId{1}, session};
  return wire::decode(effect, ask(wire::encode(binding_, effect))).answer ==
         SessionRenewed::Answer::kAlive;
}

void FakeStore::destroy(Instant now, const std::string& session) {
  now_ = now;
  if (session.empty()) return;
  const DestroySession effect{RequestId{1}, session};
  static_cast<void>(ask(wire::encode(binding_, effect)));
}

LockReplied FakeStore::lock(Instant now, const AcquireLock& effect, const std::string& node) {
  now_ = now;
  binding_.leader_value = R"({"node":")" + node + R"("})";
  return wire::decode(effect, ask(wire::encode(binding_, effect)));
}

UnlockReplied FakeStore::unlock(const ReleaseLock& effect) {
  return wire::decode(effect, ask(wire::encode(binding_, effect)));
}

LeaderRead FakeStore::read_leader(const ReadLeader& effect) const {
  return wire::decode(effect, ask(wire::encode(binding_, effect)));
}

ControlRead FakeStore::read_control(const WatchControl& effect) const {
  return wire::decode(effect, ask(wire::encode(binding_, effect)));
}

void FakeStore::translate(StoredRecord& stored) const {
  auto* task = std::get_if<Task>(&stored);
  if (task == nullptr) return;
  const auto known = record_of_.find(wire::unstamped_record(*task->record));
  if (known != record_of_.end()) task->record = known->second;
}

TasksListed FakeStore::list(const ListTasks& effect) const {
  TasksListed reply = wire::decode(binding_.layout, effect, ask(wire::encode(binding_, effect)));
  for (StoredRecord& record : reply.records) translate(record);
  return reply;
}

TasksFetched FakeStore::fetch(const FetchTasks& effect) const {
  TasksFetched reply = wire::decode(binding_.layout, effect, ask(wire::encode(binding_, effect)));
  for (StoredRecord& record : reply.records) translate(record);
  return reply;
}

HistoryListed FakeStore::list(const ListHistory& effect) const {
  return wire::decode(binding_.layout, effect, ask(wire::encode(binding_, effect)));
}

// With the JSON in place of the names of records.
Commit FakeStore::worded(const Commit& commit) const {
  Commit copy = commit;
  const auto word = [this](std::shared_ptr<const std::string>& record) {
    const auto known = json_of_.find(*record);
    if (known != json_of_.end()) record = std::make_shared<const std::string>(known->second);
  };
  for (Op& op : copy.ops) {
    if (auto* restamp = std::get_if<RestampOp>(&op)) {
      word(restamp->record);
    } else if (auto* bury = std::get_if<BuryOp>(&op); bury != nullptr && bury->readable) {
      word(bury->record);
    } else if (auto* finish = std::get_if<FinishOp>(&op); finish != nullptr && finish->done) {
      auto done = *finish->done;
      if (done.record) word(done.record);
      finish->done = std::make_shared<const DoneRecord>(std::move(done));
    }
  }
  return copy;
}

Committed FakeStore::commit(const Commit& commit) {
  std::set<std::string> there;  // finished tasks that were still there
  for (const Op& op : commit.ops) {
    const auto* finish = std::get_if<FinishOp>(&op);
    if (const Task* ended = finish == nullptr ? nullptr : task(finish->key)) {
      there.insert(*ended->record);
    }
  }
  const Commit json = worded(commit);
  Committed reply;
  if (commit.plain) {
    std::size_t step = 0;
    for (const http::Request& request : wire::encode_plain(binding_, json)) {
      reply = wire::decode_plain(json, step++, ask(request));
      if (reply.outcome != Outcome::kUnknown) return reply;
    }
  } else {
    reply = wire::decode(json, ask(wire::encode(binding_, json)));
    if (reply.outcome != Outcome::kApplied) return reply;
  }
  note(commit, there);
  return reply;
}

void FakeStore::note(const Commit& commit, const std::set<std::string>& there) {
  finished.insert(finished.end(), there.begin(), there.end());
  for (const Op& op : commit.ops) {
    if (const auto* bury = std::get_if<BuryOp>(&op)) {
      dead.emplace(binding_.layout.dead_key(bury->key, bury->copy), *bury);
    } else if (const auto* finish = std::get_if<FinishOp>(&op)) {
      for (const KvWrite& each : finish->writes) ++app_writes[each.key + "=" + each.value];
    }
  }
}

void FakeStore::put(const Task& task) {
  const std::string json = json_text(task);
  json_of_[*task.record] = json;
  record_of_[wire::unstamped_record(json)] = task.record;
  write("PUT", "/v1/kv" + ("/" + task.key), json);
}

void FakeStore::put_bad(const std::string& key, const std::string& bytes, const std::string&) {
  write("PUT", "/v1/kv/" + key, bytes);
}

void FakeStore::remove(const std::string& key) { write("DELETE", "/v1/kv/" + key); }

void FakeStore::overwrite_leader_key() { write("PUT", "/v1/kv/leader", "a stranger"); }

void FakeStore::control(bool paused, const std::string& step_down) {
  ordered_json json = ordered_json::object();
  if (paused) json["paused"] = true;
  if (!step_down.empty()) json["step_down"] = {{"id", step_down}};
  write("PUT", "/v1/kv/control", json.dump());
}

void FakeStore::expire_sessions(Instant now) {
  now_ = now;
  model_.advance(now);
}

const Task* FakeStore::task(const std::string& key) const {
  const TasksFetched reply = fetch({RequestId{1}, {key}});
  found_.reset();
  if (reply.records.empty()) return nullptr;
  if (const auto* found = std::get_if<Task>(&reply.records.front())) found_ = *found;
  return found_ ? &*found_ : nullptr;
}

bool FakeStore::has(const std::string& key) const {
  return !fetch({RequestId{1}, {key}}).records.empty();
}

std::vector<std::string> FakeStore::task_keys() const {
  return list({RequestId{1}, false, true, 0}).keys;
}

const std::string& FakeStore::leader_session() const {
  session_ = read_leader({RequestId{1}, true, 0}).session;
  return session_;
}

std::uint64_t FakeStore::leader_index() const {
  return read_leader({RequestId{1}, true, 0}).consul_index;
}

std::uint64_t FakeStore::control_index() const {
  return read_control({RequestId{1}, 0}).consul_index;
}

}  // namespace lictor::core::test
