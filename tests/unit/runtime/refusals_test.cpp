#include "runtime/refusals.h"

#include <doctest/doctest.h>

#include "../client/fake_consul.h"
#include "base/clock.h"

namespace lictor::runtime {

using client::test::reply;
using namespace std::chrono_literals;

TEST_CASE("a refusal of Consul is reported until it is allowed, by any request about the same") {
  Refusals refusals;
  const Instant soon = boot_now() + 5s;
  refusals.on_reply("q", "watch_leader", reply(403, "Permission denied"), 0s);
  CHECK(refusals.first(boot_now()).empty());  // it may have been a moment's
  CHECK(refusals.first(soon).find("queue q: Consul refuses reading the lock: ") == 0);
  refusals.on_reply("other", "read_leader", reply(200, ""), 0s);
  CHECK_FALSE(refusals.first(soon).empty());
  refusals.on_reply("q", "read_leader", reply(200, ""), 0s);
  CHECK(refusals.first(soon).empty());
}

TEST_CASE("a denied lock is a conflict that names the right, a denied list is not found") {
  Refusals refusals;
  const Instant soon = boot_now() + 5s;
  refusals.on_reply("q", "acquire_lock", reply(409, "lock is already held"), 0s);
  refusals.on_reply("q", "renew_session", reply(404, "not found"), 0s);
  refusals.on_reply("q", "transaction", reply(409, "Permission denied"), 0s);  // of a job's writes
  http::Response lost = reply(403, "");
  lost.delivery = http::Delivery::kLost;
  refusals.on_reply("q", "list_tasks", lost, 0s);
  CHECK(refusals.first(soon).empty());
  refusals.on_reply("q", "list_tasks", reply(404, ""), 0s);
  CHECK(refusals.first(soon).find("listing the tasks") != std::string::npos);
  refusals.on_reply("q", "watch_tasks", reply(200, "[]"), 0s);
  refusals.on_reply("q", "acquire_lock", reply(409, "Permission denied"), 0s);
  CHECK(refusals.first(soon).find("acquiring the lock") != std::string::npos);
  CHECK(refusals.first(soon + 1min).empty());  // it has not been asked for since
}

}  // namespace lictor::runtime
