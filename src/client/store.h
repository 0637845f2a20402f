#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http.h"
#include "lictor/result.h"
#include "net/transport.h"
#include "wire/record.h"

namespace lictor::client {

/// A request that brought no good answer, in words: kUnavailable (not sent, no leader, 429, 5xx),
/// kTimeout (sent, and no whole reply), kPermissionDenied, kTooLarge, kFailed. `doing` says what
/// was being done: "read task a/b".
[[nodiscard]] Error store_error(std::string_view doing, const http::Response& response);

/// The longest that Consul takes over an answer without a cluster leader is 7 s
/// (rpc_hold_timeout); it then says so, which is better than a time-out.
inline constexpr std::chrono::milliseconds kStoreTimeout{10'000};
/// Longer than a blocking query is worth waiting on (CONSUL-FACTS.md 4.4).
inline constexpr std::chrono::milliseconds kMaxWait{55'000};

/// Consul's KV store, one call after the other: each blocks until Consul has answered. Reads are
/// consistent unless said otherwise. Thread safe, as the transport is.
class Store {
 public:
  struct Record {
    std::string key;
    std::string value;
  };
  struct Created {
    std::uint64_t index = 0;            ///< the new keys' CreateIndex, or one not above it
    std::vector<std::size_t> existing;  ///< which of the records exist already; not written
    bool unmet = false;                 ///< none was written: the condition does not hold
  };
  /// What must hold for a transaction to be applied.
  struct Condition {
    std::string key{};                     ///< empty: nothing
    std::optional<std::uint64_t> index{};  ///< its ModifyIndex, 0: it does not exist; else it does
  };
  struct Watched {
    std::optional<wire::KvEntry> entry;
    std::uint64_t index = 0;  ///< for the next call; 0 after what makes Consul's index doubtful
  };
  struct Agent {
    std::string node, version;
  };
  struct Session {
    std::string node, ttl;
    std::chrono::nanoseconds lock_delay{};
  };

  /// `transport` must outlive it.
  explicit Store(net::Transport& transport) : transport_(transport) {}

  [[nodiscard]] net::Transport& transport() const { return transport_; }

  /// Nothing when the key does not exist.
  [[nodiscard]] Result<std::optional<wire::KvEntry>> get(const std::string& key);

  /// In the order of `keys`, all as of one moment for up to 64 of them. A key that the token may
  /// not read is refused only if it exists.
  [[nodiscard]] Result<std::vector<std::optional<wire::KvEntry>>> get_all(
      const std::vector<std::string>& keys);

  /// Everything below `prefix`, in the order of the keys. Consul leaves out what the token may not
  /// read and says nothing; `hidden` is set when the prefix's own folder key may not be read, and
  /// an empty answer is then kPermissionDenied.
  struct Listed {
    std::vector<wire::KvEntry> entries;
    bool hidden = false;
  };
  [[nodiscard]] Result<Listed> list(const std::string& prefix);

  /// Waits until the key's entry is newer than `index`, at most for `wait`. Not consistent. The
  /// wait for a key that does not exist ends with unrelated writes too (CONSUL-FACTS.md 4.2).
  [[nodiscard]] Result<Watched> watch(const std::string& key, std::uint64_t index,
                                      std::chrono::milliseconds wait);

  /// Writes those of `records` that do not exist yet, in one transaction; at most kMaxOperations,
  /// and kMaxBatchBytes of batch_bytes(), unless it is a single one. A lost reply is resolved by
  /// reading back.
  /// Errors: kUnavailable, nothing was written; kTimeout, nobody can tell.
  [[nodiscard]] Result<Created> create(const std::vector<Record>& records);
  /// The two halves of it: what is to be sent, and what follows from the answer to that, which may
  /// take further requests. With a condition, one record fewer. Where
  /// it is that a key is unchanged, it must be such that nobody takes records away while it holds:
  /// what is not there after a lost reply is written again then.
  [[nodiscard]] static http::Request create_request(const std::vector<Record>& records,
                                                    const Condition& condition);
  [[nodiscard]] Result<Created> create_from(const http::Response& response, Instant answered_at,
                                            const std::vector<Record>& records,
                                            const Condition& condition);
  /// Whether the answer to create_request() says that a key does not exist that must.
  [[nodiscard]] static bool came_early(const http::Response& response);
  static constexpr std::size_t kMaxOperations = 64;  // of Consul before 1.14
  static constexpr std::size_t kMaxBatchBytes = 400'000;
  [[nodiscard]] static std::size_t batch_bytes(std::string_view key, std::size_t value_size);

  /// Writes `value` if the key still has ModifyIndex `index` (0: does not exist). False: it has
  /// not. Errors as create().
  [[nodiscard]] Result<bool> replace(const std::string& key, std::uint64_t index,
                                     const std::string& value);

  /// A part of a transaction.
  struct Op {
    enum class Verb { kCheckIndex, kCas, kDeleteCas };
    Verb verb;
    std::string key;
    std::uint64_t index = 0;
    std::string value{};  ///< of a kCas
  };
  /// What is to be done wholly or not at all.
  using Change = std::vector<Op>;
  /// For each of many: nothing if it was applied, else which of its operations was refused.
  using Refused = std::vector<std::optional<std::size_t>>;
  /// Carries out `changes`, in one transaction but for those that are refused. As many as create()
  /// takes.
  /// Errors: kUnavailable, nothing was changed; kTimeout, nobody can tell.
  [[nodiscard]] Result<Refused> apply(const std::vector<Change>& changes);
  /// The two halves of it: what is to be sent, and what follows from the answer to that, which may
  /// take further requests.
  [[nodiscard]] static http::Request change_request(const std::vector<Change>& changes);
  [[nodiscard]] Result<Refused> apply_from(const http::Response& response,
                                           const std::vector<Change>& changes);
  [[nodiscard]] static std::size_t batch_bytes(const Change& change);

  /// Which of `keys` the token may write, without writing: a transaction that cannot be applied.
  [[nodiscard]] Result<std::vector<bool>> writable(const std::vector<std::string>& keys);

  /// Whether the token may write the "session" of a node, or the "service" of a name. Nothing when
  /// this Consul does not tell.
  [[nodiscard]] std::optional<bool> may_write(std::string_view resource, const std::string& name);

  /// Empty: the cluster has none.
  [[nodiscard]] Result<std::string> cluster_leader();
  [[nodiscard]] Result<Agent> agent();
  /// Nothing when it is gone, or not for this token to see.
  [[nodiscard]] std::optional<Session> session(const std::string& id);

 private:
  /// What changes nothing, whatever the method is.
  [[nodiscard]] http::Response ask(std::string method, std::string target, std::string body = {},
                                   std::chrono::milliseconds timeout = kStoreTimeout);
  [[nodiscard]] http::Response put(std::string target, std::string body);
  [[nodiscard]] Result<std::vector<std::optional<wire::KvEntry>>> get_chunk(
      std::vector<std::string> keys);
  [[nodiscard]] Result<void> read_outcomes(const http::Response& response, Instant answered_at,
                                           const std::vector<Record>& records, bool conditional,
                                           std::vector<std::size_t>& left, Created& created);
  [[nodiscard]] Result<Created> create_again(const std::vector<Record>& records,
                                             const Condition& condition,
                                             const http::Response& unanswered, Instant lost_at);
  [[nodiscard]] Result<std::optional<std::uint64_t>> find_written(
      const std::vector<Record>& records, const std::vector<std::size_t>& left,
      const http::Response& lost, Instant lost_at);

  net::Transport& transport_;
};

}  // namespace lictor::client
