// /v1/txn (consul.md 3).
//
//   size --> JSON, one operation after the other --> number of operations --> keys   413, 400
//     --> precheck(), before the raft entry: a missing key, a lock-delay             409
//     --> next_index(), if there is any write, also for a transaction that is refused
//     --> apply() in order, each sees the earlier ones --> commit, or roll back      200, 409
//
// The order is Consul's: the first step that refuses decides the status and the text. Without a
// write there is no raft entry, and the answer is that of a read (consul.md 3.5).

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/text.h"
#include "dev/answer.h"
#include "dev/model.h"

namespace lictor::dev {
namespace {

using nlohmann::json;

http::Response parse_fault(const std::string& what) {
  return answer(400, "Failed to parse body: " + what);
}

tl::unexpected<Error> wrong(std::string_view what, std::string_view expected) {
  return fail(ErrorCode::kInvalid, std::string{what} + ": expected " + std::string{expected});
}

Result<void> read_number(const json& value, std::string_view field, std::uint64_t& out) {
  if (value.is_null()) return {};
  if (!value.is_number_unsigned()) return wrong(field, "an unsigned integer");
  out = value.get<std::uint64_t>();
  return {};
}

Result<void> read_value(const json& value, std::string& out) {
  std::string text;
  if (auto read = read_text(value, "Value", text); !read) return read;
  auto bytes = base64_decode(text);
  if (!bytes) return wrong("Value", "base64");
  out = std::move(*bytes);
  return {};
}

}  // namespace

struct Model::TxnOp {
  std::string verb;
  KvRecord record;

  [[nodiscard]] bool writes() const {
    constexpr std::array<std::string_view, 7> kVerbs{"set",    "cas",        "lock",       "unlock",
                                                     "delete", "delete-cas", "delete-tree"};
    return std::find(kVerbs.begin(), kVerbs.end(), verb) != kVerbs.end();
  }
};

template <class Op>
Result<void> read_field(std::string_view name, const json& value, Op& op) {
  if (equal_but_for_case(name, "Verb")) return read_text(value, "Verb", op.verb);
  if (equal_but_for_case(name, "Key")) return read_text(value, "Key", op.record.key);
  if (equal_but_for_case(name, "Session")) return read_text(value, "Session", op.record.session);
  if (equal_but_for_case(name, "Flags")) return read_number(value, "Flags", op.record.flags);
  if (equal_but_for_case(name, "Index")) return read_number(value, "Index", op.record.modify_index);
  if (equal_but_for_case(name, "Value")) return read_value(value, op.record.value);
  return wrong(name, "no such field");
}

Result<Model::TxnOp> Model::parse_txn_op(const json& item) {
  TxnOp op;
  if (!item.is_object()) return wrong("operation", "an object");
  for (const auto& [kind, fields] : item.items()) {
    if (!equal_but_for_case(kind, "KV")) return wrong(kind, "only KV operations");
    if (!fields.is_object()) return wrong("KV", "an object");
    for (const auto& [name, value] : fields.items()) {
      if (auto read = read_field(name, value, op); !read) return tl::unexpected(read.error());
    }
  }
  return op;
}

std::string Model::precheck(const Call& call, const TxnOp& op) const {
  const std::string& key = op.record.key;
  if (key.empty() && op.verb != "delete-tree") return "Must provide key";
  if (op.verb == "lock" && in_lock_delay(call.now, key)) {
    return "failed to lock key " + quote(key) + " due to lock delay";
  }
  return {};
}

// Runs the verbs that change nothing. Each success adds to Results, except check-not-exists.
std::string Model::check(const TxnOp& op, std::string& results) const {
  const std::string& key = op.record.key;
  const KvRecord* found = state_.find(key);
  const auto keep = [&](const KvRecord& record) {
    if (!results.empty()) results += ',';
    results += "{\"KV\":";
    append_record(results, record, op.verb.starts_with("get"));
    results += '}';
  };
  if (op.verb == "get-tree") {
    const auto [first, last] = state_.under(key);
    for (auto it = first; it != last; ++it) keep(it->second);
    return {};
  }
  if (op.verb == "check-not-exists") {
    return found == nullptr ? std::string{} : "key " + quote(key) + " exists";
  }
  if (found == nullptr) {
    const std::string what = "key " + quote(key) + " doesn't exist";
    if (op.verb == "check-session") return "failed to check session, " + what;
    return op.verb == "check-index" ? "failed to check index, " + what : what;
  }
  if (op.verb == "check-session" && found->session != op.record.session) {
    return "failed session check for key " + quote(key) + ", current session " +
           quote(found->session) + " != " + quote(op.record.session);
  }
  if (op.verb == "check-index" && found->modify_index != op.record.modify_index) {
    return "failed index check for key " + quote(key) + ", current modify index " +
           std::to_string(found->modify_index) + " != " + std::to_string(op.record.modify_index);
  }
  keep(*found);
  return {};
}

// Applies one operation to the state that the earlier ones left. Deletions have no entry in
// Results, so a client must match results by key (consul.md 3.2).
std::string Model::apply(const TxnOp& op, std::string& results) {
  if (op.verb == "get" || op.verb == "get-tree" || op.verb.starts_with("check-")) {
    return check(op, results);
  }
  KvRecord record = op.record;
  const std::string key = quote(record.key);
  if (op.verb == "delete") {
    state_.erase(record.key);
    return {};
  }
  if (op.verb == "delete-tree") {
    state_.erase_tree(record.key);
    return {};
  }
  if (op.verb == "delete-cas") {
    if (state_.compare_and_erase(record.key, record.modify_index)) return {};
    return "failed to delete key " + key + ", index is stale";
  }
  if (op.verb == "set") {
    state_.set(record);
  } else if (op.verb == "cas") {
    if (!state_.compare_and_set(record)) return "failed to set key " + key + ", index is stale";
  } else if (op.verb == "lock") {
    if (std::string fault = session_fault(record.session); !fault.empty()) return fault;
    if (!state_.lock(record)) return "failed to lock key " + key + ", lock is already held";
  } else if (op.verb == "unlock") {
    if (record.session.empty()) return "missing session";
    if (!state_.unlock(record)) {
      return "failed to unlock key " + key + ", lock isn't held, or is held by another session";
    }
  } else {
    return "unknown KV verb " + quote(op.verb);
  }
  if (!results.empty()) results += ',';
  results += "{\"KV\":";
  append_record(results, record, false);
  results += '}';
  return {};
}

http::Response Model::txn(const Call& call) {
  const std::string& body = call.request.body;
  if (body.size() > limits::kTransactionBytes) {
    return answer(413, "Request body(" + std::to_string(body.size()) +
                           " bytes) too large, max size: 524288 bytes. See "
                           "https://www.consul.io/docs/agent/options.html#txn_max_req_len.");
  }
  const json items = json::parse(body, nullptr, false);
  if (!items.is_array() && !items.is_null()) return parse_fault("expected a JSON array");
  std::vector<TxnOp> ops;
  bool writes = false;
  ops.reserve(items.size());
  for (const json& item : items) {
    auto op = parse_txn_op(item);
    if (!op) return parse_fault(op.error().message);
    writes = writes || op->writes();
    ops.push_back(std::move(*op));
  }
  if (ops.size() > options_.max_operations) {
    return answer(413, "Transaction contains too many operations (" + std::to_string(ops.size()) +
                           " > " + std::to_string(options_.max_operations) + ")");
  }
  const auto is_refused = [&](const TxnOp& op) { return op.record.key.starts_with('/'); };
  if (options_.refuses_names && std::any_of(ops.begin(), ops.end(), is_refused)) {
    return answer(400, "Invalid key in transaction: a key must not begin with \"/\"");
  }

  std::string results;
  std::string errors;
  const auto note = [&](std::size_t i, const std::string& what) {
    if (what.empty()) return;
    errors += (errors.empty() ? "" : ",") + (R"({"OpIndex":)" + std::to_string(i)) + R"(,"What":)";
    errors += quote(what);
    errors += '}';
  };
  for (std::size_t i = 0; i < ops.size(); ++i) note(i, precheck(call, ops[i]));
  if (errors.empty()) {
    if (writes) state_.next_index();
    state_.begin();
    for (std::size_t i = 0; i < ops.size(); ++i) note(i, apply(ops[i], results));
    errors.empty() ? state_.commit() : state_.roll_back();
  }
  std::string out = R"({"Results":)" + (errors.empty() ? '[' + results + ']' : "null") +
                    R"(,"Errors":)" + (errors.empty() ? "null" : '[' + errors + ']');
  if (!writes) out += R"(,"Index":0,"LastContact":0,"KnownLeader":true,"ConsistencyLevel":"")";
  http::Response response = answer(errors.empty() ? 200 : 409, out + '}');
  if (!writes) response.known_leader = true;
  return response;
}

}  // namespace lictor::dev
