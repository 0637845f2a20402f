#pragma once

// A client of Consul that shares no code with lictor's, so that an error there cannot hide.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support.h"

namespace lictor::live {

struct HttpAnswer {
  int status = 0;  ///< 0: no answer; `body` says why
  std::string body;
  std::map<std::string, std::string> headers{};  ///< by their names in lower case
  [[nodiscard]] nlohmann::json json() const;
};

struct KvEntry {
  std::string key;
  std::string value;
  std::string session;  ///< empty: not locked
  std::uint64_t create_index = 0;
  std::uint64_t modify_index = 0;
};

/// One connection, for one thread. A refusal by Consul throws, so that a test ends there; an answer
/// "no" is a return value.
class Kv {
 public:
  explicit Kv(std::string address, std::string token = {});
  ~Kv();
  Kv(const Kv&) = delete;
  Kv& operator=(const Kv&) = delete;

  [[nodiscard]] HttpAnswer request(const std::string& method, const std::string& path,
                                   const std::string& body = {});

  void put(const std::string& key, const std::string& value);
  void put_json(const std::string& key, const json& value) { put(key, value.dump()); }
  /// Does as put(); returns the ModifyIndex that the key got.
  std::uint64_t set(const std::string& key, const std::string& value);
  [[nodiscard]] std::optional<KvEntry> get(const std::string& key);
  [[nodiscard]] bool has(const std::string& key) { return get(key).has_value(); }
  /// The session that holds the lock; empty: none does.
  [[nodiscard]] std::string holder(const std::string& key) {
    return get(key).value_or(KvEntry{}).session;
  }
  [[nodiscard]] json get_json(const std::string& key);
  void remove(const std::string& key);
  /// All below the prefix, but for folder keys, which end in '/'.
  [[nodiscard]] std::vector<KvEntry> list(const std::string& prefix);

  [[nodiscard]] std::string create_session(const std::string& name, const std::string& lock_delay);
  void destroy_session(const std::string& session);
  [[nodiscard]] bool acquire(const std::string& key, const std::string& session,
                             const std::string& value);
  [[nodiscard]] bool release(const std::string& key, const std::string& session);
  /// The sessions whose name is `name`.
  [[nodiscard]] std::vector<std::string> sessions(const std::string& name);

 private:
  [[nodiscard]] std::string path_of(const std::string& key) const;
  [[nodiscard]] json expect(const std::string& method, const std::string& path,
                            const std::string& body = {});

  std::string address_;
  std::string token_;
  void* curl_ = nullptr;
};

/// How many of so many partitions each node leads if all of them have a leader; else empty.
[[nodiscard]] std::map<std::string, int> shares_of(Kv& kv, const std::string& leader_key,
                                                   int partitions);

}  // namespace lictor::live
