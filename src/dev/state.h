#pragma once

// The state that Consul's servers replicate: keys, tombstones, sessions. next_index() begins an
// entry of the raft log; the writes after it carry its index.
//
// A blocking query compares indexes, so everything that can be read has one:
//
//   a key                 its ModifyIndex
//   the keys of a prefix  the greatest of the keys and tombstones there; without any, the table's
//   sessions              the table's
//
// A tombstone keeps the index of a deletion, so that a query of the prefix notices it. When
// tombstones are reaped, the index of the prefix goes back (consul.md 4.3). A write that changes
// nothing keeps the ModifyIndex and wakes nobody (consul.md 2.4), though it takes a raft index.
//
// A transaction notes what it overwrites (Undo), since a later operation may fail it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lictor/time.h"

namespace lictor::dev {

struct KvRecord {
  std::string key;
  std::string value;
  std::string session;  ///< empty: not locked
  std::uint64_t flags = 0;
  std::uint64_t lock_index = 0;
  std::uint64_t create_index = 0;
  std::uint64_t modify_index = 0;
};

struct SessionRecord {
  std::string id;
  std::string name;
  std::string node;
  std::string behavior;
  std::string ttl_text;  ///< as it was sent
  Duration ttl{};        ///< zero: none
  Duration lock_delay{};
  std::vector<std::string> node_checks;
  std::uint64_t create_index = 0;
};

class State {
 public:
  using Records = std::map<std::string, KvRecord, std::less<>>;

  [[nodiscard]] std::uint64_t index() const { return index_; }
  std::uint64_t next_index() { return ++index_; }

  [[nodiscard]] const Records& records() const { return records_; }
  [[nodiscard]] const KvRecord* find(std::string_view key) const;
  /// The records whose key begins with `prefix`, as [first, last).
  [[nodiscard]] std::pair<Records::const_iterator, Records::const_iterator> under(
      std::string_view prefix) const;
  /// The X-Consul-Index of a missing key, and of a prefix that was never used.
  [[nodiscard]] std::uint64_t table_index() const { return kv_index_; }
  /// The greatest index of the keys and tombstones under `prefix`; without any, the table's.
  [[nodiscard]] std::uint64_t prefix_index(std::string_view prefix) const;

  // Writes. False: refused, nothing has changed. `record` returns as it is stored.
  /// Keeps the key's session but not its LockIndex, as Consul does (consul.md 2.3).
  void set(KvRecord& record);
  /// Expects `record.modify_index`; 0: no such key.
  [[nodiscard]] bool compare_and_set(KvRecord& record);
  /// `record.session` must be live.
  [[nodiscard]] bool lock(KvRecord& record);
  [[nodiscard]] bool unlock(KvRecord& record);
  void erase(std::string_view key);
  [[nodiscard]] bool compare_and_erase(std::string_view key, std::uint64_t modify_index);
  void erase_tree(std::string_view prefix);

  /// Stores the record as it is given, with its indexes. Wakes no query.
  void restore(const KvRecord& record) { records_.insert_or_assign(record.key, record); }

  /// Takes the contents of the snapshot. New indexes go on above all earlier ones.
  void restore(const State& snapshot) {
    const std::uint64_t index = index_;
    *this = snapshot;
    index_ = index;
  }

  /// Begins a transaction over keys, up to commit() or roll_back().
  void begin();
  void commit() { undo_.reset(); }
  void roll_back();

  [[nodiscard]] const std::map<std::string, SessionRecord>& sessions() const { return sessions_; }
  [[nodiscard]] std::uint64_t session_index() const { return session_index_; }
  void add_session(SessionRecord session);
  /// Frees or deletes the keys that it holds, and returns them. No such session: does nothing.
  std::vector<std::string> remove_session(const std::string& id);

  /// The index of the youngest tombstone; 0: none.
  [[nodiscard]] std::uint64_t tombstone_index() const { return tombstone_index_; }
  /// Removes the tombstones up to `index`. Wakes no query.
  void reap(std::uint64_t index);

 private:
  struct Undo {
    std::vector<std::pair<std::string, std::optional<KvRecord>>> records;
    std::vector<std::pair<std::string, std::optional<std::uint64_t>>> tombstones;
    std::uint64_t kv_index = 0;
    std::uint64_t tombstone_index = 0;
  };

  void store(KvRecord& record, bool with_session);
  void remember(std::string_view key);
  void bury(std::string_view key);

  std::uint64_t index_ = 1;  // a real log begins with its leader; in answers 1 means "none"
  std::uint64_t kv_index_ = 1;
  std::uint64_t session_index_ = 1;
  std::uint64_t tombstone_index_ = 0;
  Records records_;
  std::map<std::string, std::uint64_t, std::less<>> tombstones_;
  std::map<std::string, SessionRecord> sessions_;
  std::optional<Undo> undo_;
};

}  // namespace lictor::dev
