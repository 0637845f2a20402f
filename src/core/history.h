#pragma once

// The entries of finished tasks, and which of them to delete: the oldest beyond `keep`, and all
// older than `max_age`. Read at the beginning of a term and once a day, for the entries that the
// cancel command adds; each minute if the queue has several partitions, for those of other hosts.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/effect.h"
#include "core/event.h"
#include "core/options.h"
#include "core/requests.h"

namespace lictor::core {

class History {
 public:
  History(const QueueOptions& options, Requests& requests)
      : options_(options), requests_(requests) {}

  void start(Instant now) { read_at_ = now; }
  void stop(Effects& out);
  /// Asks for the listing when it is time.
  void on_time(Instant now, Effects& out);
  void on(Instant now, const HistoryListed& listed, Effects& out);

  /// A task was finished, and its entry is kept.
  void add(Instant now, const std::string& key, std::uint64_t index, WallTime at);
  /// Removes up to `most` entries that are over the limits, the oldest first.
  [[nodiscard]] std::vector<PruneOp> take_old(Instant now, WallTime wall, std::size_t most);

  [[nodiscard]] std::size_t size() const { return by_key_.size(); }
  [[nodiscard]] Instant next_deadline() const;

 private:
  using Entry = std::tuple<WallTime, std::uint64_t, std::string>;  // at, ModifyIndex, key

  [[nodiscard]] bool is_old(const Entry& entry, WallTime wall) const;
  [[nodiscard]] std::size_t excess() const;

  const QueueOptions& options_;
  Requests& requests_;
  std::set<Entry> by_age_;
  std::map<std::string, std::set<Entry>::iterator, std::less<>> by_key_;
  RequestId reading_;
  Instant asked_at_{};
  Instant read_at_ = Instant::max();
  Instant check_at_ = Instant::max();
  StoreTrouble trouble_;
};

}  // namespace lictor::core
