#include "client/store.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/kv_name.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/try.h"
#include "wire/consul.h"
#include "wire/layout.h"
#include "wire/txn.h"

namespace lictor::client {
namespace {

using http::Delivery;
using nlohmann::json;

// 100,000 tasks take half a second, over a slow line a minute. `silence` detects a dead Consul.
constexpr std::chrono::milliseconds kListTimeout{60'000};
// The pause before a key that cannot be watched is read again.
constexpr std::chrono::milliseconds kMaxPause{500};

bool denied(std::string_view what) { return contains(what, "Permission denied"); }

Error no_right(std::string_view doing, const http::Response& response) {
  return {
      ErrorCode::kPermissionDenied,
      fmt::format(
          "cannot {}: the token may not (Consul{}{}: Permission denied); give it the "
          "right (/usr/share/lictor/consul/policy-*.hcl has the rules), or use another token by "
          "CONSUL_HTTP_TOKEN or --token-file",
          doing, response.endpoint.empty() ? "" : " at ", response.endpoint)};
}

// The body of a 200 as JSON.
std::optional<json> json_reply(const http::Response& response) {
  return replied(response, 200) ? parse_json(response.body) : std::nullopt;
}

// The first element of the array in such a body; null: there is none.
json first_reply(const http::Response& response) {
  const auto answer = json_reply(response);
  return answer && answer->is_array() && !answer->empty() ? answer->front() : json{};
}

// The network layer's error without the request, which no server has seen:
// "http://127.0.0.1:8500: Couldn't connect to server".
std::string unreachable(const http::Response& response) {
  std::string text = response.error;
  const std::size_t address = text.find(": ");
  if (text.find(" /v1/") < address) text.erase(0, address + 2);
  for (const std::string_view part : {"not sent: ", "; check that a Consul agent listens there"}) {
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos;) {
      text.erase(at, part.size());
    }
  }
  return text;
}

// The error of a request that changes nothing.
Error read_error(std::string_view doing, const http::Response& response) {
  Error error = store_error(doing, response);
  if (response.delivery == Delivery::kLost) {
    error.message += "; it was a read, so nothing was changed by it";
  }
  return error;
}

}  // namespace

std::string shown(const std::string& key) { return printable(fitted(key, 200)); }

// The one place where a failed request becomes an error. Its code decides whether callers try again
// (is_temporary()), and the text says what to do.
Error store_error(std::string_view doing, const http::Response& response) {
  const std::string what = "cannot " + std::string{doing} + ": ";
  if (response.delivery == Delivery::kNotSent) {
    return {ErrorCode::kUnavailable,
            "cannot reach Consul at " + unreachable(response) +
                "; is the agent running? Set CONSUL_HTTP_ADDR or --consul"};
  }
  if (response.delivery != Delivery::kReplied) return {ErrorCode::kTimeout, what + response.error};

  const int status = response.status;
  const auto error = [&, answer = wire::describe(response)](ErrorCode code, const char* remedy) {
    return Error{code, what + answer + remedy};
  };
  if (status == 401 || status == 403) {
    if (!contains(response.body, "ACL not found")) return no_right(doing, response);
    return error(ErrorCode::kPermissionDenied,
                 ": Consul does not know the token; correct CONSUL_HTTP_TOKEN or the token file");
  }
  if (status == 413) return error(ErrorCode::kTooLarge, "");
  if (status == 429) return error(ErrorCode::kUnavailable, "; too many requests, try again later");
  if (contains(response.body, "No cluster leader")) {
    return {
        ErrorCode::kUnavailable,
        what + response.endpoint +
            " has no cluster leader; an election takes seconds, so try again; if there is still "
            "no leader then, look at \"consul operator raft list-peers\""};
  }
  if (refuses_name(response) && status >= 500) {
    return error(ErrorCode::kFailed,
                 "; use names of letters, digits and \",_./-\", which every Consul takes");
  }
  if (status >= 500) return error(ErrorCode::kUnavailable, "; try again");
  if (status == 400 && contains(response.body, "HTTPS server")) {
    return error(ErrorCode::kInvalid, "; use https:// in the address");
  }
  if (status == 404 && response.consul_index == 0) return error(ErrorCode::kUnavailable, "");
  return error(ErrorCode::kFailed, "");
}

// `silence` ends a long listing early when no more bytes come.
http::Response Store::ask(std::string method, std::string target, std::string body,
                          std::chrono::milliseconds timeout) {
  http::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.body = std::move(body);
  request.timeout = timeout;
  request.only_reads = true;
  if (timeout > kStoreTimeout) request.silence = kStoreTimeout;
  return transport_.perform(std::move(request));
}

Result<std::optional<wire::KvEntry>> Store::get(const std::string& key) {
  if (fits_path(key)) {
    const http::Response response = ask("GET", wire::kv_path(key) + "?consistent");
    if (replied(response, 404) && response.consul_index != 0) return std::nullopt;
    if (replied(response, 200)) {
      LICTOR_TRY(auto entries, wire::read_kv_entries(response.body));
      if (!entries.empty()) return std::move(entries.front());
    }
    if (!refuses_name(response)) return tl::unexpected(read_error("read " + shown(key), response));
  }
  LICTOR_TRY(auto entries, get_all({key}));
  if (!entries.front()) {
    // For a missing key a transaction does not report a missing right; a read by path does.
    const http::Response near = ask("GET", wire::kv_path(part_that_fits_path(key)) + "?consistent");
    if (replied(near, 403)) return tl::unexpected(read_error("read " + shown(key), near));
  }
  return std::move(entries.front());
}

// A reading transaction fails if one key is missing, and names all that are. So these are left out,
// and the others are asked for again: two requests where some are missing.
Result<std::vector<std::optional<wire::KvEntry>>> Store::get_chunk(std::vector<std::string> keys) {
  const std::vector<std::string> wanted = keys;
  std::vector<wire::KvEntry> found;
  while (!keys.empty()) {
    wire::Txn txn;
    for (const std::string& key : keys) txn.verb("get", key);
    const http::Response response = ask("PUT", "/v1/txn?consistent", std::move(txn).body());
    auto reply = txn_reply(response);
    const std::string doing = "read " + shown(keys.front());
    if (!reply) return tl::unexpected(read_error(doing, response));
    if (response.status == 200) {
      if (reply->results.size() < keys.size()) return tl::unexpected(no_right(doing, response));
      found = std::move(reply->results);
      break;
    }
    // Consul names all missing keys, and does not read the others.
    std::vector<bool> missing(keys.size());
    for (const auto& error : reply->errors) {
      if (denied(error.what)) return tl::unexpected(no_right(doing, response));
      if (!contains(error.what, "doesn't exist") || error.index >= keys.size()) {
        return fail(ErrorCode::kFailed, "cannot " + doing + ": Consul: " + error.what);
      }
      missing[error.index] = true;
    }
    std::vector<std::string> left;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!missing[i]) left.push_back(keys[i]);
    }
    if (left.size() == keys.size()) return tl::unexpected(read_error(doing, response));
    keys = std::move(left);
  }
  std::vector<std::optional<wire::KvEntry>> entries(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    for (const wire::KvEntry& entry : found) {
      if (entry.key == wanted[i]) entries[i] = entry;
    }
  }
  return entries;
}

Result<std::vector<std::optional<wire::KvEntry>>> Store::get_all(
    const std::vector<std::string>& keys) {
  std::vector<std::optional<wire::KvEntry>> all;
  while (all.size() < keys.size()) {
    const auto begin = keys.begin() + static_cast<std::ptrdiff_t>(all.size());
    const std::size_t count = std::min(keys.size() - all.size(), kMaxOperations);
    LICTOR_TRY(auto chunk, get_chunk({begin, begin + static_cast<std::ptrdiff_t>(count)}));
    std::move(chunk.begin(), chunk.end(), std::back_inserter(all));
  }
  return all;
}

Result<Store::Listed> Store::list(const std::string& prefix) {
  const std::string doing = "list " + shown(prefix);
  http::Response response =
      ask("GET", wire::kv_path(prefix) + "?recurse&consistent", {}, kListTimeout);
  Listed listed;
  if (replied(response, 200)) {
    LICTOR_TRY(auto entries, wire::read_kv_entries(std::move(response.body)));
    listed.entries = std::move(entries);
    std::erase_if(listed.entries,
                  [&](const auto& entry) { return !entry.key.starts_with(prefix); });
  } else if (!replied(response, 404) || response.consul_index == 0) {
    return tl::unexpected(read_error(doing, response));
  }
  const bool has_folder = std::any_of(listed.entries.begin(), listed.entries.end(),
                                      [&](const auto& entry) { return entry.key == prefix; });
  if (!has_folder) {
    // A listing looks the same without entries and without rights; a single key does not (7.2).
    const http::Response folder = ask("GET", wire::kv_path(prefix) + "?consistent");
    listed.hidden = replied(folder, 403);
    if (listed.hidden && listed.entries.empty()) return tl::unexpected(read_error(doing, folder));
  }
  return listed;
}

// Asks for a beginning of the prefix that fits a path, and leaves out what lies beside the prefix.
Result<std::vector<std::string>> Store::names(const std::string& prefix, bool folders) {
  const http::Response response =
      folders ? ask("GET", wire::kv_path(prefix) + "?keys&separator=/")
              : ask("GET", wire::kv_path(part_that_fits_path(prefix)) + "?keys&consistent", {},
                    kListTimeout);
  std::vector<std::string> names;
  if (replied(response, 404) && response.consul_index != 0) return names;
  if (!replied(response, 200)) {
    return tl::unexpected(read_error("list " + shown(prefix), response));
  }
  LICTOR_TRY(const auto listed, wire::read_key_names(response.body));
  for (const std::string_view name : listed.in_order()) {
    if (name.starts_with(prefix)) names.emplace_back(name);
  }
  return names;
}

Result<std::vector<std::string>> Store::folders(const std::string& prefix) {
  LICTOR_TRY(auto folders, names(prefix, true));
  std::erase_if(folders, [&](const std::string& name) {
    return !name.ends_with('/') || name.size() == prefix.size();
  });
  for (std::string& name : folders)
    name = name.substr(prefix.size(), name.size() - prefix.size() - 1);
  return folders;
}

Result<Store::Watched> Store::watch(const std::string& key, std::uint64_t index,
                                    std::chrono::milliseconds wait) {
  if (!fits_path(key)) {
    if (index != 0) std::this_thread::sleep_for(std::min(wait, kMaxPause));
    LICTOR_TRY(auto entry, get(key));
    const std::uint64_t seen = entry ? entry->modify_index : 0;
    return Watched{std::move(entry), seen};
  }
  http::Request request;
  request.target = wire::kv_path(key);
  request.timeout = kStoreTimeout;
  if (index == 0) {
    request.target += "?consistent";
  } else {
    wait = std::clamp(wait, std::chrono::milliseconds{1}, kMaxWait);
    request.target +=
        "?index=" + std::to_string(index) + "&wait=" + std::to_string(wait.count()) + "ms";
    request.long_poll = true;
    request.timeout += wait * 17 / 16;  // Consul adds up to a sixteenth (4.1)
  }
  const http::Response response = transport_.perform(std::move(request));
  Watched watched;
  if (replied(response, 200)) {
    LICTOR_TRY(auto entries, wire::read_kv_entries(response.body));
    if (!entries.empty()) watched.entry = std::move(entries.front());
  } else if (!replied(response, 404) || response.consul_index == 0) {
    return tl::unexpected(read_error("follow " + shown(key), response));
  }
  // After an index that went backwards, start again (4.4).
  if (response.consul_index >= index) watched.index = response.consul_index;
  return watched;
}

Result<std::vector<bool>> Store::writable(const std::vector<std::string>& keys) {
  // Never applied, since a key cannot both exist and not exist. Consul checks the rights to all
  // operations first, and names each refused one.
  wire::Txn txn;
  txn.verb("check-not-exists", keys.front());
  txn.verb("check-index", keys.front()).index(1);
  for (const std::string& key : keys) txn.verb("cas", key).index(0).value({});
  const http::Response response = ask("PUT", "/v1/txn", std::move(txn).body());
  const auto reply = txn_reply(response);
  if (!reply || response.status != 409) {
    return tl::unexpected(read_error("find out what the token may write", response));
  }
  std::vector<bool> may(keys.size(), true);
  for (const auto& error : reply->errors) {
    if (denied(error.what) && error.index >= 2 && error.index - 2 < may.size()) {
      may[error.index - 2] = false;
    }
  }
  return may;
}

std::optional<bool> Store::may_write(std::string_view resource, const std::string& name) {
  // Consul's web page uses this; no documented call answers it without writing.
  const http::Response response =
      ask("POST", "/v1/internal/acl/authorize",
          R"([{"Resource":)" + json_quoted(resource) + R"(,"Access":"write","Segment":)" +
              json_quoted(name) + "}]");
  if (response.delivery == Delivery::kReplied && contains(response.body, "ACL support disabled")) {
    return true;
  }
  const json first = first_reply(response);
  const json& allow = json_member(first, "Allow");
  return allow.is_boolean() ? std::optional{allow.get<bool>()} : std::nullopt;
}

Result<std::string> Store::cluster_leader() {
  const http::Response response = ask("GET", "/v1/status/leader");
  const auto answer = json_reply(response);
  if (answer && answer->is_string()) return answer->get<std::string>();
  return tl::unexpected(read_error("ask for the cluster's leader", response));
}

Result<Store::Agent> Store::agent() {
  const http::Response response = ask("GET", "/v1/agent/self");
  const auto answer = json_reply(response);
  if (!answer || !answer->is_object()) {
    return tl::unexpected(read_error("read /v1/agent/self", response));
  }
  const json& config = json_member(*answer, "Config");
  const json& debug = json_member(*answer, "DebugConfig");
  return Agent{text_member(config, "NodeName"), text_member(config, "Version"),
               json_member(config, "Server") == true, json_member(debug, "LeaveOnTerm") == true,
               json_member(debug, "SkipLeaveOnInt") == false};
}

std::optional<Store::Session> Store::session(const std::string& id) {
  const json first = first_reply(ask("GET", "/v1/session/info/" + wire::query_value(id)));
  if (first.is_null()) return std::nullopt;
  Session session{text_member(first, "Node"), text_member(first, "TTL"), {}};
  if (const json& delay = json_member(first, "LockDelay"); delay.is_number_integer()) {
    session.lock_delay = std::chrono::nanoseconds{delay.get<std::int64_t>()};
  }
  return session;
}

std::vector<std::string> Store::session_names() {
  std::vector<std::string> names;
  const auto answer = json_reply(ask("GET", "/v1/session/list"));
  if (!answer || !answer->is_array()) return names;
  for (const json& session : *answer) names.push_back(text_member(session, "Name"));
  return names;
}

}  // namespace lictor::client
