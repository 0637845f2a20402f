// A dead daemon's session must not be destroyed while it still holds a lock: that would start the
// lock-delay of each lock that it holds.

#include "runtime/lock_release.h"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "../net/test_server.h"
#include "temporary_folder.h"

namespace lictor::runtime {
namespace {

using net::test::Connection;
using net::test::Received;
using net::test::TestServer;
using namespace std::chrono_literals;

constexpr std::uint32_t kPartitions = 3;  // partitions

// Just enough of Consul: three locks of one session.
class Locks {
 public:
  void answer(const Received& request, Connection& connection) {
    const std::lock_guard lock{mutex_};
    if (request.target.find("/session/destroy/") != std::string::npos) {
      destroyed_with.push_back(held.size());
      held.clear();
      return connection.reply(200, "true");
    }
    const std::string key = key_in(request.method == "GET" ? request.target : request.body);
    if (request.method != "GET") {
      held.erase(key);
      return connection.reply(
          200, R"({"Results":[{"KV":{"Key":"l","ModifyIndex":90,"CreateIndex":1}}],"Errors":[]})");
    }
    const std::string session = held.contains(key) ? R"("s")" : R"("")";
    connection.reply(200,
                     R"([{"Key":")" + key +
                         R"(","Value":"","Flags":0,"LockIndex":1,"CreateIndex":1,)" +
                         R"("ModifyIndex":12,"Session":)" + session + "}]",
                     "X-Consul-Index: 90\r\n");
  }

  std::set<std::string> held{"l/q/leader/3/0", "l/q/leader/3/1", "l/q/leader/3/2"};
  std::vector<std::size_t> destroyed_with;  // so many locks held

 private:
  static std::string key_in(const std::string& text) {
    const std::size_t at = text.find("l/q/leader/3/");
    REQUIRE(at != std::string::npos);
    return text.substr(at, std::string{"l/q/leader/3/0"}.size());
  }

  std::mutex mutex_;
};

// Releases all locks; returns its text.
std::string release(Locks& locks, bool keeps_session) {
  TestServer server{
      [&](const Received& request, Connection& connection) { locks.answer(request, connection); }};
  const unit::TemporaryFolder folder;
  wire::Binding binding;
  binding.layout = wire::Layout::under("l/", "q");
  binding.queue = "q";
  const std::vector<LockOwner> owners{{binding, {folder.path(), "q", "a", 10s, 10s}}};
  std::vector<exec::HeldLock> held;
  for (std::uint32_t i = 0; i < kPartitions; ++i) {
    // For the second lock it is not known whether the session holds it: it is read first.
    held.push_back({i, "s", i == 1 ? 0U : 12U, R"({"node":"a"})", kPartitions, keeps_session});
  }
  net::Options options;
  options.addresses = {server.address()};
  owners[0].session_file.save("s");
  const std::string line = release_locks(options, owners, held);
  return owners[0].session_file.load() ? line + ", can be resumed" : line;
}

TEST_CASE("the session is destroyed when the last of its locks is free, however each is known") {
  Locks locks;
  const std::string line = release(locks, false);
  CHECK(line.find("gave back the lock of q/0, q/1, q/2") != std::string::npos);
  CHECK(locks.held.empty());
  CHECK(line.find("resumed") == std::string::npos);
  REQUIRE_FALSE(locks.destroyed_with.empty());
  CHECK(std::count(locks.destroyed_with.begin(), locks.destroyed_with.end(), 0U) ==
        static_cast<std::ptrdiff_t>(locks.destroyed_with.size()));
}

TEST_CASE("a session that holds locks whose jobs have not ended is not destroyed") {
  Locks locks;
  const std::string line = release(locks, true);
  CHECK(line.find("gave back the lock of q/0, q/1, q/2") != std::string::npos);
  CHECK(locks.held.empty());
  CHECK(locks.destroyed_with.empty());
}

TEST_CASE("a lock that another daemon holds by then is not named as released") {
  Locks locks;
  locks.held.erase("l/q/leader/3/1");
  CHECK(release(locks, false).find("gave back the lock of q/0, q/2") != std::string::npos);
}

}  // namespace
}  // namespace lictor::runtime
