#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "temporary_folder.h"

extern char** environ;

namespace lictor::net::test {

using lictor::unit::TemporaryFolder;

inline bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

inline bool has_openssl() { return run("openssl version"); }

/// A certificate that is its own authority: name.cert and name.key.
inline void make_certificate(const TemporaryFolder& folder, const std::string& name,
                             const std::string& host) {
  REQUIRE(
      run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
          " -subj /CN=" +
          host + " -addext subjectAltName=DNS:" + host + " -keyout " + folder / (name + ".key") +
          " -out " + folder / (name + ".cert")));
}

/// "openssl s_server -www": answers every GET with 200 and a page about the connection.
class TlsServer {
 public:
  explicit TlsServer(std::vector<std::string> arguments) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    arguments.insert(arguments.begin(), {"openssl", "s_server", "-accept", "127.0.0.1:0", "-www"});
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& each : arguments) argv.push_back(each.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int failed = ::posix_spawnp(&pid_, "openssl", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ends[0];
    REQUIRE(failed == 0);
    read_port();
  }
  ~TlsServer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(output_);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  [[nodiscard]] std::string address() const { return "https://127.0.0.1:" + port_; }

 private:
  // "ACCEPT 127.0.0.1:12345"
  void read_port() {
    std::string text;
    char c = 0;
    while (::read(output_, &c, 1) == 1) {
      const std::size_t line = text.rfind("ACCEPT ");
      if (c == '\n' && line != std::string::npos) {
        port_ = text.substr(text.rfind(':') + 1);
        return;
      }
      text += c;
    }
    FAIL("openssl s_server did not start: " << text);
  }

  pid_t pid_ = -1;
  int output_ = -1;
  std::string port_;
};

}  // namespace lictor::net::test
