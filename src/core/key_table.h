#pragma once

// What waits, by the hashes of the keys: whether a key is among very many, most often without a
// look at any. A list of a hundred thousand names is compared with what waits each time that it
// changes, and to walk from key to key through memory takes longer than Consul takes to tell the
// names.
//
// Of a task that is distant (core/schedule.h) this is all that is kept: 24 bytes, in a table of
// which a sixth to seven twelfths are empty as it grows.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "lictor/time.h"

namespace lictor::core {

/// Open addressing, a hash looked for from its own place onwards.
class KeyTable {
 public:
  struct Entry {
    std::uint64_t hash = 0;
    std::uint64_t version = 0;  // of a distant task, its ModifyIndex
    WallTime due = kNear;       // of a distant task

    [[nodiscard]] bool distant() const { return due != kNear; }
  };

  void insert(std::string_view key) { insert(key, 0, kNear); }
  void insert(std::string_view key, std::uint64_t version, WallTime due) {
    if (6 * (size_ + 1) > 5 * entries_.size()) {
      resize(std::max<std::size_t>(kLeast, 2 * entries_.size()));
    }
    place({hash_of(key), version, due});
    ++size_;
  }

  /// Of a key that was inserted.
  void erase(std::string_view key) { erase_hash(hash_of(key)); }

  /// Nothing: the key was not inserted. Else it was, or another one of the same 64 bits. Good until
  /// the table changes.
  [[nodiscard]] const Entry* find(std::string_view key) const {
    if (size_ == 0) return nullptr;
    const Entry& entry = entries_[place_of(hash_of(key))];
    return entry.hash == kEmpty ? nullptr : &entry;
  }

  /// Those of `keys`, in their order, that were not inserted; as find() tells.
  [[nodiscard]] std::vector<std::string_view> others(
      const std::vector<std::string_view>& keys) const {
    if (size_ == 0) return keys;
    std::vector<std::string_view> others;
    visit_places(keys, [&](std::size_t i, std::size_t place) {
      if (entries_[place].hash == kEmpty) others.push_back(keys[i]);
    });
    return others;
  }

  /// Erases whatever `wanted(entry)` names; returns how many.
  template <class Wanted>
  std::size_t erase_if(Wanted wanted) {
    return erase_places([&](std::size_t place) { return wanted(entries_[place]); });
  }
  /// The same, of what is not among `keys`.
  template <class Wanted>
  std::size_t erase_others(const std::vector<std::string_view>& keys, Wanted wanted) {
    std::vector<bool> listed(entries_.size());
    if (size_ != 0) {
      visit_places(keys, [&](std::size_t, std::size_t place) { listed[place] = true; });
    }
    return erase_places([&](std::size_t i) { return !listed[i] && wanted(entries_[i]); });
  }

  /// Calls `visit(entry)` for every entry, which may change all but the hash.
  template <class Visit>
  void for_each(Visit visit) {
    for (Entry& entry : entries_) {
      if (entry.hash != kEmpty) visit(entry);
    }
  }

  void clear() {
    entries_ = {};
    size_ = 0;
  }

 private:
  static constexpr std::uint64_t kEmpty = 0;
  static constexpr WallTime kNear = WallTime::min();
  static constexpr std::size_t kLeast = 64;

  static std::uint64_t hash_of(std::string_view key) {
    return std::max<std::uint64_t>(1, std::hash<std::string_view>{}(key));
  }
  [[nodiscard]] std::size_t mask() const { return entries_.size() - 1; }  // a power of two
  [[nodiscard]] std::size_t next(std::size_t place) const { return (place + 1) & mask(); }
  /// Where it is, or where it would be.
  [[nodiscard]] std::size_t place_of(std::uint64_t hash) const {
    std::size_t place = hash & mask();
    while (entries_[place].hash != kEmpty && entries_[place].hash != hash) place = next(place);
    return place;
  }
  void place(const Entry& entry) {
    std::size_t place = entry.hash & mask();
    while (entries_[place].hash != kEmpty) place = next(place);
    entries_[place] = entry;
  }

  // Each look at the entries waits for memory; so their places are asked for ahead.
  template <class Visit>
  void visit_places(const std::vector<std::string_view>& keys, Visit visit) const {
    constexpr std::size_t kAhead = 16;
    std::array<std::uint64_t, kAhead> hashes{};
    for (std::size_t i = 0; i < keys.size() + kAhead; ++i) {
      if (i >= kAhead) visit(i - kAhead, place_of(hashes[i % kAhead]));
      if (i >= keys.size()) continue;
      hashes[i % kAhead] = hash_of(keys[i]);
      __builtin_prefetch(&entries_[hashes[i % kAhead] & mask()]);
    }
  }

  void erase_hash(std::uint64_t hash) {
    std::size_t gap = place_of(hash);
    // Those after it that would not be found across the gap move into it.
    for (std::size_t i = next(gap); entries_[i].hash != kEmpty; i = next(i)) {
      const std::size_t own = entries_[i].hash & mask();
      if (((i - own) & mask()) < ((i - gap) & mask())) continue;
      entries_[gap] = entries_[i];
      gap = i;
    }
    entries_[gap] = {};
    --size_;
    if (entries_.size() > kLeast && 16 * size_ < entries_.size()) resize(entries_.size() / 4);
  }

  // By hash: what is erased moves others.
  template <class Wanted>
  std::size_t erase_places(Wanted wanted) {
    std::vector<std::uint64_t> hashes;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].hash != kEmpty && wanted(i)) hashes.push_back(entries_[i].hash);
    }
    for (const std::uint64_t hash : hashes) erase_hash(hash);
    return hashes.size();
  }

  void resize(std::size_t size) {
    std::vector<Entry> old(size);
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.hash != kEmpty) place(entry);
    }
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace lictor::core
