// A dead daemon's session must not be destroyed while it still holds a lock: that would start the
// lock-delay of each lock that it holds.

#include "runtime/lock_release.h"

#include <doctest/doctest.h>

#include "served_model.h"
#include "temporary_folder.h"
#include "unit/contains.h"

namespace lictor::runtime {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr std::uint32_t kPartitions = 3;  // partitions

std::string lock_of(std::uint32_t partition) {
  return "lictor/q/leader/3/" + std::to_string(partition);
}

// A session that holds all locks.
struct Locks {
  Locks() {
    for (std::uint32_t i = 0; i < kPartitions; ++i) consul.put(lock_of(i), kValue, session);
    consul.refuse = [this](const net::Request& request) -> std::optional<http::Response> {
      if (contains(request.target, "/session/destroy/")) destroyed_with.push_back(held());
      return std::nullopt;
    };
  }
  json read(std::uint32_t partition) {
    return json::parse(consul.perform({"GET", wire::kv_path(lock_of(partition))}).body)[0];
  }
  // How many the session holds.
  std::size_t held() {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < kPartitions; ++i)
      count += read(i).value("Session", "") == session;
    return count;
  }
  // Releases them; returns its text.
  std::string release(bool keeps_session) {
    const auto server = test::serve(consul);
    const unit::TemporaryFolder folder;
    wire::Binding binding;
    binding.layout = wire::Layout::under("lictor/", "q");
    binding.queue = "q";
    const std::vector<LockOwner> owners{{binding, {folder.path(), "q", "a", 10s, 10s}}};
    std::vector<exec::HeldLock> locks;
    for (std::uint32_t i = 0; i < kPartitions; ++i) {
      // For the second lock it is not known whether the session holds it: it is read first.
      const std::uint64_t index = i == 1 ? 0 : read(i)["ModifyIndex"].get<std::uint64_t>();
      locks.push_back({i, session, index, kValue, kPartitions, keeps_session});
    }
    net::Options options;
    options.addresses = {server->address()};
    owners[0].session_file.save(session);
    const std::string line = release_locks(options, owners, locks);
    return owners[0].session_file.load() ? line + ", can be resumed" : line;
  }

  static constexpr const char* kValue = R"({"node":"a"})";
  cli::test::ModelConsul consul;
  const std::string session = consul.session();
  std::vector<std::size_t> destroyed_with;  // so many locks held
};

TEST_CASE("the session is destroyed when the last of its locks is free, however each is known") {
  Locks locks;
  const std::string line = locks.release(false);
  CHECK(contains(line, "gave back the lock of q/0, q/1, q/2"));
  CHECK_FALSE(contains(line, "resumed"));
  CHECK(locks.held() == 0);
  REQUIRE_FALSE(locks.destroyed_with.empty());
  for (const std::size_t held : locks.destroyed_with) CHECK(held == 0);
  for (std::uint32_t i = 0; i < kPartitions; ++i) {
    const json value = json::parse(locks.consul.value(lock_of(i)));
    CHECK(value["node"] == "a");  // the next leader names its predecessor
    CHECK(value.contains("released"));
  }
}

TEST_CASE("a session that holds locks whose jobs have not ended is not destroyed") {
  Locks locks;
  CHECK(contains(locks.release(true), "gave back the lock of q/0, q/1, q/2"));
  CHECK(locks.held() == 0);
  CHECK(locks.destroyed_with.empty());
}

TEST_CASE("a lock that another daemon holds by then is not released, nor named as released") {
  Locks locks;
  locks.consul.release(lock_of(1), locks.session);
  const std::string other = locks.consul.session();
  locks.consul.put(lock_of(1), R"({"node":"b"})", other);
  CHECK(contains(locks.release(false), "gave back the lock of q/0, q/2"));
  CHECK(locks.read(1)["Session"] == other);
}

}  // namespace
}  // namespace lictor::runtime
