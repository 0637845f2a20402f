#pragma once

// Reads the values of tasks, a batch of keys a transaction. The size of the values is not known
// beforehand, so a batch begins with a few keys. It doubles while answers are small, and halves
// when one is large or late. So any list is read, over any link that carries one value in time.
//
// The order of tasks is known once a generation is read: all keys that one list of names showed
// first. While it is read, other keys wait for the next one.
//
//   read_in_order() --> waiting --begin()--> in the generation --read--> done
//                                                 ^    |
//                                                 +----+ no answer, or another key was missing
//
//   read_next() --> before all of these, in no generation

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/effect.h"
#include "core/event.h"
#include "core/key_list.h"
#include "core/options.h"
#include "core/reading/batch_size.h"
#include "core/requests.h"

namespace lictor::core {

class ValueReader {
 public:
  ValueReader(const QueueOptions& options, Requests& requests)
      : options_(options), requests_(requests), size_(options) {}

  void stop(Effects& out);

  /// Reads the key before all others: it is no new task.
  void read_next(std::string key) { next_.insert(std::move(key)); }
  /// Reads the key in the generation that follows.
  void read_in_order(std::string key) { waiting_.insert(std::move(key)); }
  /// Begins a generation: the keys that wait for it, and `keys`, which lie in `names`. The previous
  /// one must be read.
  void begin(KeyList names, std::vector<std::string_view> keys);

  /// Whether some keys of the generation are not read yet.
  [[nodiscard]] bool is_open() const {
    return at_ < keys_.size() || !again_.empty() || in_order_ != 0;
  }
  /// Whether keys wait for the next generation.
  [[nodiscard]] bool has_waiting() const { return !waiting_.empty(); }
  /// Whether no key is left to be read.
  [[nodiscard]] bool is_idle() const {
    return !is_open() && waiting_.empty() && next_.empty() && in_flight_.empty();
  }
  [[nodiscard]] bool will_read(const std::string& key) const;

  void send(Instant now, Effects& out);
  enum class Use { kNone, kFailed, kNext, kInOrder };
  /// Whether `reply` answers one of our requests, and whether its keys belong to the generation.
  /// Keys that the reply left out, or all if it failed, are requested again after a pause.
  [[nodiscard]] Use accept(Instant now, const TasksFetched& reply);
  /// Keys that an answer left out; they are read again after a pause, and block no other.
  [[nodiscard]] const std::set<std::string>& hidden() const { return hidden_; }
  /// When the oldest request in flight was sent; Instant::max(): there is none.
  [[nodiscard]] Instant oldest_request() const;
  [[nodiscard]] Instant next_deadline() const;

 private:
  struct Batch {
    std::vector<std::string> keys;
    bool in_order = false;
    Instant asked_at{};
  };

  [[nodiscard]] bool may_send() const;
  [[nodiscard]] Batch next_batch();
  void put_back(const Batch& batch, std::string key);

  const QueueOptions& options_;
  Requests& requests_;
  BatchSize size_;

  // The generation: the keys from `at_` on, and the keys to be asked for again.
  KeyList names_;
  std::vector<std::string_view> keys_;
  std::size_t at_ = 0;
  std::set<std::string> again_;

  std::set<std::string> next_;
  std::set<std::string> waiting_;
  std::set<std::string> hidden_;  // left out of an answer: the token may not read them
  Instant hidden_until_ = Instant::max();
  std::map<RequestId, Batch> in_flight_;
  std::size_t in_order_ = 0;  // batches of the generation among these
  Instant not_before_ = Instant::min();
};

}  // namespace lictor::core
