#pragma once

// Consul for the commands, the admin API and producers: calls that block, of one request or a few.
// store.cpp reads, store_write.cpp writes. The daemon's loop, which must not block, has
// wire/consul.h instead.
//
// Three traps of Consul are dealt with here, so that callers need not know them:
//
//   rights     a listing and a transaction leave out what the token may not read, and answer 200
//              (consul.md 7.2): list() and get_all() find that out and say so
//   names      newer versions refuse some keys in a path (base/kv_name.h): those go by transactions
//   size       a transaction has what every version takes (3.1), so none is refused for its size

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http.h"
#include "base/json_text.h"
#include "base/limits.h"
#include "lictor/result.h"
#include "net/transport.h"
#include "wire/kv_reply.h"
#include "wire/record.h"

namespace lictor::client {

/// The error of a failed request: kUnavailable (not sent, no leader, 429, 5xx), kTimeout (sent, but
/// no whole reply), kPermissionDenied, kTooLarge, kFailed. `doing`: "read task a/b".
[[nodiscard]] Error store_error(std::string_view doing, const http::Response& response);

using wire::txn_reply;

/// `key` for a message.
[[nodiscard]] std::string shown(const std::string& key);

/// Without a cluster leader, Consul answers after at most 7 s (rpc_hold_timeout), and says so,
/// which is better than a timeout.
inline constexpr std::chrono::milliseconds kStoreTimeout{10'000};
/// The longest blocking query (consul.md 4.4).
inline constexpr std::chrono::milliseconds kMaxWait{25'000};

/// Consul's KV store. Each call blocks until Consul has answered. Reads are consistent unless said
/// otherwise. Thread-safe.
class Store {
 public:
  struct Record {
    std::string key;
    std::string value;
  };
  struct Created {
    std::uint64_t index = 0;            ///< the new keys' CreateIndex, or one not above it
    std::vector<std::size_t> existing;  ///< the records that exist already; not written
    bool unmet = false;                 ///< none was written: `after` does not exist
  };
  struct Watched {
    std::optional<wire::KvEntry> entry;
    std::uint64_t index = 0;  ///< for the next call; 0: Consul's index went backwards
  };
  struct Agent {
    std::string node, version;
    bool is_server = false;
    /// Whether it leaves the cluster when it is stopped by TERM, or by INT, which ends all sessions
    /// of its node.
    bool leaves_on_term = false;
    bool leaves_on_interrupt = false;
  };
  struct Session {
    std::string node, ttl;
    std::chrono::nanoseconds lock_delay{};
  };

  /// Operations of a transaction, a condition included.
  static constexpr std::size_t kMaxOperations = limits::kLeastOperations;

  /// `transport` must outlive it.
  explicit Store(net::Transport& transport) : transport_(transport) {}

  [[nodiscard]] net::Transport& transport() const { return transport_; }

  /// std::nullopt if the key does not exist.
  [[nodiscard]] Result<std::optional<wire::KvEntry>> get(const std::string& key);

  /// Returns them in the order of `keys`; up to kMaxOperations of them are read at one moment. A
  /// key that the token may not read is an error only if it exists.
  [[nodiscard]] Result<std::vector<std::optional<wire::KvEntry>>> get_all(
      const std::vector<std::string>& keys);

  /// All entries below `prefix`, in the order of the keys. Consul silently leaves out those that
  /// the token may not read. `hidden`: the prefix's own folder key may not be read; an empty answer
  /// is then kPermissionDenied.
  struct Listed {
    std::vector<wire::KvEntry> entries;
    bool hidden = false;
  };
  [[nodiscard]] Result<Listed> list(const std::string& prefix);

  /// The names of the keys that begin with `prefix`, in their order, without those that the token
  /// may not read. `folders`: up to the next '/'.
  [[nodiscard]] Result<std::vector<std::string>> names(const std::string& prefix,
                                                       bool folders = false);

  /// The parts of names up to the next '/' below `prefix`, each once: "default" of
  /// "lictor/default/tasks/1". Leaves out folders in which the token may read nothing.
  [[nodiscard]] Result<std::vector<std::string>> folders(const std::string& prefix);

  /// Waits until the key's entry is newer than `index`, at most for `wait`. Not consistent. The
  /// wait for a key that does not exist ends with unrelated writes too (consul.md 4.2). A
  /// key whose name fits no path is read again after half a second.
  [[nodiscard]] Result<Watched> watch(const std::string& key, std::uint64_t index,
                                      std::chrono::milliseconds wait);

  /// Writes those of `records` that do not exist yet, in one transaction: at most kMaxOperations
  /// of them, and limits::kBatchBytes of batch_bytes(), or a single one of any size. Reads back
  /// after a lost reply. Errors: kUnavailable, nothing was written; kTimeout, the result is
  /// unknown.
  [[nodiscard]] Result<Created> create(const std::vector<Record>& records);
  /// The two halves of create(): the request, and the reading of its answer, which may send further
  /// requests. Nothing is written unless the key `after` exists (empty: no such condition), which
  /// takes the place of one record.
  [[nodiscard]] static http::Request create_request(const std::vector<Record>& records,
                                                    const std::string& after);
  [[nodiscard]] Result<Created> create_from(const http::Response& response, Instant answered_at,
                                            const std::vector<Record>& records,
                                            const std::string& after);
  [[nodiscard]] static std::size_t batch_bytes(std::string_view key, std::size_t value_size);

  /// Writes `value` and `flags` if the key's ModifyIndex is `index` (0: the key does not exist).
  /// False: it is not. Errors as create().
  [[nodiscard]] Result<bool> replace(const std::string& key, std::uint64_t index,
                                     const std::string& value, std::uint64_t flags = 0);

  /// A part of a transaction.
  struct Op {
    enum class Verb { kCheckIndex, kCas, kDeleteCas, kSet };
    Verb verb;
    std::string key;
    std::uint64_t index = 0;
    std::string value{};      ///< of a kCas or kSet
    std::uint64_t flags = 0;  ///< as `value`
  };
  /// Operations that are applied together or not at all.
  using Change = std::vector<Op>;
  /// For each change: nothing if it was applied, else the operation that was refused.
  using Refused = std::vector<std::optional<std::size_t>>;
  /// Applies `changes` in one transaction, without those that Consul refuses. Limits as
  /// create().
  /// Errors: kUnavailable, nothing was changed; kTimeout, the result is unknown.
  [[nodiscard]] Result<Refused> apply(const std::vector<Change>& changes);
  /// The two halves of apply(), as for create().
  [[nodiscard]] static http::Request change_request(const std::vector<Change>& changes);
  [[nodiscard]] Result<Refused> apply_from(const http::Response& response,
                                           const std::vector<Change>& changes);
  [[nodiscard]] static std::size_t batch_bytes(const Change& change);

  /// Finds out which of `keys` the token may write; writes nothing: Consul cannot apply that.
  [[nodiscard]] Result<std::vector<bool>> writable(const std::vector<std::string>& keys);

  /// Whether the token may write the "session" of a node, or the "service" of a name. std::nullopt
  /// if this Consul does not say.
  [[nodiscard]] std::optional<bool> may_write(std::string_view resource, const std::string& name);

  /// The cluster leader's address; empty: there is none.
  [[nodiscard]] Result<std::string> cluster_leader();
  [[nodiscard]] Result<Agent> agent();
  /// std::nullopt if it does not exist, or the token may not read it.
  [[nodiscard]] std::optional<Session> session(const std::string& id);
  /// The names of all sessions that the token may read.
  [[nodiscard]] std::vector<std::string> session_names();

 private:
  /// A request that changes nothing, whatever its method.
  [[nodiscard]] http::Response ask(std::string method, std::string target, std::string body = {},
                                   std::chrono::milliseconds timeout = kStoreTimeout);
  [[nodiscard]] Result<std::vector<std::optional<wire::KvEntry>>> get_chunk(
      std::vector<std::string> keys);
  [[nodiscard]] Result<void> read_outcomes(const http::Response& response, Instant answered_at,
                                           const std::vector<Record>& records, bool conditional,
                                           std::vector<std::size_t>& left, Created& created);
  [[nodiscard]] Result<std::optional<std::uint64_t>> find_written(
      const std::vector<Record>& records, const std::vector<std::size_t>& left,
      const http::Response& lost, Instant lost_at);

  net::Transport& transport_;
};

}  // namespace lictor::client
