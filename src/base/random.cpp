#include "base/random.h"

#include <sys/random.h>

#include "base/assert.h"

namespace lictor {

std::string Random::hex() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::uint64_t bits = next();
  std::string text(16, '0');
  for (auto it = text.rbegin(); it != text.rend(); ++it, bits >>= 4U) *it = kDigits[bits & 15U];
  return text;
}

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  LICTOR_ASSERT(getrandom(&seed, sizeof seed, 0) == sizeof seed);
  return seed;
}

}  // namespace lictor
