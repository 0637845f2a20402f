#pragma once

#include <cstdint>
#include <string>

namespace lictor {

/// A seeded generator (SplitMix64, Steele et al., OOPSLA 2014), handed to code that needs chance:
/// the same seed gives the same numbers on every machine. Not for secrets.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  [[nodiscard]] std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }

  /// In [0, 1).
  [[nodiscard]] double fraction() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

  /// 16 hexadecimal digits.
  [[nodiscard]] std::string hex();

 private:
  std::uint64_t state_;
};

/// A seed from the operating system.
[[nodiscard]] std::uint64_t random_seed();

}  // namespace lictor
