#include "base/random.h"

#include <sys/random.h>

#include <fmt/format.h>

#include "base/assert.h"

namespace lictor {

std::string Random::hex() { return fmt::format("{:016x}", next()); }

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  LICTOR_ASSERT(getrandom(&seed, sizeof seed, 0) == sizeof seed);
  return seed;
}

}  // namespace lictor
