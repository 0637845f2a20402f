#pragma once

// Whether a key is among very many, most often without a look at any: a list of a hundred thousand
// names is compared with what waits each time that it changes, and to walk from key to key through
// memory takes longer than Consul takes to tell the names.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace lictor::core {

/// The hashes of a set of keys: open addressing, a hash looked for from its own place onwards.
class KeyHashes {
 public:
  void insert(std::string_view key) {
    if (2 * (size_ + 1) > slots_.size()) resize(std::max<std::size_t>(kLeast, 2 * slots_.size()));
    place(hash_of(key));
    ++size_;
  }

  /// Of a key that was inserted.
  void erase(std::string_view key) {
    std::size_t gap = find(hash_of(key));
    // Those after it that would not be found across the gap move into it.
    for (std::size_t i = next(gap); slots_[i] != kEmpty; i = next(i)) {
      const std::size_t own = slots_[i] & mask();
      if (((i - own) & mask()) < ((i - gap) & mask())) continue;
      slots_[gap] = slots_[i];
      gap = i;
    }
    slots_[gap] = kEmpty;
    --size_;
    if (slots_.size() > kLeast && 16 * size_ < slots_.size()) resize(slots_.size() / 4);
  }

  /// False: it was not inserted. True: it was, or another one of the same 64 bits.
  [[nodiscard]] bool may_have(std::string_view key) const {
    return !slots_.empty() && slots_[find(hash_of(key))] != kEmpty;
  }

  /// Those of `keys`, in their order, that were not inserted; as may_have() tells.
  [[nodiscard]] std::vector<std::string_view> others(
      const std::vector<std::string_view>& keys) const {
    if (slots_.empty()) return keys;
    std::vector<std::string_view> others;
    // Each look at the slots waits for memory; so their places are asked for ahead.
    constexpr std::size_t kAhead = 16;
    std::array<std::uint64_t, kAhead> hashes{};
    for (std::size_t i = 0; i < keys.size() + kAhead; ++i) {
      if (i >= kAhead && slots_[find(hashes[i % kAhead])] == kEmpty) {
        others.push_back(keys[i - kAhead]);
      }
      if (i >= keys.size()) continue;
      hashes[i % kAhead] = hash_of(keys[i]);
      __builtin_prefetch(&slots_[hashes[i % kAhead] & mask()]);
    }
    return others;
  }

  void clear() {
    slots_ = {};
    size_ = 0;
  }

 private:
  static constexpr std::uint64_t kEmpty = 0;
  static constexpr std::size_t kLeast = 64;

  static std::uint64_t hash_of(std::string_view key) {
    return std::max<std::uint64_t>(1, std::hash<std::string_view>{}(key));
  }
  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }  // a power of two
  [[nodiscard]] std::size_t next(std::size_t i) const { return (i + 1) & mask(); }
  /// Where it is, or where it would be.
  [[nodiscard]] std::size_t find(std::uint64_t hash) const {
    std::size_t i = hash & mask();
    while (slots_[i] != kEmpty && slots_[i] != hash) i = next(i);
    return i;
  }
  void place(std::uint64_t hash) {
    std::size_t i = hash & mask();
    while (slots_[i] != kEmpty) i = next(i);
    slots_[i] = hash;
  }
  void resize(std::size_t slots) {
    std::vector<std::uint64_t> old(slots, kEmpty);
    old.swap(slots_);
    for (const std::uint64_t hash : old) {
      if (hash != kEmpty) place(hash);
    }
  }

  std::vector<std::uint64_t> slots_;
  std::size_t size_ = 0;
};

}  // namespace lictor::core
