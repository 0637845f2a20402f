// The questions of a daemon's admin API to Consul and the other daemons.

#include "app/admin_backend.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "../cli/model_consul.h"
#include "base/host_name.h"
#include "client/client.h"
#include "core/partition.h"
#include "unit/contains.h"

namespace lictor::app {
namespace {

using cli::test::FakeAdminApi;
using nlohmann::json;
using Numbers = std::vector<std::uint32_t>;

constexpr std::uint32_t kCount = 4;

// The first id t0, t1, ... whose task belongs to `partition`.
std::string id_in(std::uint32_t partition) {
  for (int i = 0;; ++i) {
    std::string id = "t" + std::to_string(i);
    if (core::partition_of({}, id, kCount) == partition) return id;
  }
}

// The admin API of member "self" of a queue "q".
class Scene {
 public:
  explicit Scene(std::uint32_t count = kCount) : count_(count) {
    if (count > 1) consul.put("lictor/q/partitions", std::to_string(count));
    queues_.push_back({client_, impl_->queue});
    backend = std::make_unique<AdminBackend>(
        *loop_, consul, "self", queues_, [] { return admin::Status{}; },
        [this](const std::string&, const std::string&) { return own_why; },
        [] { return std::string{}; });
    thread_ = std::jthread{[this] { loop_->run(); }};
  }
  ~Scene() {
    loop_->post([this] { loop_->stop(); });
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void add(const std::string& node, const Numbers& partitions, const std::string& url = {},
           std::uint32_t desired_partitions = 0) {
    const std::string session = consul.session();
    json value{{"node", node}, {"host", host_name()}, {"version", "1"}};
    if (desired_partitions == 0) desired_partitions = count_;
    if (desired_partitions > 1) value["partitions"] = {{"q", desired_partitions}};
    if (!url.empty()) value["admin"] = {url};
    consul.put("lictor/q/members/" + node, value.dump(), session);
    value["since"] = "2026-11-21T00:00:00Z";
    for (const std::uint32_t i : partitions) {
      const std::string lock =
          count_ == 1 ? "leader" : "leader/" + std::to_string(count_) + '/' + std::to_string(i);
      consul.put("lictor/q/" + lock, value.dump(), session);
    }
  }

  cli::test::ModelConsul consul;
  std::optional<std::string> own_why;
  std::unique_ptr<AdminBackend> backend;

 private:
  const std::uint32_t count_;
  std::unique_ptr<Client::Impl> impl_ =
      std::make_unique<Client::Impl>(consul, "q", wire::Layout::under("lictor/", "q"));
  Client client_{std::make_unique<Client::Impl>(consul, "q", wire::Layout::under("lictor/", "q"))};
  admin::StoredQueues queues_;
  std::unique_ptr<runtime::Loop> loop_ = runtime::Loop::create().value();
  std::jthread thread_;
};

// Answers with its name and the target.
FakeAdminApi::Handler named(const std::string& name) {
  return [name](const httpd::Request& request) {
    return httpd::Response{200, "application/json", name + ' ' + request.target, {}};
  };
}

}  // namespace

TEST_CASE("the fleet of a queue with one partition has one leader") {
  Scene scene{1};
  scene.add("self", {});
  scene.add("b", {0});
  const auto fleet = scene.backend->fleet("q").value();
  CHECK_FALSE(fleet.partitioned());
  CHECK(fleet.locks[0].name() == "b");
  CHECK(fleet.locks[0].text("since") == "2026-11-21T00:00:00Z");
  REQUIRE(fleet.members.size() == 2);
  CHECK(fleet.members[0].leads);
  CHECK(wire::number_of(fleet.members[1].desired_partitions, "q") == 1);
  CHECK(cluster::free_partitions(fleet.locks).empty());
  CHECK(fleet.next.empty());
}

TEST_CASE("the fleet of a queue with partitions shows each leader and the draining hosts") {
  Scene scene;
  scene.add("self", {0, 3});
  scene.add("b", {1}, {}, 8);
  scene.consul.put("lictor/q/members/b/drain", "{}");
  const auto fleet = scene.backend->fleet("q").value();
  CHECK(fleet.partitioned());
  CHECK(fleet.locks.count() == kCount);
  CHECK(fleet.locks[1].name() == "b");
  CHECK(cluster::free_partitions(fleet.locks) == Numbers{2});
  REQUIRE(fleet.members.size() == 2);  // the key below a member is none
  const cluster::Member& b = fleet.members[0];
  CHECK(b.draining);
  CHECK(b.partitions == Numbers{1});
  CHECK(wire::number_of(b.desired_partitions, "q") == 8);
  CHECK_FALSE(fleet.members[1].draining);
  CHECK(fleet.members[1].partitions == Numbers{0, 3});
}

TEST_CASE("free partitions wait for a member that takes some") {
  Scene scene;
  scene.add("self", {});
  scene.consul.put("lictor/q/members/self/drain", "{}");
  const auto fleet = scene.backend->fleet("q").value();
  CHECK(cluster::free_partitions(fleet.locks) == Numbers{0, 1, 2, 3});
  CHECK(contains(fleet.next, "let a draining one take partitions again"));
}

TEST_CASE("why asks the leader of the task's own partition") {
  const FakeAdminApi b{named("b")}, c{named("c")};
  Scene scene;
  scene.add("self", {0});
  scene.add("b", {1}, b.url());
  scene.add("c", {2}, c.url());
  for (std::uint32_t i = 0; i < kCount; ++i) {
    scene.consul.put("lictor/q/tasks/" + id_in(i), R"({"taskType":"T"})");
  }
  AdminBackend& backend = *scene.backend;
  CHECK(backend.ask_leader_of("q", id_in(1), "/x").value() == "b /x");
  CHECK(backend.ask_leader_of("q", id_in(2), "/x").value() == "c /x");
  CHECK(backend.ask_leader_of("q", id_in(3), "/x").error().message == "nobody leads partition 3");
  CHECK_FALSE(backend.ask_leader_of("q", id_in(0), "/x"));  // this daemon's own
  CHECK(backend.ask_leader_of("q", "nope", "/x").error().code == ErrorCode::kNotFound);
  // The task is placed by its serialKey, whatever its id.
  scene.consul.put("lictor/q/tasks/" + id_in(1),
                   R"({"taskType":"T","serialKey":")" + id_in(2) + R"("})");
  CHECK(backend.ask_leader_of("q", id_in(1), "/x").value() == "c /x");
}

TEST_CASE("a daemon answers nothing for a task of a partition that it does not lead") {
  Scene scene;
  CHECK_FALSE(scene.backend->why("q", "t"));
  scene.own_why = R"([{"reason":"not_leading","text":"..."}])";
  CHECK_FALSE(scene.backend->why("q", "t"));
  // Its lock is held, and the lease is about to be proved.
  scene.own_why = R"([{"reason":"not_leading","text":"..."},{"reason":"paused","text":"..."}])";
  CHECK(scene.backend->why("q", "t") == scene.own_why);
}

TEST_CASE("a leader whose entry cannot be read is not called one without an admin API") {
  Scene scene;
  scene.add("self", {0});
  scene.add("d", {3});
  scene.consul.put("lictor/q/members/d", "garbage");
  const auto answers = scene.backend->ask_leaders("q", "/y");
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].body.error().message.starts_with(
      "d could not be asked: its entry below members/ cannot be read"));
}

TEST_CASE("all other leaders are asked") {
  const FakeAdminApi b{named("b")}, c{named("c")};
  Scene scene;
  scene.add("self", {0});
  scene.add("b", {1, 2}, b.url());
  scene.add("c", {}, c.url());
  scene.add("d", {3});
  const auto answers = scene.backend->ask_leaders("q", "/y");
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].node == "b");
  CHECK(answers[0].body.value() == "b /y");
  CHECK(answers[1].node == "d");
  CHECK(answers[1].body.error().message.starts_with("d could not be asked: its admin API is "));
}

}  // namespace lictor::app
