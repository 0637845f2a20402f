#pragma once

// The keys that the core knows, by hash, to find which keys of a listing are new and which are
// missing. A listing of a hundred thousand names is compared after every change, so only hashes are
// compared, no keys. The hash is keyed by the queue's seed, so that no producer can craft colliding
// names; two other names collide with a probability of 2^-64.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/siphash.h"

namespace lictor::core {

struct KnownKey {
  std::string key;
  std::uint64_t index = 0;  // ModifyIndex of the newest known version; 0: any is news
};

/// A hash table of pointers with open addressing. Owns nothing.
class KnownKeys {
 public:
  explicit KnownKeys(std::uint64_t seed) {
    Random random{seed};
    sip_ = {random.next(), random.next()};
  }

  void insert(KnownKey& known) {
    if (6 * (size_ + 1) > 5 * slots_.size()) {
      resize(std::max<std::size_t>(kLeast, 2 * slots_.size()));
    }
    place({hash_of(known.key), &known});
    ++size_;
  }

  void erase(const KnownKey& known) {
    std::size_t gap = place_of(known.key);
    // Keys after the gap that could not be found across it move into it.
    for (std::size_t i = next(gap); slots_[i].known != nullptr; i = next(i)) {
      const std::size_t own = slots_[i].hash & mask();
      if (((i - own) & mask()) < ((i - gap) & mask())) continue;
      slots_[gap] = slots_[i];
      gap = i;
      ++moves_;
    }
    slots_[gap] = {};
    --size_;
    if (slots_.size() > kLeast && 16 * size_ < slots_.size()) resize(slots_.size() / 4);
  }

  [[nodiscard]] KnownKey* find(std::string_view key) const {
    return size_ == 0 ? nullptr : slots_[place_of(key)].known;
  }

  /// How a listing compares to the known keys. Valid until the table changes.
  struct Match {
    std::vector<std::string_view> unknown;  // in the order of the listing
    std::vector<bool> listed;               // by place
  };
  [[nodiscard]] Match match(const std::vector<std::string_view>& names) const {
    Match found;
    if (size_ == 0) {
      found.unknown = names;
      return found;
    }
    found.listed.resize(slots_.size());
    // Each look-up waits for memory, so the next places are fetched ahead.
    constexpr std::size_t kAhead = 16;
    std::array<std::uint64_t, kAhead> hashes{};
    for (std::size_t i = 0; i < names.size() + kAhead; ++i) {
      if (i >= kAhead) {
        const std::size_t at = place_of(hashes[i % kAhead]);
        if (slots_[at].known == nullptr) {
          found.unknown.push_back(names[i - kAhead]);
        } else {
          found.listed[at] = true;
        }
      }
      if (i >= names.size()) continue;
      hashes[i % kAhead] = hash_of(names[i]);
      __builtin_prefetch(&slots_[hashes[i % kAhead] & mask()]);
    }
    return found;
  }
  [[nodiscard]] bool listed(const Match& match, const KnownKey& known) const {
    return !match.listed.empty() && match.listed[place_of(known.key)];
  }

  /// Calls `visit(KnownKey&)` for every key, in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.known != nullptr) visit(*slot.known);
    }
  }
  /// Calls `visit(const KnownKey&)` for the keys from slot `slot` on, until it returns false.
  /// Returns the slot to go on at. While moves() stays the same, all slots together are all keys.
  template <class Visit>
  [[nodiscard]] std::size_t visit_from(std::size_t slot, Visit visit) const {
    bool goes_on = true;
    for (; goes_on && slot < slots_.size(); ++slot) {
      if (slots_[slot].known != nullptr) goes_on = visit(std::as_const(*slots_[slot].known));
    }
    return slot;
  }
  [[nodiscard]] bool is_end(std::size_t slot) const { return slot >= slots_.size(); }
  /// How often a key was moved to another slot.
  [[nodiscard]] std::uint64_t moves() const { return moves_; }
  template <class Visit>
  void for_each_unlisted(const Match& match, Visit visit) const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].known != nullptr && (match.listed.empty() || !match.listed[i])) {
        visit(*slots_[i].known);
      }
    }
  }

  void clear() {
    slots_ = {};
    size_ = 0;
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kLeast = 64;

  struct Slot {
    std::uint64_t hash = 0;
    KnownKey* known = nullptr;
  };

  [[nodiscard]] std::uint64_t hash_of(std::string_view key) const {
    return siphash<1, 3>(sip_, key);
  }
  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }  // a power of two
  [[nodiscard]] std::size_t next(std::size_t place) const { return (place + 1) & mask(); }
  /// The place of the key, or the place that it would get.
  [[nodiscard]] std::size_t place_of(std::string_view key) const {
    const std::uint64_t hash = hash_of(key);
    std::size_t place = hash & mask();
    while (slots_[place].known != nullptr &&
           (slots_[place].hash != hash || slots_[place].known->key != key)) {
      place = next(place);
    }
    return place;
  }
  /// The place by the hash alone.
  [[nodiscard]] std::size_t place_of(std::uint64_t hash) const {
    std::size_t place = hash & mask();
    while (slots_[place].known != nullptr && slots_[place].hash != hash) place = next(place);
    return place;
  }
  void place(const Slot& slot) {
    std::size_t place = slot.hash & mask();
    while (slots_[place].known != nullptr) place = next(place);
    slots_[place] = slot;
  }
  void resize(std::size_t size) {
    std::vector<Slot> old(size);
    old.swap(slots_);
    ++moves_;
    for (const Slot& slot : old) {
      if (slot.known != nullptr) place(slot);
    }
  }

  SipKey sip_;
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
  std::uint64_t moves_ = 0;
};

}  // namespace lictor::core
