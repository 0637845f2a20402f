// Store's writes. Each is applied, refused, or unknown because the reply was lost (consul.md 6.5).
//
//   transaction --200------------------------------> applied
//       ^  |----409, names what failed ------------> those are refused; the others go again
//       |  +----no whole reply, or a 5xx ----------> unknown
//       |                                               |
//       |           create(), replace(): read back -----+--- the value is there --> applied
//       |           apply(): kTimeout                   +--- another value -------> not written
//       +-- the others, until none is left              +--- neither -------------> kTimeout
//
// A transaction is applied as a whole or not at all, so one record that exists already takes all
// others down with it. Consul names every operation that failed (3.3): each round drops at least
// one of them, so the rounds end.
//
// create() reads back, and takes a record with the producer's content for its own: a leader may
// have claimed it already, which changes only what unstamped_record() removes. apply() does not
// read back: its caller (change.cpp) reads the key and plans again in any case.

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/kv_name.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/try.h"
#include "client/retry.h"
#include "client/store.h"
#include "wire/layout.h"
#include "wire/txn.h"

namespace lictor::client {
namespace {

using http::Delivery;
using namespace std::chrono_literals;

// How long to read back after a lost reply: an election with Consul's default timing
// (consul.md 6.1). After it, the write has landed or never will.
constexpr auto kLookFor = 20s;
// If many writes are lost, the last may have waited for long; after this, don't read back.
constexpr auto kLookNoMore = 30s;
constexpr const char* kWhenBack = "; look again when Consul is back";

// Whether the write may have been applied, or may still be (consul.md 6.5).
bool is_unknown(const http::Response& response) {
  if (response.delivery == Delivery::kNotSent) return false;
  return response.delivery != Delivery::kReplied ||
         (response.status >= 500 && !refuses_name(response));
}

// Consul's answer to a transaction whose outcome is known.
struct Answer {
  std::uint64_t index = 0;                         // the greatest one written; 0: unknown
  std::vector<wire::TxnReply::OpError> refused{};  // empty: the transaction was applied
};

// Errors: the transaction was refused as a whole.
Result<Answer> read_answer(std::string_view doing, const http::Response& response) {
  auto reply = txn_reply(response);
  if (reply && response.status == 200) return Answer{reply->greatest_index()};
  if (!reply || reply->errors.empty()) return tl::unexpected(store_error(doing, response));
  return Answer{0, std::move(reply->errors)};
}

// The error for an operation that Consul refused for `why`.
Error refusal(std::string_view doing, http::Response response, std::string_view why) {
  response.status = why.find("Permission denied") == std::string_view::npos ? 409 : 403;
  return store_error(doing, response);
}

Error lost(const std::string& key, const http::Response& response, const char* advice = "") {
  return {ErrorCode::kTimeout, "cannot tell whether " + shown(key) + " was written: " +
                                   store_error("write " + shown(key), response).message + advice};
}

// A write without a reply within kStoreTimeout is unknown, like one whose connection broke.
http::Request put(std::string target, std::string body) {
  return http::put(std::move(target), std::move(body), kStoreTimeout);
}

}  // namespace

std::size_t Store::batch_bytes(std::string_view key, std::size_t value_size) {
  constexpr std::size_t kFrame = 80;  // {"KV":{"Verb":"cas","Key":,"Value":""}}, and some
  return kFrame + json_quoted(key).size() + base64_size(value_size);
}

http::Request Store::create_request(const std::vector<Record>& records, const std::string& after) {
  wire::Txn txn;
  for (const Record& record : records) txn.verb("cas", record.key).index(0).value(record.value);
  if (!after.empty()) txn.verb("get", after);  // fails if there is none
  return put("/v1/txn", std::move(txn).body());
}

// A record that is there already is no error: `existing` names it, and the others are written.
Result<Store::Created> Store::create(const std::vector<Record>& records) {
  const http::Response response = transport_.perform(create_request(records, {}));
  return create_from(response, boot_now(), records, {});
}

Result<Store::Created> Store::create_from(const http::Response& response, Instant answered_at,
                                          const std::vector<Record>& records,
                                          const std::string& after) {
  const bool conditional = !after.empty();
  Created created;
  std::vector<std::size_t> left(records.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  auto read = read_outcomes(response, answered_at, records, conditional, left, created);
  while (read && !left.empty() && !created.unmet) {
    std::vector<Record> others;
    others.reserve(left.size());
    for (const std::size_t i : left) others.push_back(records[i]);
    const http::Response again = transport_.perform(create_request(others, after));
    read = read_outcomes(again, boot_now(), records, conditional, left, created);
  }
  std::sort(created.existing.begin(), created.existing.end());
  return read.map([&] { return std::move(created); });
}

// Reads the answer to one transaction. Removes records from `left` that are written or exist.
Result<void> Store::read_outcomes(const http::Response& response, Instant answered_at,
                                  const std::vector<Record>& records, bool conditional,
                                  std::vector<std::size_t>& left, Created& created) {
  const std::string doing = "write " + shown(records[left.front()].key);
  if (is_unknown(response)) {
    LICTOR_TRY(const auto written, find_written(records, left, response, answered_at));
    if (written) {
      created.index = *written;
      left.clear();
    }
    return {};
  }
  LICTOR_TRY(const auto answer, read_answer(doing, response));
  if (answer.refused.empty()) {
    created.index = answer.index;
    left.clear();
    return {};
  }
  std::vector<bool> exists(left.size());
  for (const auto& error : answer.refused) {
    if (conditional && error.index == left.size()) {
      created.unmet = true;
      return {};
    }
    if (error.index >= left.size() || error.what.find("stale") == std::string::npos) {
      return tl::unexpected(refusal(doing, response, error.what));
    }
    exists[error.index] = true;
  }
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < left.size(); ++i) {
    (exists[i] ? created.existing : others).push_back(left[i]);
  }
  left = std::move(others);
  return {};
}

// After a lost reply, returns the CreateIndex if the records exist; std::nullopt if another record
// has a key of theirs, so they were not written. If none exists, they may be done already.
Result<std::optional<std::uint64_t>> Store::find_written(const std::vector<Record>& records,
                                                         const std::vector<std::size_t>& left,
                                                         const http::Response& response,
                                                         Instant lost_at) {
  std::vector<std::string> keys;
  keys.reserve(left.size());
  for (const std::size_t i : left) keys.push_back(records[i].key);
  const char* why_not_found = kWhenBack;
  const Patience patience{kLookNoMore, lost_at};
  for (bool more = !patience.is_over(); more; more = patience.pause()) {
    const auto entries = get_all(keys);
    if (!entries && !is_temporary(entries.error())) return tl::unexpected(entries.error());
    if (entries) {
      bool other = false;
      for (std::size_t i = 0; i < left.size(); ++i) {
        const auto& entry = (*entries)[i];
        if (!entry) continue;
        // A leader may have claimed it: compare only what the producer wrote.
        const std::string& value = records[left[i]].value;
        if (entry->value == value ||
            wire::unstamped_record(entry->value) == wire::unstamped_record(value)) {
          return entry->create_index;
        }
        other = true;
      }
      if (other) return std::nullopt;
    }
    if (boot_now() > lost_at + kLookFor) {
      if (entries) {
        why_not_found = "; it is not there now: it was not written, or is done already";
      }
      break;
    }
  }
  return tl::unexpected(lost(keys.front(), response, why_not_found));
}

// A key whose name fits no path of Consul's HTTP API is written by a transaction.
Result<bool> Store::replace(const std::string& key, std::uint64_t index, const std::string& value,
                            std::uint64_t flags) {
  http::Response response;
  if (fits_path(key)) {
    std::string target = wire::kv_path(key) + "?cas=" + std::to_string(index);
    if (flags != 0) target += "&flags=" + std::to_string(flags);
    response = transport_.perform(put(std::move(target), value));
    if (replied(response, 200)) return response.body.starts_with("true");
    if (!is_unknown(response)) return tl::unexpected(store_error("write " + shown(key), response));
  } else {
    const std::vector<Change> change{{{Op::Verb::kCas, key, index, value, flags}}};
    response = transport_.perform(change_request(change));
    if (!is_unknown(response)) {
      return apply_from(response, change).map([](const Refused& refused) {
        return !refused.front();
      });
    }
  }
  const auto now = get(key);
  if (!now) return tl::unexpected(lost(key, response));
  if (*now && (*now)->value == value) return true;
  if ((*now ? (*now)->modify_index : 0) != index) return false;
  return tl::unexpected(lost(key, response));
}

std::size_t Store::batch_bytes(const Change& change) {
  std::size_t bytes = 0;
  for (const Op& op : change) bytes += batch_bytes(op.key, op.value.size());
  return bytes;
}

namespace {

// The operations of changes that are not refused: the change's index, and the place in the change.
using Places = std::vector<std::pair<std::size_t, std::size_t>>;

Places places_left(const std::vector<Store::Change>& changes, const Store::Refused& refused) {
  Places places;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (refused[i]) continue;
    for (std::size_t j = 0; j < changes[i].size(); ++j) places.emplace_back(i, j);
  }
  return places;
}

http::Request request_for(const std::vector<Store::Change>& changes, const Places& places) {
  static constexpr std::array<std::string_view, 4> kVerbs{"check-index", "cas", "delete-cas",
                                                          "set"};
  wire::Txn txn;
  for (const auto& [change, place] : places) {
    const Store::Op& op = changes[change][place];
    txn.verb(kVerbs[static_cast<std::size_t>(op.verb)], op.key).index(op.index);
    if (op.verb != Store::Op::Verb::kCas && op.verb != Store::Op::Verb::kSet) continue;
    txn.flags(op.flags).value(op.value);
  }
  return put("/v1/txn", std::move(txn).body());
}

// Reads the answer to one transaction. False: send the changes that were not refused again.
Result<bool> read_refusals(const http::Response& response,
                           const std::vector<Store::Change>& changes, const Places& places,
                           Store::Refused& refused) {
  const std::string& key = changes[places.front().first].front().key;
  const std::string doing = "change " + shown(key);
  if (is_unknown(response)) return tl::unexpected(lost(key, response));
  LICTOR_TRY(const auto answer, read_answer(doing, response));
  for (const auto& error : answer.refused) {
    if (error.index >= places.size() || error.what.starts_with("Permission denied")) {
      return tl::unexpected(refusal(doing, response, error.what));
    }
    const auto [change, op] = places[error.index];
    if (!refused[change]) refused[change] = op;
  }
  return answer.refused.empty();
}

}  // namespace

http::Request Store::change_request(const std::vector<Change>& changes) {
  return request_for(changes, places_left(changes, Refused(changes.size())));
}

Result<Store::Refused> Store::apply(const std::vector<Change>& changes) {
  if (changes.empty()) return Refused{};
  return apply_from(transport_.perform(change_request(changes)), changes);
}

Result<Store::Refused> Store::apply_from(const http::Response& response,
                                         const std::vector<Change>& changes) {
  Refused refused(changes.size());
  Places places = places_left(changes, refused);
  auto done = read_refusals(response, changes, places, refused);
  while (done && !*done) {
    places = places_left(changes, refused);
    if (places.empty()) break;
    done =
        read_refusals(transport_.perform(request_for(changes, places)), changes, places, refused);
  }
  return done.map([&](bool) { return std::move(refused); });
}

}  // namespace lictor::client
