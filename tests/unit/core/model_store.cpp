#include "model_store.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "dev/answer.h"
#include "fault.h"
#include "wire/record.h"
#include "wire/schedule_record.h"
#include "wire/txn.h"

namespace lictor::core::test {
namespace {

using nlohmann::ordered_json;

// A deposed leader's server that was frozen for as long (consul.md 5).
constexpr Duration kMostStale = std::chrono::seconds{30};

std::string ms_text(WallTime time) { return std::to_string(time.time_since_epoch().count()); }

std::string json_text(const Task& task, bool has_other) {
  ordered_json json;
  json["taskId"] = task.id;
  json["taskType"] = task.type;
  json["taskTaken"] = "false";
  json["taskPara"] = {{"what", *task.record}};
  if (has_other) json["other"] = task.id + '.';
  if (task.task_time) json["taskTime"] = ms_text(*task.task_time);
  if (task.execute_at) json["executeAt"] = ms_text(*task.execute_at);
  if (task.expire_at) json["expireAt"] = ms_text(*task.expire_at);
  if (!task.serial_key.empty()) json["serialKey"] = task.serial_key;
  if (task.max_attempts) json["maxAttempts"] = *task.max_attempts;
  if (task.timeout) json["timeout"] = format_duration(*task.timeout);
  if (task.backoff) {
    json["backoff"] = {{"initial", format_duration(task.backoff->initial)},
                       {"max", format_duration(task.backoff->max)},
                       {"factor", task.backoff->factor},
                       {"jitter", task.backoff->jitter}};
  }
  return json.dump();
}

schedule::Definition defined(const std::string& name, const std::string& text) {
  thread_local schedule::Zones zones;
  return wire::read_schedule(name, text, zones).value();
}

}  // namespace

// Each cron expression is one of Rome.
std::string schedule_text(const schedule::Definition& of) {
  constexpr std::array kMissed{"skip", "once", "all"};
  constexpr std::array kOverlap{"skip", "queue", "allow"};
  ordered_json json;
  if (const auto* every = std::get_if<schedule::Every>(&of.schedule.plan().rule)) {
    json["every"] = format_duration(every->interval);
  } else if (const auto* at = std::get_if<schedule::At>(&of.schedule.plan().rule)) {
    for (const schedule::Tick tick : at->times) json["at"].push_back(schedule::tick_text(tick));
  } else {
    json["cron"] = of.rule;
    json["timezone"] = "Europe/Rome";
  }
  json["missed"] = kMissed.at(static_cast<std::size_t>(of.missed.policy));
  json["missedLimit"] = of.missed.limit;
  json["missedMaxAge"] = format_duration(of.missed.max_age);
  json["overlap"] = kOverlap.at(static_cast<std::size_t>(of.overlap));
  json["task"] = {{"taskType", "T"}};
  if (of.paused) json["paused"] = true;
  if (of.last_tick) json["lastTick"] = schedule::tick_text(*of.last_tick);
  if (!of.last_task.empty()) json["lastTask"] = of.last_task;
  if (of.configured.empty()) return json.dump();
  json["note"] = of.configured;
  return wire::as_configured(json.dump());
}

ConfiguredSchedule configured(const std::string& name, const schedule::Definition& definition,
                              bool sets_paused) {
  const std::string text = schedule_text(definition);
  return {"schedules/" + name, std::make_shared<const std::string>(text),
          std::make_shared<const schedule::Definition>(defined(name, text)), sets_paused};
}

// A third of the seeds have a Consul of 1.21.5 or newer.
ModelStore::ModelStore(std::uint64_t seed) : model_({seed, "dev", seed % 3 == 0}) {
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

std::optional<http::Response> ModelStore::ask(const http::Request& request, bool over) const {
  const Tamper how = tampering_.how;
  const bool unavailable = how == Tamper::kError || how == Tamper::kBadGateway;
  const auto error = dev::answer(how == Tamper::kTooMany ? 429 : how == Tamper::kError ? 500 : 502);
  carried_out_ = false;
  if (how == Tamper::kTooMany || (unavailable && tampering_.where < 0.5)) {
    ++tampered_[how];
    return error;
  }
  model_.limit_operations(most_operations);
  auto response = refusal(request);
  if (!response) response = model_.handle(now_, request, over);
  if (!response) return std::nullopt;
  hide(request, *response);
  carried_out_ = response->status == 200 && response->body != "false";
  if (unavailable) {
    ++tampered_[how];
    return error;
  }
  response->elapsed = std::chrono::microseconds{100};
  if (remembers || how != Tamper::kNone) spoil(request, *response);
  return response;
}

http::Response ModelStore::ask(const http::Request& request) const {
  return ask(request, true).value_or(http::Response{});
}

// Consul's answer to a transaction without the right to it (consul.md 7.2). std::nullopt: it is
// allowed.
std::optional<http::Response> ModelStore::refusal(const http::Request& request) const {
  if (no_right.empty() || request.target != "/v1/txn") return std::nullopt;
  ordered_json errors;
  std::size_t index = 0;
  for (const auto& item : nlohmann::json::parse(request.body)) {
    const auto verb = item["KV"]["Verb"].get<std::string>();
    const bool reads = verb.starts_with("get") || verb.starts_with("check-");
    if (!reads && no_right.contains(item["KV"]["Key"].get<std::string>())) {
      errors.push_back({{"OpIndex", index}, {"What", "Permission denied"}});
    }
    ++index;
  }
  if (errors.empty()) return std::nullopt;
  return dev::answer(409, ordered_json{{"Results", nullptr}, {"Errors", errors}}.dump());
}

// Without the right to read, a listing looks as if there were no keys.
void ModelStore::hide(const http::Request& request, http::Response& response) const {
  const std::string path = request.target.substr(0, request.target.find('?'));
  const auto is_it = [&](const std::string& key) { return path == wire::kv_path(key); };
  if (std::none_of(unreadable.begin(), unreadable.end(), is_it)) return;
  response.body.clear();
  response.status = path.ends_with('/') ? 404 : 403;
  if (response.status == 403) response.consul_index = 0;
}

// A server that lags gives an answer from a while ago; a proxy ends a body early.
void ModelStore::spoil(const http::Request& request, http::Response& response) const {
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

void ModelStore::request(const std::string& method, const std::string& target, std::string body) {
  http::Request request;
  request.method = method;
  request.target = target;
  request.body = std::move(body);
  static_cast<void>(model_.handle(now_, request, true));
}

// Writes by a transaction if the name may fit no path.
void ModelStore::write(const std::string& key, const std::string& value, std::uint64_t flags) {
  if (key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789/") == std::string::npos) {
    return request("PUT", "/v1/kv/" + key + "?flags=" + std::to_string(flags), value);
  }
  wire::Txn txn;
  txn.verb("set", key).flags(flags).value(value);
  request("PUT", "/v1/txn", std::move(txn).body());
}

void ModelStore::remove(const std::string& key) {
  wire::Txn txn;
  txn.verb("delete", key);
  request("PUT", "/v1/txn", std::move(txn).body());
}

void ModelStore::speak_for(const std::string& node, std::uint64_t incarnation, Duration ttl,
                           Duration lock_delay) {
  binding_.session_ttl = ttl;
  binding_.lock_delay = lock_delay;
  binding_.leader_value =
      R"({"node":")" + node + R"(","incarnation":)" + std::to_string(incarnation) + '}';
}

void ModelStore::destroy(Instant now, const std::string& session) {
  now_ = now;
  model_.invalidate_session(now, session);
}

// Every write of the store has every waiting query asked again, and of these there are hundreds.
std::optional<LeaderRead> ModelStore::poll(const ReadLeader& effect, bool over) const {
  if (!over && tampering_.how == Tamper::kNone) {
    const dev::KvRecord* leader = find(binding_.layout.lock_key(effect.partition));
    if (leader != nullptr && leader->modify_index <= effect.index) return std::nullopt;
  }
  const auto response = ask(request_of(effect), over);
  if (!response) return std::nullopt;
  return wire::decode(effect, *response);
}

SchedulesListed ModelStore::read_back(const ListSchedules& ask,
                                      const http::Response& response) const {
  SchedulesListed reply = wire::decode(binding_.layout, ask, response, schedules_);
  for (auto& entry : reply.entries) {
    if (const auto it = updated.find(entry.name); it != updated.end()) {
      entry.definition = it->second;
    }
  }
  return reply;
}

void ModelStore::translate(StoredRecord& stored) const {
  auto* task = std::get_if<Task>(&stored);
  if (task == nullptr) return;
  auto& record = seen_[*task->record];
  if (!record) {
    const auto known = record_of_.find(wire::unstamped_record(*task->record));
    record = known == record_of_.end() ? task->record : known->second;
  }
  task->record = std::make_shared<const std::string>(*record);  // each answer has its own
}

TasksFetched ModelStore::serve(Instant now, const FetchTasks& effect) {
  now_ = now;
  TasksFetched reply = read_back(effect, ask(request_of(effect)));
  for (StoredRecord& record : reply.records) translate(record);
  return reply;
}

// With the JSON in place of the names of records.
Commit ModelStore::worded(const Commit& commit) const {
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

void ModelStore::check_costs(const Commit& commit, const std::string& body) {
  const auto plan = costs(binding_.node);
  Cost counted = plan->fence(commit.partition_count, commit.partitions.size());
  for (const Op& op : commit.ops) counted += plan->cost(op);
  std::size_t operations = 0;
  for (std::size_t at = 0; (at = body.find(R"("Verb":)", at)) != std::string::npos; ++at) {
    ++operations;
  }
  cost_fault_.clear();
  if (operations != counted.operations || body.size() > counted.bytes) {
    cost_fault_ = std::to_string(operations) + " operations and " + std::to_string(body.size()) +
                  " bytes, where " + std::to_string(counted.operations) + " and at most " +
                  std::to_string(counted.bytes) + " are counted";
  }
}

Committed ModelStore::serve(Instant now, const Commit& commit) {
  now_ = now;
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
  check_costs(json, request.body);
  if (request.body.size() > most_bytes) return wire::decode(json, dev::answer(413));
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

void ModelStore::note(const Op& op, const std::map<std::string, std::string>& there) {
  if (const auto* bury = std::get_if<BuryOp>(&op)) {
    dead.emplace(binding_.layout.dead_key(bury->key) + bury->name_end(), *bury);
  } else if (const auto* tick = std::get_if<ScheduleOp>(&op)) {
    if (tick->makes_task) ++ticks[schedule::tick_id(tick->name, tick->last)];
  } else if (const auto* finish = std::get_if<FinishOp>(&op)) {
    if (const auto it = there.find(finish->key); it != there.end()) finished.push_back(it->second);
    for (const KvWrite& each : finish->writes) {
      job_writes_.insert(each.key);
      if (!each.key.starts_with(kTasks)) ++app_writes[each.key + "=" + each.value];
    }
  }
}

std::string ModelStore::fence_fault() const {
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

std::vector<std::string> ModelStore::strays() const {
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

void ModelStore::put(const Task& task) {
  const std::string value = value_of(task);
  write(task.key, task.stamp == Stamp{} ? value : wire::restamp_record(value, task.stamp),
        task.flags);
}

std::string ModelStore::value_of(const Task& task) {
  const std::string json = json_text(task, has_other);
  json_of_[*task.record] = json;
  record_of_[json] = task.record;
  return json;
}

void ModelStore::remove_all() {
  for (const char* prefix : {"tasks/", "leader", "control", "partitions", "rate", "done/"}) {
    remove_tree(prefix);
  }
  learn_count();
}

// A member more, beside lictor's.
void ModelStore::touch(const std::string& key, const std::string& bytes) {
  const dev::KvRecord* record = find(key);
  if (record == nullptr || !record->value.starts_with('{')) return;
  const std::string json = R"({"note":")" + bytes + "\"," + record->value.substr(1);
  const std::uint64_t flags = record->flags;
  const std::string plain = wire::unstamped_record(json);
  json_of_[bytes] = plain;
  record_of_[plain] = std::make_shared<const std::string>(bytes);
  write(key, json, flags);
}

void ModelStore::control(bool paused, const std::string& step_down) {
  ordered_json json = ordered_json::object();
  if (paused) json["paused"] = true;
  if (!step_down.empty()) json["step_down"] = {{"id", step_down}};
  write("control", json.dump());
}

void ModelStore::expire_sessions(Instant now) {
  now_ = now;
  model_.advance(now);
}

const dev::KvRecord* ModelStore::find(const std::string& key) const {
  return model_.state().find(key);
}

// Each version is read once: the oracle asks for all tasks again and again.
const Task* ModelStore::task(const std::string& key) const {
  const dev::KvRecord* record = find(key);
  if (record == nullptr || !binding_.layout.task_id(key)) return nullptr;
  auto& [index, task] = read_[key];
  if (std::exchange(index, record->modify_index) != record->modify_index) {
    wire::KvEntry entry;
    entry.key = key;
    entry.value = record->value;
    entry.flags = record->flags;
    entry.create_index = record->create_index;
    entry.modify_index = record->modify_index;
    StoredRecord stored = wire::read_record(binding_.layout, std::move(entry));
    translate(stored);
    const auto* read = std::get_if<Task>(&stored);
    task = read == nullptr ? std::nullopt : std::optional{*read};
  }
  return task ? &*task : nullptr;
}

Keys ModelStore::keys(std::string_view prefix) const {
  Keys keys;
  const auto [first, last] = model_.state().under(prefix);
  for (auto it = first; it != last; ++it) {
    if (!it->first.ends_with('/')) keys.push_back(it->first);
  }
  return keys;
}

// The folder key is the first under its prefix.
bool ModelStore::has_tasks() const {
  const auto first = model_.state().records().upper_bound(kTasks);
  return first != model_.state().records().end() && first->first.starts_with(kTasks);
}

void ModelStore::put_schedule(const std::string& name,
                              const std::shared_ptr<const schedule::Definition>& what) {
  write(binding_.layout.schedule_key(name), what ? schedule_text(*what) : "nonsense");
}

schedule::Definition ModelStore::schedule(const std::string& name) const {
  return defined(name, find(binding_.layout.schedule_key(name))->value);
}

std::uint64_t ModelStore::make_partitions(std::uint32_t count) {
  count_ = count;
  if (count == 1) {
    remove("partitions");
    return 0;
  }
  write("partitions", std::to_string(count));
  return find("partitions")->modify_index;
}

std::uint64_t ModelStore::partitions_index() const {
  const dev::KvRecord* key = find("partitions");
  return key == nullptr ? 0 : key->modify_index;
}

std::uint32_t ModelStore::partition_of(const Task& task) const {
  const dev::KvRecord* key = find("partitions");
  const bool by_other = key != nullptr && key->flags != 0 && task.serial_key.empty();
  return core::partition_of(by_other ? task.id + '.' : task.serial_key, task.id, count_);
}

void ModelStore::restore(Instant now, const dev::State& snapshot) {
  model_.restore(now, snapshot);
  read_.clear();
  learn_count();
}

void ModelStore::learn_count() {
  const dev::KvRecord* key = find("partitions");
  count_ = key == nullptr ? 1 : wire::read_count(key->value).value();
}

const std::string& ModelStore::session_of(const Partition& partition) const {
  const dev::KvRecord* leader = find(binding_.layout.lock_key(partition));
  session_ = leader == nullptr ? std::string{} : leader->session;
  return session_;
}

}  // namespace lictor::core::test
