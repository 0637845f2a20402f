// A daemon's reports to systemd, and by /readyz to others.

#include <array>
#include <mutex>
#include <thread>
#include <utility>

#include "sockets.h"
#include "world.h"

namespace lictor::live {
namespace {

// Stands in for systemd: NOTIFY_SOCKET. It reads all the time, or the daemon would wait.
class Manager {
 public:
  explicit Manager(std::string path) : path_(std::move(path)) {
    fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = unix_name(path_);
    REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    reader_ = std::thread{[this] {
      std::array<char, 4096> bytes{};
      for (ssize_t n = 0; (n = recv(fd_, bytes.data(), bytes.size(), 0)) > 0;) {
        const std::lock_guard lock{mutex_};
        all_.append(bytes.data(), static_cast<std::size_t>(n)).append("\n");
      }
    }};
  }
  ~Manager() {
    shutdown(fd_, SHUT_RDWR);
    reader_.join();
    close(fd_);
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool received(const std::string& text) const {
    const std::lock_guard lock{mutex_};
    return contains(all_, text);
  }

 private:
  std::string path_;
  int fd_ = -1;
  std::thread reader_;
  mutable std::mutex mutex_;
  std::string all_;
};

TEST_CASE("a daemon is ready without Consul, and says that it waits for Consul") {
  ConsulAgent consul;
  World world{consul};
  Manager manager{world.folder.file("notify")};
  DaemonSettings settings = world.settings("a");
  settings.admin = {"127.0.0.1:" + std::to_string(free_port())};
  settings.environment["NOTIFY_SOCKET"] = manager.path();
  consul.stop();
  LictorDaemon daemon{settings};
  CHECK(eventually([&] { return manager.received("READY=1"); }));
  CHECK(eventually([&] { return manager.received("STATUS=waiting for Consul: "); }));
  Kv api{"http://" + settings.admin.front()};
  REQUIRE(eventually([&] { return api.request("GET", "/readyz").status == 503; }));
  CHECK(contains(api.request("GET", "/readyz").body, "Consul"));
  CHECK(api.request("GET", "/v1/status").json().at("waits_for").is_string());
  consul.start();
  CHECK(eventually([&] { return manager.received("STATUS=leading default"); }));
  CHECK(eventually([&] { return api.request("GET", "/readyz").status == 200; }));
  CHECK(api.request("GET", "/v1/status").json().at("waits_for").is_null());
}

TEST_CASE("a stop says what it waits for") {
  World world;
  Manager manager{world.folder.file("notify")};
  DaemonSettings settings = world.settings("a", {{"drain_timeout", "60s"}}, "none");
  settings.environment["NOTIFY_SOCKET"] = manager.path();
  LictorDaemon daemon{settings};
  world.submit_begun("long", 1000, {{"sleep", 8000}});
  daemon.terminate();
  const std::string waits = "stopping: waits for 1 running job, for 1m at most (drain_timeout)";
  CHECK(eventually([&] { return manager.received("STATUS=" + waits); }));
  CHECK(eventually([&] { return daemon.logged(waits); }));
  CHECK(daemon.wait() == 0);
  CHECK(manager.received("STOPPING=1"));
}

}  // namespace
}  // namespace lictor::live
