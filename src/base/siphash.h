#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lictor {

/// A key of SipHash: two numbers, secret if an outsider chooses the hashed texts.
struct SipKey {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;
};

/// SipHash-c-d of `bytes` (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). With a
/// secret key nobody can craft inputs that collide. The same on every machine.
template <int c, int d>
[[nodiscard]] constexpr std::uint64_t siphash(SipKey key, std::string_view bytes) {
  std::uint64_t v0 = key.k0 ^ 0x736f6d6570736575ULL;
  std::uint64_t v1 = key.k1 ^ 0x646f72616e646f6dULL;
  std::uint64_t v2 = key.k0 ^ 0x6c7967656e657261ULL;
  std::uint64_t v3 = key.k1 ^ 0x7465646279746573ULL;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1, v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0, v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1, v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2, v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto word = [&](std::size_t at, std::size_t count) {  // little endian
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    }
    return value;
  };
  const auto absorb = [&](std::uint64_t value) {
    v3 ^= value;
    rounds(c);
    v0 ^= value;
  };
  const std::size_t whole = bytes.size() / 8 * 8;
  for (std::size_t at = 0; at < whole; at += 8) absorb(word(at, 8));
  absorb(word(whole, bytes.size() - whole) | std::uint64_t{bytes.size()} << 56U);
  v2 ^= 0xff;
  rounds(d);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace lictor
