#include "model_store.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "fault.h"
#include "simple_costs.h"
#include "wire/record.h"
#include "wire/txn.h"

namespace lictor::core::test {
namespace {

using nlohmann::ordered_json;

// A deposed leader's server that was frozen for as long (consul.md 5).
constexpr Duration kMostStale = std::chrono::seconds{30};

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

// A third of the seeds have a Consul of 1.21.5 or newer.
FakeStore::FakeStore(std::uint64_t seed) : model_({seed, "dev", seed % 3 == 0}) {
  binding_.layout = wire::Layout::under("", "");
  binding_.layout.tasks_prefix = std::string{kTasks};
  binding_.layout.leader_key = "leader";
  binding_.layout.dead_prefix = "dead/";
  binding_.layout.done_prefix = "done/";
  binding_.layout.control_key = "control";
  binding_.layout.partitions_key = "partitions";
  binding_.layout.members_prefix = "members/";
  binding_.layout.rate_key = "rate";
  binding_.layout.schedules_prefix = "schedules/";
  binding_.session_checks.clear();
  binding_.queue = "sim";
}

std::optional<http::Response> FakeStore::ask(const http::Request& request, bool over) const {
  const Tamper how = tampering_.how;
  const bool unavailable = how == Tamper::kError || how == Tamper::kBadGateway;
  http::Response refusal;
  refusal.delivery = http::Delivery::kReplied;
  refusal.status = how == Tamper::kTooMany ? 429 : how == Tamper::kError ? 500 : 502;
  carried_out_ = false;
  if (how == Tamper::kTooMany || (unavailable && tampering_.where < 0.5)) {
    ++tampered_[how];
    return refusal;
  }
  model_.limit_operations(most_operations);
  auto response = model_.handle(now_, request, over);
  if (!response) return std::nullopt;
  carried_out_ = response->status == 200 && response->body != "false";
  if (unavailable) {
    ++tampered_[how];
    return refusal;
  }
  response->elapsed = std::chrono::microseconds{100};
  if (remembers || how != Tamper::kNone) spoil(request, *response);
  return response;
}

http::Response FakeStore::ask(const http::Request& request) const {
  return ask(request, true).value_or(http::Response{});
}

// A server that lags answers with what was true a while ago; a proxy ends a body early.
void FakeStore::spoil(const http::Request& request, http::Response& response) const {
  constexpr std::size_t kMost = 8;
  const Tamper how = tampering_.how;
  const bool get = request.method == "GET";
  const bool read = get || request.only_reads;
  const bool indexed = get && response.consul_index != 0;
  const auto part = [&](std::uint64_t whole) {
    return static_cast<std::uint64_t>(tampering_.where * static_cast<double>(whole));
  };
  std::optional<http::Response> old;
  if (read) {
    const bool consistent = request.target.find("consistent") != std::string::npos;
    auto& earlier =
        earlier_[request.target.substr(0, request.target.find_first_of("&?")) +
                 (request.target.find("?recurse") != std::string::npos ? "?" : "") + request.body];
    while (!earlier.empty() && earlier.front().first < now_ - kMostStale) earlier.pop_front();
    if (how == Tamper::kStale && !consistent && !earlier.empty()) {
      old = earlier[part(earlier.size())].second;
    }
    earlier.emplace_back(now_, response);
    if (earlier.size() > kMost) earlier.pop_front();
  }
  if (old) {
    response = *std::move(old);
  } else if (how == Tamper::kRewound && indexed) {
    response.consul_index = 1 + part(response.consul_index - 1);
  } else if (how == Tamper::kNoIndex && indexed) {
    response.consul_index = 0;
  } else if (how == Tamper::kCut && !response.body.empty()) {
    response.body.resize(part(response.body.size()));
  } else {
    return;
  }
  ++tampered_[how];
}

void FakeStore::write(const std::string& method, const std::string& target, std::string body) {
  http::Request request;
  request.method = method;
  request.target = target;
  request.body = std::move(body);
  static_cast<void>(model_.handle(now_, request, true));
}

// By a transaction, since a producer's name may fit no path.
void FakeStore::set(const std::string& key, const std::string& value, std::uint64_t flags) {
  wire::Txn txn;
  txn.verb("set", key).flags(flags).value(value);
  write("PUT", "/v1/txn", std::move(txn).body());
}

void FakeStore::remove(const std::string& key) {
  wire::Txn txn;
  txn.verb("delete", key);
  write("PUT", "/v1/txn", std::move(txn).body());
}

SessionCreated FakeStore::create_session(Instant now, const CreateSession& effect, Duration ttl,
                                         Duration lock_delay) {
  now_ = now;
  binding_.session_ttl = ttl;
  binding_.lock_delay = lock_delay;
  return wire::decode(effect, ask(wire::encode(binding_, effect)));
}

SessionRenewed FakeStore::renew(Instant now, const RenewSession& effect) {
  now_ = now;
  return wire::decode(effect, ask(wire::encode(binding_, effect)));
}

SessionDestroyed FakeStore::destroy(Instant now, const DestroySession& effect) {
  now_ = now;
  return wire::decode(effect, ask(wire::encode(binding_, effect)));
}

void FakeStore::destroy(Instant now, const std::string& session) {
  now_ = now;
  model_.invalidate_session(now, session);
}

LockReplied FakeStore::lock(Instant now, const AcquireLock& effect, const std::string& node,
                            std::uint64_t incarnation) {
  now_ = now;
  binding_.leader_value =
      R"({"node":")" + node + R"(","incarnation":)" + std::to_string(incarnation) + '}';
  return wire::decode(effect, ask(wire::encode(binding_, effect, WallTime{})));
}

UnlockReplied FakeStore::unlock(const ReleaseLock& effect) {
  return wire::decode(effect, ask(wire::encode(binding_, effect, WallTime{})));
}

LeaderRead FakeStore::read_leader(const ReadLeader& effect) const {
  return wire::decode(effect, ask(wire::encode(binding_, effect)));
}

ControlRead FakeStore::read_control(const WatchControl& effect) const {
  return wire::decode(effect, ask(wire::encode(binding_, effect)));
}

// Every write of the store has every waiting query asked again, and of these there are hundreds.
std::optional<LeaderRead> FakeStore::poll(const ReadLeader& effect, bool over) const {
  if (!over && tampering_.how == Tamper::kNone) {
    const dev::KvRecord* leader = find(binding_.layout.lock_key(effect.partition));
    if (leader != nullptr && leader->modify_index <= effect.index) return std::nullopt;
  }
  const auto response = ask(wire::encode(binding_, effect), over);
  if (!response) return std::nullopt;
  return wire::decode(effect, *response);
}

std::optional<ControlRead> FakeStore::poll(const WatchControl& effect, bool over) const {
  const auto response = ask(wire::encode(binding_, effect), over);
  if (!response) return std::nullopt;
  return wire::decode(effect, *response);
}

std::optional<TasksListed> FakeStore::poll(const ListTasks& effect, bool over) const {
  const auto response = ask(wire::encode(binding_, effect), over);
  if (!response) return std::nullopt;
  return wire::decode(binding_.layout, effect, *response);
}

std::optional<SchedulesListed> FakeStore::poll(const ListSchedules& effect, bool over) const {
  const auto response = ask(wire::encode(binding_, effect), over);
  if (!response) return std::nullopt;
  return wire::decode(binding_.layout, effect, *response, schedules_);
}

void FakeStore::translate(StoredRecord& stored) const {
  auto* task = std::get_if<Task>(&stored);
  if (task == nullptr) return;
  auto& record = seen_[*task->record];
  if (!record) {
    const auto known = record_of_.find(wire::unstamped_record(*task->record));
    record = known == record_of_.end() ? task->record : known->second;
  }
  task->record = std::make_shared<const std::string>(*record);  // each answer has its own
}

TasksListed FakeStore::list(const ListTasks& effect) const {
  return wire::decode(binding_.layout, effect, ask(wire::encode(binding_, effect)));
}

TasksFetched FakeStore::fetch(const FetchTasks& effect) const {
  TasksFetched reply = wire::decode(binding_.layout, effect, ask(wire::encode(binding_, effect)));
  for (StoredRecord& record : reply.records) translate(record);
  return reply;
}

TasksChecked FakeStore::check(const CheckTasks& effect) const {
  return wire::decode(effect, ask(wire::encode(binding_, effect)));
}

HistoryListed FakeStore::list(const ListHistory& effect) const {
  return wire::decode(binding_.layout, effect, ask(wire::encode(binding_, effect)));
}

SchedulesListed FakeStore::list(const ListSchedules& effect) const {
  return wire::decode(binding_.layout, effect, ask(wire::encode(binding_, effect)), schedules_);
}

RateRead FakeStore::read(const ReadRate& effect) const {
  return wire::decode(effect, ask(wire::encode(binding_, effect)));
}

// With the JSON in place of the names of records.
Commit FakeStore::worded(const Commit& commit) const {
  Commit copy = commit;
  copy.ops = {};
  const auto word = [this](std::shared_ptr<const std::string>& record) {
    const auto known = json_of_.find(*record);
    if (known != json_of_.end()) record = std::make_shared<const std::string>(known->second);
  };
  for (Op op : commit.ops) {
    if (auto* restamp = std::get_if<RestampOp>(&op)) {
      word(restamp->record);
    } else if (auto* bury = std::get_if<BuryOp>(&op); bury != nullptr && bury->readable) {
      word(bury->record);
    } else if (auto* finish = std::get_if<FinishOp>(&op); finish != nullptr && finish->done) {
      auto done = *finish->done;
      if (done.record) word(done.record);
      finish->done = std::make_shared<const DoneRecord>(std::move(done));
    }
    copy.ops.push_back(std::move(op));
  }
  return copy;
}

Committed FakeStore::commit(const Commit& commit) {
  std::map<std::string, std::string> there;  // what a finish would delete, by key
  for (const Op& op : commit.ops) {
    const auto* finish = std::get_if<FinishOp>(&op);
    if (const Task* ended = finish == nullptr ? nullptr : task(finish->key)) {
      there[finish->key] = *ended->record;
    }
  }
  const Commit json = worded(commit);
  applied_ = false;
  last_body_.clear();
  const http::Request request = wire::encode(binding_, json);
  if (cost_of(commit).bytes > most_bytes) {
    http::Response refused;
    refused.delivery = http::Delivery::kReplied;
    refused.status = 413;
    return wire::decode(json, refused);
  }
  Committed reply = wire::decode(json, ask(request));
  applied_ = carried_out_;
  if (!applied_) {
    if (FAULT(WritesOutside)) {
      for (const Op& op : commit.ops) {
        const auto* finish = std::get_if<FinishOp>(&op);
        if (finish != nullptr) note(*finish, {});
      }
    }
    return reply;
  }
  last_body_ = request.body;
  job_writes_.clear();
  for (const Op& op : commit.ops) note(op, there);
  return reply;
}

void FakeStore::note(const Op& op, const std::map<std::string, std::string>& there) {
  if (const auto* bury = std::get_if<BuryOp>(&op)) {
    dead.emplace(binding_.layout.dead_key(bury->key) + bury->name_end(), *bury);
  } else if (const auto* finish = std::get_if<FinishOp>(&op)) {
    if (const auto it = there.find(finish->key); it != there.end()) finished.push_back(it->second);
    for (const KvWrite& each : finish->writes) {
      job_writes_.insert(each.key);
      if (!each.key.starts_with(kTasks)) ++app_writes[each.key + "=" + each.value];
    }
  }
}

std::string FakeStore::fence_fault() const {
  if (last_body_.empty()) return {};
  const auto ops = nlohmann::json::parse(last_body_, nullptr, false);
  bool first = true;
  for (const auto& item : ops) {
    const auto& op = item.at("KV");
    const auto verb = op.at("Verb").get<std::string>();
    const auto key = op.at("Key").get<std::string>();
    const std::uint64_t index = op.value("Index", std::uint64_t{0});
    if (std::exchange(first, false)) {
      if (verb != "check-session" || !key.starts_with(binding_.layout.leader_key) ||
          op.value("Session", "").empty()) {
        return "it does not begin with check-session on a lock";
      }
      continue;
    }
    const bool of_schedule =
        key.starts_with(binding_.layout.schedules_prefix) && !key.ends_with('/');
    if (!binding_.layout.task_id(key) && !of_schedule) continue;
    // A tick's task, which must not be there.
    if (!of_schedule && verb == "cas" && op.contains("Value") &&
        key.find('@') != std::string::npos) {
      continue;
    }
    if (verb == "set" && job_writes_.contains(key)) continue;
    const bool fenced = verb == "cas" || verb == "delete-cas" || verb == "check-index";
    if (!fenced || index == 0) return verb + " of " + key + " without its ModifyIndex";
  }
  return {};
}

std::vector<std::string> FakeStore::strays() const {
  std::vector<std::string> found;
  for (const auto& [key, record] : model_.state().records()) {
    const bool known = key.starts_with(kTasks) || key.starts_with("dead/") ||
                       key.starts_with("done/") || key.starts_with("app/") || key == "leader" ||
                       key.starts_with("leader/") || key == "partitions" ||
                       key.starts_with("schedules/") || key == "control" || key == "rate";
    if (!known) found.push_back(key);
  }
  return found;
}

void FakeStore::put(const Task& task) { set(task.key, value_of(task), task.flags); }

std::string FakeStore::value_of(const Task& task) {
  const std::string json = json_text(task);
  json_of_[*task.record] = json;
  record_of_[wire::unstamped_record(json)] = task.record;
  return json;
}

void FakeStore::remove_all() {
  for (const char* prefix : {"tasks/", "leader", "control", "partitions", "rate", "done/"}) {
    write("DELETE", std::string{"/v1/kv/"} + prefix + "?recurse");
  }
  learn_count();
}

void FakeStore::put_bad(const std::string& key, const std::string& bytes, const std::string&) {
  set(key, bytes, 0);
}

// A member more, beside lictor's.
void FakeStore::touch(const std::string& key, const std::string& bytes) {
  const dev::KvRecord* record = find(key);
  if (record == nullptr || !record->value.starts_with('{')) return;
  const std::string json = R"({"note":")" + bytes + "\"," + record->value.substr(1);
  const std::uint64_t flags = record->flags;
  const std::string plain = wire::unstamped_record(json);
  json_of_[bytes] = plain;
  record_of_[plain] = std::make_shared<const std::string>(bytes);
  set(key, json, flags);
}

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

const dev::KvRecord* FakeStore::find(const std::string& key) const {
  return model_.state().find(key);
}

const Task* FakeStore::task(const std::string& key) const {
  found_.reset();
  const dev::KvRecord* record = find(key);
  if (record == nullptr || !binding_.layout.task_id(key)) return nullptr;
  wire::KvEntry entry;
  entry.key = key;
  entry.value = record->value;
  entry.flags = record->flags;
  entry.create_index = record->create_index;
  entry.modify_index = record->modify_index;
  StoredRecord read = wire::read_record(binding_.layout, std::move(entry));
  translate(read);
  if (auto* found = std::get_if<Task>(&read)) found_ = std::move(*found);
  return found_ ? &*found_ : nullptr;
}

std::vector<std::string> FakeStore::task_keys() const {
  std::vector<std::string> keys;
  const auto [first, last] = model_.state().under(kTasks);
  for (auto it = first; it != last; ++it) {
    if (binding_.layout.task_id(it->first)) keys.push_back(it->first);
  }
  return keys;
}

std::uint64_t FakeStore::make_partitions(std::uint32_t count) {
  count_ = count;
  if (count == 1) {
    write("DELETE", "/v1/kv/partitions");
    return 0;
  }
  write("PUT", "/v1/kv/partitions", std::to_string(count));
  return find("partitions")->modify_index;
}

std::uint64_t FakeStore::partitions_index() const {
  const dev::KvRecord* key = find("partitions");
  return key == nullptr ? 0 : key->modify_index;
}

void FakeStore::learn_count() {
  const dev::KvRecord* key = find("partitions");
  count_ = key == nullptr ? 1 : wire::read_count(key->value).value();
}

const std::string& FakeStore::session_of(const Partition& partition) const {
  const dev::KvRecord* leader = find(binding_.layout.lock_key(partition));
  session_ = leader == nullptr ? std::string{} : leader->session;
  return session_;
}

}  // namespace lictor::core::test
