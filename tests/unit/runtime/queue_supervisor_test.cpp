// The supervisor's own decisions: with how many partitions a driver is made, when it is made again,
// and when the number is written.

#include "runtime/queue_supervisor.h"

#include <algorithm>
#include <limits>
#include <map>

#include <doctest/doctest.h>

#include "../client/fake_consul.h"
#include "base/clock.h"
#include "exec/lease_board.h"
#include "exec/noop_runner.h"
#include "exec/warden.h"
#include "served_model.h"
#include "temporary_folder.h"

namespace lictor::runtime {
namespace {

using namespace std::chrono_literals;

constexpr const char* kCountKey = "lictor/q/partitions";
constexpr const char* kLeaderKey = "lictor/q/leader";
constexpr const char* kReleased = R"({"node":"b","released":"2026-11-21T00:00:00Z"})";

// The supervisor of host "a", with a Consul whose replies come at once, a clock turned by hand and
// this test's end of the channel in the warden's place.
class Scene {
 public:
  // `count` is the number in Consul; empty: none.
  explicit Scene(std::uint32_t wanted, const std::string& count = {}) : wanted_(wanted) {
    if (!count.empty()) consul.put(kCountKey, count);
    constexpr pid_t kNoProcess = std::numeric_limits<pid_t>::max();
    auto [ours, wardens] = exec::Channel::create().value();
    host_ = exec::ProcessHost::create({std::move(ours), kNoProcess, "q", {}}, board_, {}).value();
    warden_ = std::make_unique<exec::Channel>(std::move(wardens));
  }

  void start() {
    prepare();
    pass(0s);
  }
  void prepare() {
    QueueDriver::Parts parts;
    parts.options.queue = "q";
    parts.options.node = "a";
    parts.options.identity = "1";
    parts.options.partitions = wanted_;
    parts.binding.layout = wire::Layout::under("lictor/", "q");
    parts.binding.queue = "q";
    parts.binding.node = "a";
    parts.binding.leader_value = R"({"node":"a"})";
    parts.binding.session_ttl = parts.options.session_ttl;
    parts.binding.lock_delay = parts.options.lock_delay;
    parts.state_dir = folder_.path();
    supervisor_ =
        std::make_unique<QueueSupervisor>(std::move(parts), 1, *loop_, consul, *commits_, *host_);
  }
  void step() {
    supervisor_->step(now_);
    loop_->run_posted();
    while (!commits_->idle()) commits_->step(1ms);
  }
  void request_stop() { supervisor_->request_stop(); }
  [[nodiscard]] bool stopped() const { return supervisor_->stopped(); }
  void pass(Duration time) {
    for (Duration passed{};; passed += 1s, now_ += 1s) {
      if (publishes) member("a", supervisor_->desired_partitions());
      // A driver is made at the present time: no clock may go back.
      for (int i = 0; i < 10; ++i) {
        now_ = std::max(now_, boot_now());
        step();
      }
      if (passed >= time) return;
    }
  }
  // A member's configuration has so many partitions. Returns the session of its entry.
  void member(const std::string& node, std::uint32_t partitions) {
    std::string& session = sessions_[node];
    if (session.empty()) session = consul.session();
    consul.put("lictor/q/members/" + node,
               R"({"partitions":{"q":)" + std::to_string(partitions) + "}}", session);
  }
  void want(std::uint32_t partitions, Runners runners = {}) {
    core::QueueOptions options;
    options.partitions = partitions;
    options.any_type = core::TypePolicy{};
    supervisor_->reconfigure(options, 1, std::move(runners));
    if (!publishes) member("a", partitions);
  }
  void run_task(const std::string& id) {
    const std::string key = "lictor/q/tasks/" + id;
    consul.put(key, R"({"taskType":"T"})");
    for (int i = 0; i < 60 && !consul.value(key).empty(); ++i) pass(1s);
    CHECK(consul.value(key).empty());
  }
  // The lock of the first partition, as the warden knows it.
  const exec::HeldLock& kept_lock() {
    for (exec::Packet packet; warden_->receive(packet) == exec::Channel::Received::kPacket;) {
      auto order = exec::decode_order(packet.bytes).value();
      auto* lock = std::get_if<exec::HeldLock>(&order);
      if (lock != nullptr && lock->slot == 0) kept_lock_ = std::move(*lock);
    }
    return kept_lock_;
  }
  // The number that Consul has; empty: none.
  [[nodiscard]] std::string count() { return consul.value(kCountKey); }
  // 0: there is no driver.
  [[nodiscard]] std::uint32_t driven() const {
    CHECK((supervisor_->driver() != nullptr) == (supervisor_->partitions() != 0));
    return supervisor_->partitions();
  }

  [[nodiscard]] std::uint32_t desired_partitions() const {
    return supervisor_->desired_partitions();
  }
  [[nodiscard]] const QueueDriver* driver() const { return supervisor_->driver(); }

  cli::test::ModelConsul consul;
  bool publishes = false;  // its entry has what it asks for, as a daemon's

 private:
  const std::uint32_t wanted_;
  const unit::TemporaryFolder folder_;
  Instant now_ = boot_now();
  std::map<std::string, std::string> sessions_;
  std::unique_ptr<Loop> loop_ = Loop::create().value();
  exec::LeaseBoard board_ = exec::LeaseBoard::create(core::kMostPartitions).value();
  std::unique_ptr<exec::ProcessHost> host_;
  std::unique_ptr<exec::Channel> warden_;
  exec::HeldLock kept_lock_;
  const std::unique_ptr<net::test::TestServer> server_ = test::serve(consul);
  std::unique_ptr<net::ConsulClient> commits_ =
      net::ConsulClient::open({.addresses = {server_->address()}}).value();
  std::unique_ptr<QueueSupervisor> supervisor_;
};

// Consul's answer to a token without the right to write the number, for each transaction that
// would.
std::optional<http::Response> refuse_number(const net::Request& request) {
  if (!request.target.starts_with("/v1/txn")) return std::nullopt;
  const auto operations = nlohmann::json::parse(request.body);
  nlohmann::json errors;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const auto& kv = operations[i].at("KV");
    const std::string verb = kv.at("Verb");
    const bool reads = verb.starts_with("get") || verb == "check-index" || verb == "check-session";
    if (reads || kv.at("Key") != kCountKey) continue;
    errors.push_back({{"OpIndex", i}, {"What", "Permission denied"}});
  }
  if (errors.empty()) return std::nullopt;
  return client::test::reply(409, nlohmann::json{{"Results", nullptr}, {"Errors", errors}}.dump());
}

TEST_CASE("a driver is made with the number that Consul has, else with one partition") {
  for (const std::uint32_t wanted : {1U, 4U, 8U}) {
    CAPTURE(wanted);
    Scene scene{wanted, "4"};
    scene.member("a", wanted);
    scene.start();
    CHECK(scene.driven() == 4);
  }
  Scene scene{1};
  scene.start();
  CHECK(scene.driven() == 1);
  CHECK(scene.count().empty());
}

TEST_CASE("while the number cannot be read there is no driver, and nothing is written") {
  for (const std::uint32_t wanted : {1U, 4U}) {
    CAPTURE(wanted);
    Scene scene{wanted, "many"};
    scene.member("a", wanted);
    scene.start();
    scene.pass(10s);
    CHECK(scene.driven() == 0);
    CHECK(scene.count() == "many");
    scene.consul.put(kCountKey, "4");
    scene.pass(3s);
    CHECK(scene.driven() == 4);
  }
}

TEST_CASE("the first number is written when all members want it and nobody leads") {
  Scene scene{4};
  scene.member("a", 4);
  scene.member("b", 1);
  scene.start();
  scene.pass(5s);
  CHECK(scene.count().empty());  // b does not want it
  const std::string leader = scene.consul.session();
  scene.consul.put(kLeaderKey, kReleased, leader);
  scene.member("b", 4);
  scene.pass(2 * core::kMostLockDelay);
  CHECK(scene.count().empty());  // b leads
  CHECK(scene.driven() == 0);
  scene.consul.release(kLeaderKey, leader);
  scene.pass(5s);
  CHECK(scene.count() == "4");
  CHECK(scene.driven() == 4);
}

TEST_CASE("a stop before there is a driver lasts, whatever is answered afterwards") {
  for (const std::uint32_t wanted : {1U, 4U}) {
    for (const int steps : {0, 1, 2}) {
      CAPTURE(wanted);
      CAPTURE(steps);
      Scene scene{wanted};
      scene.member("a", wanted);
      scene.prepare();
      for (int i = 0; i < steps; ++i) scene.step();
      REQUIRE(scene.driven() == 0);
      const std::string before = scene.count();
      scene.request_stop();
      CHECK(scene.stopped());
      scene.pass(3s);
      CHECK(scene.stopped());
      CHECK(scene.driven() == 0);
      CHECK(scene.count() == before);
    }
  }
}

TEST_CASE("when the number changes, the driver is made again") {
  Scene scene{4, "4"};
  scene.member("a", 4);
  scene.member("b", 16);  // so that nobody changes it back
  scene.start();
  CHECK(scene.driven() == 4);
  scene.consul.put(kCountKey, "16");
  scene.pass(60s);
  CHECK(scene.driven() == 16);
}

TEST_CASE("a host that still wants one partition takes part when the others changed the number") {
  Scene scene{1};
  const std::string leader = scene.consul.session();
  scene.consul.put(kLeaderKey, kReleased, leader);  // so that this host does not lead
  scene.member("a", 1);
  scene.member("b", 4);
  scene.start();
  CHECK(scene.driven() == 1);
  scene.consul.put(kCountKey, "4");
  scene.consul.release(kLeaderKey, leader);
  scene.pass(2 * core::kMostLockDelay);
  CHECK(scene.driven() == 4);
}

TEST_CASE("the number is changed by the host that holds all, when all members want another one") {
  Scene scene{2, "2"};
  scene.member("a", 2);
  scene.member("b", 2);
  scene.start();
  scene.want(8);
  scene.pass(30s);
  CHECK(scene.count() == "2");  // b does not want it
  CHECK(scene.driven() == 2);
  scene.member("b", 8);
  scene.pass(60s);
  CHECK(scene.count() == "8");
  CHECK(scene.driven() == 8);
}

TEST_CASE("a number of one that a client wrote is changed by the host that leads") {
  Scene scene{1, "1"};
  scene.member("0", 1);  // comes first by name
  scene.member("a", 1);
  scene.start();
  CHECK(scene.driven() == 1);
  scene.want(8);
  scene.member("0", 8);
  scene.pass(60s);
  CHECK(scene.count() == "8");
  CHECK(scene.driven() == 8);
}

TEST_CASE("a host that may not write the number leads on with one partition, until it may") {
  Scene scene{8};
  scene.publishes = true;
  scene.consul.refuse = refuse_number;
  scene.start();
  scene.pass(3s);
  CHECK(scene.driven() == 1);
  // So no other host gives up leadership for a number that is refused.
  CHECK(scene.desired_partitions() == 1);
  const QueueDriver* driver = scene.driver();
  scene.pass(100s);
  CHECK(scene.driver() == driver);
  scene.consul.refuse = {};
  scene.pass(180s);
  CHECK(scene.count() == "8");
  CHECK(scene.driven() == 8);
}

TEST_CASE("a host that may not write another number keeps the one that there is") {
  Scene scene{2, "2"};
  scene.publishes = true;
  scene.member("b", 8);
  scene.start();
  REQUIRE(scene.driven() == 2);
  scene.consul.refuse = refuse_number;
  scene.want(8);
  scene.pass(5s);
  const QueueDriver* driver = scene.driver();
  scene.pass(100s);
  CHECK(scene.driver() == driver);
  CHECK(scene.desired_partitions() == 2);
  CHECK(scene.count() == "2");
}

TEST_CASE("a change that Consul refuses again and again is tried less and less often") {
  Scene scene{2, "2"};
  scene.publishes = true;
  scene.member("b", 8);
  scene.start();
  int tries = 0;
  scene.consul.refuse = [&](const net::Request& request) -> std::optional<http::Response> {
    if (request.body.find("check-session") == std::string::npos) return std::nullopt;
    const auto operations = nlohmann::json::parse(request.body);
    if (operations.back().at("KV").at("Key") != kCountKey) return std::nullopt;
    ++tries;
    return client::test::reply(403, "Permission denied");
  };
  scene.want(8);
  scene.pass(50s);
  CHECK(tries == 1);
  CHECK(scene.driven() == 2);
  scene.pass(30min);
  CHECK(tries <= 6);
  CHECK(tries >= 2);
}

TEST_CASE("a reload's runners wait for the first driver; the next has them, and new attempt ids") {
  Scene scene{4, "many"};
  scene.member("b", 16);  // so that nobody changes the number back
  scene.start();
  REQUIRE(scene.driven() == 0);
  Runners runners;
  runners.emplace("*", std::make_unique<exec::NoopRunner>(0s));
  scene.want(4, std::move(runners));
  scene.consul.put(kCountKey, "4");
  for (const char* task : {"1", "2", "3"}) scene.run_task(task);
  const std::uint64_t next = scene.driver()->next_attempt();
  CHECK(next > 3);
  scene.consul.put(kCountKey, "16");
  scene.pass(60s);
  REQUIRE(scene.driven() == 16);
  CHECK(scene.driver()->next_attempt() == next);
  scene.run_task("4");
}

TEST_CASE("the warden knows the lock and its value, and forgets it with the lease") {
  Scene scene{1};
  scene.start();
  scene.pass(1s);
  REQUIRE(scene.driver()->holds_all());
  const exec::HeldLock held = scene.kept_lock();
  CHECK_FALSE(held.session.empty());
  CHECK(held.index != 0);
  CHECK(held.value == R"({"node":"a"})");
  SUBCASE("given up, though no answer comes") {
    scene.consul.refuse = [&](const net::Request& request) -> std::optional<http::Response> {
      const bool unlocks = contains(request.body, R"("unlock")");
      if (!unlocks && !contains(request.target, "/session/destroy/")) return std::nullopt;
      if (unlocks) scene.consul.release(kLeaderKey, held.session);  // it landed
      return client::test::undelivered(http::Delivery::kLost);
    };
    scene.request_stop();
  }
  SUBCASE("another daemon's") {
    scene.consul.release(kLeaderKey, held.session);
    scene.consul.put(kLeaderKey, R"({"node":"b"})", scene.consul.session());
  }
  scene.pass(5s);
  CHECK(scene.kept_lock().session.empty());
}

TEST_CASE("the warden forgets a lock that another daemon got first") {
  Scene scene{1};
  bool taken = false;
  scene.consul.refuse = [&](const net::Request& request) -> std::optional<http::Response> {
    if (contains(request.body, R"("lock")") && !std::exchange(taken, true)) {
      CHECK_FALSE(scene.kept_lock().session.empty());  // the answer may be lost
      scene.consul.put(kLeaderKey, R"({"node":"b"})", scene.consul.session());
    }
    return std::nullopt;
  };
  scene.start();
  scene.pass(5s);
  CHECK(taken);
  CHECK(scene.kept_lock().session.empty());
}

}  // namespace
}  // namespace lictor::runtime
