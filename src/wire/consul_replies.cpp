// Consul's replies as events.

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/kv_name.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/time_text.h"
#include "wire/consul.h"
#include "wire/kv_reply.h"
#include "wire/record.h"
#include "wire/transaction_plan.h"

namespace lictor::wire {
namespace {

using core::Outcome;
using http::Delivery;
using nlohmann::json;

// Newer versions append the token and the right it lacks; the text never begins with a key.
constexpr std::string_view kDenied = "Permission denied";

// Rejected: Consul refused before it did anything, or the request never left this host. All else is
// unknown: even after a 500 the write may be applied (6.5), unless it names a limit.
Outcome failed_write(const http::Response& response) {
  if (response.delivery == Delivery::kNotSent) return Outcome::kRejected;
  if (response.delivery != Delivery::kReplied) return Outcome::kUnknown;
  if (response.status >= 500 && refuses_name(response)) return Outcome::kRejected;
  if (http::over_limit(response)) return Outcome::kRejected;
  constexpr std::array kRefusals{400, 401, 403, 404, 405, 413};
  const bool refused = std::ranges::find(kRefusals, response.status) != kRefusals.end();
  return refused ? Outcome::kRejected : Outcome::kUnknown;
}

// Why a transaction was refused as a whole.
core::OpFailure why_refused(const http::Response& response) {
  if (response.status == 400 || refuses_name(response)) return core::OpFailure::kMalformed;
  if (response.status == 403) return core::OpFailure::kDenied;
  return response.status == 413 ? core::OpFailure::kTooLarge : core::OpFailure::kOther;
}

// Consul has several texts for one kind of failure.
core::Committed::Failure failure_of(const OpTarget& place, const TxnReply::OpError& error) {
  core::Committed::Failure failure;
  failure.op = place.op;
  failure.part = place.part;
  failure.text = error.what;
  failure.partition = place.partition.value_or(0);
  // A key may contain any words: look only before and after it.
  const std::string_view what = error.what;
  if (what.starts_with(kDenied)) {
    failure.why = core::OpFailure::kDenied;
    failure.text = "writing " + std::string{place.what} + ": " + error.what;
  } else if (place.partition && (what.starts_with("failed to check session") ||
                                 what.starts_with("failed session check"))) {
    failure.why = core::OpFailure::kNotLeader;
  } else if (what.ends_with("index is stale") || what.starts_with("failed index check") ||
             what.starts_with("failed to check index")) {
    failure.why = core::OpFailure::kStale;
  }
  return failure;
}

// Calls `read` with the body of a 200; the value is empty for a 404 with an index, which means that
// there is no such key.
template <class Value>
Result<Value> read_answer(http::Response&& response, Result<Value> (&read)(std::string)) {
  if (replied(response, 404) && response.consul_index != 0) return Value{};
  if (replied(response, 200)) return read(std::move(response.body));
  return fail(ErrorCode::kFailed, describe(response));
}

// The entry of the requested key. std::nullopt: either the key does not exist and `event` is ok, or
// `event` has the error.
template <class Effect, class Event>
std::optional<KvEntry> only_entry(const Effect& effect, const http::Response& response,
                                  Event& event) {
  event.request = effect.request;
  event.consul_index = response.consul_index;
  event.over_limit = http::over_limit(response);
  auto entries = read_entries(response);
  if (entries && !entries->empty()) return std::move(entries->front());
  event.ok = entries && response.status == 404;
  if (!event.ok) event.error = describe(response);
  return std::nullopt;
}

// The reply to a transaction in which each operation gives a result or an error. std::nullopt: the
// text is not Consul's, or not whole.
std::optional<TxnReply> write_reply(const http::Response& response) {
  auto reply = txn_reply(response);
  const bool is_empty =
      reply && (response.status == 200 ? reply->results.empty() : reply->errors.empty());
  return is_empty ? std::nullopt : std::move(reply);
}

}  // namespace

std::size_t most_operations(const http::Response& response) {
  constexpr std::string_view kTooMany = "too many operations (";
  const std::size_t at = response.body.find(kTooMany);
  if (!replied(response, 413) || at == std::string::npos) return 0;
  std::string_view numbers = std::string_view{response.body}.substr(at + kTooMany.size());
  const std::size_t sign = numbers.find(" > ");
  const std::size_t end = numbers.find(')');
  // If the end is missing, the number may be cut short.
  const auto most = sign >= end || end == std::string_view::npos
                        ? std::nullopt
                        : to_number<std::size_t>(numbers.substr(sign + 3, end - sign - 3));
  return most && *most != 0 ? *most : limits::kLeastOperations;
}

std::string describe(const http::Response& response) {
  if (response.delivery != Delivery::kReplied) return response.error;
  std::string text = response.endpoint.empty() ? "Consul" : response.endpoint;
  text += " answered " + std::to_string(response.status);
  if (!response.body.empty()) text += " (" + excerpt(response.body, 200) + ")";
  // A missing key is a 404 with an index.
  if (response.status == 404 && response.consul_index == 0) text += "; is this a Consul agent?";
  return text;
}

Result<std::vector<KvEntry>> read_entries(http::Response response) {
  return read_answer(std::move(response), read_kv_entries);
}

core::SessionCreated decode(const core::CreateSession& effect, const http::Response& response) {
  core::SessionCreated event{effect.request, Outcome::kUnknown, {}, {}};
  if (replied(response, 200)) {
    event.session = text_member(parse_json(response.body).value_or(json{}), "ID");
    if (!event.session.empty()) {
      event.outcome = Outcome::kApplied;
      return event;
    }
  } else if (replied(response, 500) &&
             (contains(response.body, "Missing check") || contains(response.body, "Missing node") ||
              contains(response.body, "Invalid Session TTL") ||
              contains(response.body, "critical state"))) {
    event.outcome = Outcome::kRejected;  // answered before anything was done (1.1)
  } else {
    event.outcome = failed_write(response);
  }
  event.error = describe(response);
  if (replied(response, 403) && contains(response.body, kDenied)) {
    event.error +=
        R"(; the token needs the rule session "NODE" { policy = "write" }, NODE being the node of )"
        R"(the Consul agent; see "lictor check")";
  }
  return event;
}

core::SessionRenewed decode(const core::RenewSession& effect, const http::Response& response) {
  using Answer = core::SessionRenewed::Answer;
  core::SessionRenewed event{effect.request, Answer::kNothing, {}};
  if (replied(response, 200)) {
    event.answer = Answer::kAlive;
  } else if (replied(response, 404)) {
    event.answer = Answer::kGone;
  } else {
    event.error = describe(response);
  }
  return event;
}

core::SessionDestroyed decode(const core::DestroySession& effect, const http::Response& response) {
  return {effect.request, replied(response, 200) ? Outcome::kApplied : failed_write(response)};
}

core::LockReplied decode(const core::AcquireLock& effect, const http::Response& response) {
  using Answer = core::LockReplied::Answer;
  core::LockReplied event{effect.request, Answer::kUnknown, 0, {}};
  const auto reply = write_reply(response);
  if (!reply) {
    event.error = describe(response);
    if (http::over_limit(response)) {
      event.answer = Answer::kOverLimit;
    } else if (response.delivery == Delivery::kReplied &&
               failed_write(response) == Outcome::kRejected) {
      event.answer = Answer::kRefused;
    }
    return event;
  }
  if (response.status == 200) {
    event.modify_index = reply->results.back().modify_index;  // checks come before the lock
    event.answer = Answer::kAcquired;
    return event;
  }
  const bool checks_count = effect.count_index != 0 || effect.if_single;  // comes first
  for (const TxnReply::OpError& error : reply->errors) {
    event.error = error.what;
    const std::string_view what = error.what;
    if (checks_count && error.index == 0 && !what.starts_with(kDenied)) {
      event.answer = Answer::kCountChanged;
      return event;
    }
    if (what.ends_with("lock is already held")) {
      event.answer = Answer::kHeld;
    } else if (what.ends_with("due to lock delay")) {
      event.answer = Answer::kLockDelay;
    } else if (what.starts_with("invalid session")) {
      event.answer = Answer::kSessionGone;
    } else if (what.starts_with("failed index check") || what.starts_with("failed session check") ||
               what.ends_with(" doesn't exist") || what.ends_with(" exists")) {
      event.answer = Answer::kChanged;
    } else {
      event.answer = Answer::kRefused;
    }
  }
  return event;
}

core::UnlockReplied decode(const core::ReleaseLock& effect, const http::Response& response) {
  // 409: the key has another index, or another holder.
  if (replied(response, 409)) return {effect.request, Outcome::kRejected};
  return {effect.request, replied(response, 200) ? Outcome::kApplied : Outcome::kUnknown};
}

core::LeaderRead decode(const core::ReadLeader& effect, const http::Response& response) {
  core::LeaderRead event;
  const auto entry = only_entry(effect, response, event);
  if (!entry) return event;
  core::LeaderRead read = leader_read(*entry);
  read.request = event.request;
  read.consul_index = event.consul_index;
  return read;
}

core::LeaderRead leader_read(const KvEntry& entry) {
  core::LeaderRead event;
  event.ok = event.found = true;
  event.session = entry.session;
  event.modify_index = entry.modify_index;
  const json value = parse_json(entry.value).value_or(json{});
  event.holder = text_member(value, "node");
  event.holder_lock_delay = parse_duration(text_member(value, "lock_delay"));
  // Versions that wrote no `released` left an empty value.
  event.released =
      entry.session.empty() && (entry.value.empty() || !text_member(value, "released").empty());
  if (event.holder.empty() && !entry.session.empty()) event.holder = "session " + entry.session;
  return event;
}

std::string control_fault(std::string_view value) {
  if (value.empty()) return {};
  const auto control = parse_json(value);
  if (!control || !control->is_object()) return "expected a JSON object, got " + excerpt(value);
  const json paused = control->value("paused", json{});
  if (paused.is_null() || paused.is_boolean() || paused.is_object()) return {};
  return "paused: expected true, false or an object, got " + excerpt(paused.dump());
}

std::string unreadable_control(std::string_view fault) {
  return "a control key that cannot be read (" + std::string{fault} + ")";
}

core::ControlRead decode(const core::WatchControl& effect, const http::Response& response) {
  core::ControlRead event;
  const auto entry = only_entry(effect, response, event);
  event.denied = replied(response, 403);
  if (!entry) return event;
  event.ok = event.found = true;
  if (std::string fault = control_fault(entry->value); !fault.empty()) {
    event.unreadable = event.paused = true;
    event.by = unreadable_control(fault);
    event.error = std::move(fault);
    return event;
  }
  const json control = parse_json(entry->value).value_or(json::object());  // it may be empty
  const json paused = control.value("paused", json{});
  event.paused = paused.is_object() || paused == json(true);
  const json step_down = control.value("step_down", json{});
  event.step_down = text_member(step_down, "id");
  event.by = text_member(event.paused ? paused : step_down, "by");
  const std::string reason = event.paused ? text_member(paused, "reason") : std::string{};
  if (!reason.empty()) event.by += (event.by.empty() ? "" : ": ") + reason;
  return event;
}

core::TasksListed decode(const Layout& layout, const core::ListTasks& effect,
                         http::Response response) {
  core::TasksListed event;
  event.request = effect.request;
  event.consul_index = response.consul_index;
  event.denied = replied(response, 403);
  event.over_limit = http::over_limit(response);
  event.transfer = response.elapsed;
  auto names = read_answer(std::move(response), read_key_names);
  if (!names) {
    event.error = std::move(names.error().message);
    return event;
  }
  names->erase_if([&](std::string_view name) {
    const bool is_marker = name == layout.tasks_prefix;
    if (is_marker) event.marker = true;
    if (!is_marker && name.ends_with('/')) event.folders.emplace_back(name);
    return !layout.is_task(name);
  });
  event.keys = *std::move(names);
  event.ok = true;
  return event;
}

core::TasksFetched decode(const Layout& layout, const core::FetchTasks& effect,
                          const http::Response& response) {
  core::TasksFetched event;
  event.request = effect.request;
  event.bytes = response.body.size();
  auto reply = txn_reply(response);
  if (!reply) {
    event.error = describe(response);
    event.most_operations = most_operations(response);
    return event;
  }
  if (response.status == 409) {  // names all failed ones; the others were not read either
    for (const TxnReply::OpError& error : reply->errors) {
      if (!error.what.ends_with("doesn't exist") || error.index >= effect.keys.size()) {
        event.error = error.what;
        return event;
      }
      event.missing.push_back(effect.keys[error.index]);
    }
    event.ok = !event.missing.empty();
    if (!event.ok) event.error = describe(response);
    return event;
  }
  // A 200 leaves out keys that the token may not read (7.2): they are not missing. The others come
  // in the order of the request; ignore any other key.
  auto unanswered = effect.keys.begin();
  event.records.reserve(reply->results.size());
  for (KvEntry& entry : reply->results) {
    const auto asked = std::find(unanswered, effect.keys.end(), entry.key);
    if (asked == effect.keys.end()) continue;
    unanswered = asked + 1;
    if (layout.is_task(entry.key)) {
      event.records.push_back(read_record(layout, std::move(entry)));
    } else if (entry.value.empty()) {
      event.missing.push_back(std::move(entry.key));
    } else {
      event.folders.push_back(std::move(entry.key));
    }
  }
  event.ok = true;
  return event;
}

core::TasksChecked decode(const core::CheckTasks& effect, const http::Response& response) {
  core::TasksChecked event;
  event.request = effect.request;
  const auto reply = write_reply(response);
  if (!reply) {
    event.error = describe(response);
    event.denied = replied(response, 403);
    event.most_operations = most_operations(response);
    return event;
  }
  for (const TxnReply::OpError& error : reply->errors) {
    const std::string_view what = error.what;
    const bool is_missing = what.ends_with("doesn't exist");
    const bool is_ours = error.index < effect.versions.size();
    if (!is_ours || !(is_missing || what.starts_with("failed index check"))) {
      event.error = error.what;
      event.denied = what.starts_with(kDenied);
      return event;
    }
    (is_missing ? event.missing : event.changed).push_back(effect.versions[error.index].key);
  }
  event.ok = true;
  return event;
}

core::HistoryListed decode(const Layout& layout, const core::ListHistory& effect,
                           const http::Response& response) {
  core::HistoryListed event;
  event.request = effect.request;
  const auto entries = read_entries(response);
  if (!entries) {
    event.error = entries.error().message;
    return event;
  }
  for (const KvEntry& entry : *entries) {
    if (!entry.key.starts_with(layout.done_prefix) || entry.key == layout.done_prefix) continue;
    // An entry without a time counts as the oldest.
    const WallTime at = done_at(entry.value).value_or(WallTime{});
    event.entries.push_back({layout.tasks_prefix + entry.key.substr(layout.done_prefix.size()),
                             entry.modify_index, at});
  }
  event.ok = true;
  return event;
}

core::SchedulesListed decode(const Layout& layout, const core::ListSchedules& effect,
                             http::Response response, ScheduleCache& cache) {
  core::SchedulesListed event;
  event.request = effect.request;
  event.cost = response.elapsed;
  event.consul_index = response.consul_index;
  event.over_limit = http::over_limit(response);
  event.unchanged =
      replied(response, 200) && effect.index != 0 && response.consul_index == effect.index;
  event.ok = event.unchanged;
  if (event.unchanged) return event;
  auto listing = read_entries(std::move(response));
  if (!listing) {
    event.error = std::move(listing.error().message);
    return event;
  }
  event.ok = true;
  event.marker = std::any_of(listing->begin(), listing->end(), [&](const KvEntry& entry) {
    return entry.key == layout.schedules_prefix;
  });
  event.entries = cache.read(layout, *std::move(listing));
  return event;
}

core::RateRead decode(const core::ReadRate& effect, const http::Response& response) {
  core::RateRead event;
  event.request = effect.request;
  event.denied = replied(response, 403);
  const auto entries = read_entries(response);
  if (!entries) {
    event.error = describe(response);
    return event;
  }
  event.ok = true;
  if (entries->empty()) return event;
  event.modify_index = entries->front().modify_index;
  event.full_at = read_bucket(entries->front().value);
  return event;
}

core::Committed decode(const core::Commit& commit, const http::Response& response) {
  core::Committed event;
  event.request = commit.request;
  const auto reply = write_reply(response);
  if (!reply) {
    event.outcome = failed_write(response);
    event.error = describe(response);
    event.most_operations = most_operations(response);
    if (event.outcome == Outcome::kRejected && response.delivery == Delivery::kReplied) {
      event.failures.push_back({core::Committed::kFence, why_refused(response),
                                core::Committed::Part::kTask, event.error});
    }
    return event;
  }
  if (response.status == 200) {
    event.outcome = Outcome::kApplied;
    event.modify_index = reply->greatest_index();
    return event;
  }
  event.outcome = Outcome::kRejected;
  for (const TxnReply::OpError& error : reply->errors) {
    const OpTarget place = target_of(commit, error.index);
    core::Committed::Failure failure = failure_of(place, error);
    const bool another_count = place.of_count && failure.why == core::OpFailure::kStale;
    if (!another_count) {
      event.failures.push_back(std::move(failure));
      continue;
    }
    // The queue has another number of partitions: no lock of the old number is ours any more.
    failure.why = core::OpFailure::kNotLeader;
    for (const std::uint32_t partition : commit.partitions) {
      failure.partition = partition;
      event.failures.push_back(failure);
    }
  }
  // When the task is gone, all parts of its operation fail: report the task alone.
  std::set<std::size_t> gone;
  for (const auto& failure : event.failures) {
    if (failure.why == core::OpFailure::kStale && failure.part == core::Committed::Part::kTask) {
      gone.insert(failure.op);
    }
  }
  std::erase_if(event.failures, [&](const auto& failure) {
    return failure.part != core::Committed::Part::kTask && gone.contains(failure.op);
  });
  return event;
}

}  // namespace lictor::wire
