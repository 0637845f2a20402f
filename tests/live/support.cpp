#include "support.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "sockets.h"

namespace lictor::live {
namespace {

constexpr const char* kFolderPrefix = "lictor-live-";
constexpr std::size_t kKeptBytes = 30'000;

bool is_free(int port, int type) {
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const bool is_bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return is_bound;
}

// Shows other runs of these tests that the port is ours, also before our server listens on it and
// while it is restarted: otherwise theirs would answer for it. The name of an abstract socket is
// free again when its process ends, however that happens.
bool take(int port) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "lictor-live-port-" + std::to_string(port);
  name.copy(&address.sun_path[1], name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0) return true;  // kept open
  close(fd);
  return false;
}

// Removes folders of runs that were killed; their names show the owners.
void sweep(const std::filesystem::path& parent) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator{parent, ignored}) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kFolderPrefix)) continue;
    const int pid = std::atoi(name.c_str() + std::string{kFolderPrefix}.size());
    if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH) {
      std::filesystem::remove_all(entry.path(), ignored);
    }
  }
}

std::vector<std::pair<std::string, std::string>>& kept() {
  static std::vector<std::pair<std::string, std::string>> texts;
  return texts;
}

}  // namespace

std::chrono::milliseconds patience() {
  const char* seconds = std::getenv("LICTOR_LIVE_PATIENCE");
  return seconds != nullptr && *seconds != '\0' ? std::chrono::seconds{std::atoi(seconds)} : 90s;
}

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= until) return condition();
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

bool throughout(std::chrono::milliseconds span, const std::function<bool()>& condition) {
  return !eventually([&] { return !condition(); }, span);
}

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double seconds_between(std::int64_t from_ns, std::int64_t until_ns) {
  return static_cast<double>(until_ns - from_ns) / 1e9;
}

TemporaryFolder::TemporaryFolder() {
  const std::filesystem::path parent = std::filesystem::temp_directory_path();
  sweep(parent);
  std::string name = parent / (kFolderPrefix + std::to_string(getpid()) + "-XXXXXX");
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error{"cannot make " + name};
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path, std::ios::binary}.rdbuf();  // a process that ends meanwhile is none
  return text.str();
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file{path, std::ios::binary};
  file << text;
  if (!file.flush()) throw std::runtime_error{"cannot write " + path};
}

int free_port() {
  static std::mt19937 random{std::random_device{}()};
  for (int tries = 0; tries < 1000; ++tries) {
    const int port = std::uniform_int_distribution<int>{10'000, 30'000}(random);
    if (take(port) && is_free(port, SOCK_STREAM) && is_free(port, SOCK_DGRAM)) return port;
  }
  throw std::runtime_error{"found no free port"};
}

void keep_for_failure(const std::string& title, const std::string& text) {
  kept().emplace_back(
      title, text.size() > kKeptBytes ? "...\n" + text.substr(text.size() - kKeptBytes) : text);
}

void print_kept() {
  for (const auto& [title, text] : kept()) std::cerr << "---- " << title << "\n" << text << "\n";
}

void forget_kept() { kept().clear(); }

}  // namespace lictor::live
