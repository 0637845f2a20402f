#include "runtime/notifier.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/clock.h"
#include "temporary_folder.h"

namespace lictor::runtime {
namespace {

using namespace std::chrono_literals;

// Stands for systemd, and reads when the test asks it to.
class Systemd {
 public:
  explicit Systemd(const char* watchdog_us)
      : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ / "notify";
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
    setenv("WATCHDOG_USEC", watchdog_us, 1);
    unsetenv("WATCHDOG_PID");
  }
  ~Systemd() {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC"}) unsetenv(name);
  }
  Systemd(const Systemd&) = delete;
  Systemd& operator=(const Systemd&) = delete;

  std::vector<std::string> read_all() {
    std::vector<std::string> all;
    std::array<char, 256> text{};
    for (ssize_t n = 0; (n = recv(socket_.get(), text.data(), text.size(), 0)) >= 0;) {
      all.emplace_back(text.data(), static_cast<std::size_t>(n));
    }
    return all;
  }

 private:
  const unit::TemporaryFolder folder_;
  const UniqueFd socket_;
};

TEST_CASE("the watchdog is fed once in a third of its time, however often the loop turns") {
  Systemd systemd{"30000000"};
  Notifier notifier;
  CHECK(notifier.watchdog() == 30s);
  const Instant start = boot_now();
  for (int i = 0; i < 3'000; ++i) notifier.alive(start + i * 1ms);
  CHECK(systemd.read_all() == std::vector<std::string>{"WATCHDOG=1"});
  notifier.alive(start + 10s);
  CHECK(systemd.read_all() == std::vector<std::string>{"WATCHDOG=1"});
}

TEST_CASE("a systemd that does not read holds nobody up, and gets the state when it reads again") {
  Systemd systemd{"3000000"};
  Notifier notifier;
  const Instant start = boot_now();
  notifier.notify("READY=1");
  for (int i = 0; i < 1'000; ++i) {
    notifier.notify("STATUS=" + std::to_string(i));
    notifier.alive(start + i * 10s);
  }
  CHECK(boot_now() - start < 20s);
  const std::vector<std::string> first = systemd.read_all();
  REQUIRE(!first.empty());
  CHECK(first.front() == "READY=1");
  CHECK(first.size() < 1'000);
  notifier.alive(start + 20'000s);
  CHECK(systemd.read_all() == std::vector<std::string>{"STATUS=999", "WATCHDOG=1"});
}

}  // namespace
}  // namespace lictor::runtime
