#pragma once

// What becomes of one reply on its way, or of a server that lags behind.

#include <array>
#include <cstddef>
#include <string_view>

namespace lictor::core::test {

enum class Tamper {
  kNone,
  kStale,    // a read without ?consistent shows what was answered to an earlier one
  kRewound,  // X-Consul-Index went back
  kNoIndex,  // X-Consul-Index below 1
  // What a proxy does.
  kCut,         // the body ends early
  kTooMany,     // 429: Consul never saw it
  kError,       // 500, carried out or not
  kBadGateway,  // 502, carried out or not
};
inline constexpr std::size_t kTampers = 8;

inline constexpr std::array<std::string_view, kTampers> kTamperNames{
    "none",    "stale result", "index rewound",  "index below 1",
    "cut off", "429",          "500 by a proxy", "502"};

struct Tampering {
  Tamper how = Tamper::kNone;
  double where = 0;  // of the body, of the index, among earlier answers: 0 to 1
};

}  // namespace lictor::core::test
