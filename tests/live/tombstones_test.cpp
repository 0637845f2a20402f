// The cost of a listing to Consul: it walks the tombstones of all deletions below the prefix in the
// last quarter of an hour (core/listing.h paces its readings by that).

#include <algorithm>

#include <doctest/doctest.h>

#include "consul_agent.h"
#include "kv.h"
#include "support.h"
#include "wire/txn.h"

namespace lictor::live {
namespace {

std::int64_t usual_ns(Kv& kv, const std::string& query) {
  std::vector<std::int64_t> times;
  for (int i = 0; i < 41; ++i) {
    const std::int64_t begin = monotonic_ns();
    CHECK(kv.request("GET", "/v1/kv/" + query).status == 200);
    times.push_back(monotonic_ns() - begin);
  }
  std::nth_element(times.begin(), times.begin() + 20, times.end());
  return times[20];
}

TEST_CASE("a listing costs Consul more after many deletions below its prefix") {
  const ConsulAgent consul;
  Kv kv{consul.address()};
  kv.put("much/", "");
  kv.put("little/", "");
  constexpr int kTransactions = 1'000;
  for (int i = 0; i < kTransactions; ++i) {
    wire::Txn txn;
    for (int j = 0; j < 32; ++j) {
      const std::string key = "much/" + std::to_string(i) + "-" + std::to_string(j);
      txn.verb("set", key).value("").verb("delete", key);
    }
    REQUIRE(kv.request("PUT", "/v1/txn", std::move(txn).body()).status == 200);
  }
  for (const char* how : {"?recurse", "?keys"}) {
    CHECK(usual_ns(kv, std::string{"much/"} + how) >
          2 * usual_ns(kv, std::string{"little/"} + how));
  }
}

}  // namespace
}  // namespace lictor::live
