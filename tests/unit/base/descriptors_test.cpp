#include "base/descriptors.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include <doctest/doctest.h>

namespace lictor {
namespace {

// What a process of its own returns.
int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("closed standard descriptors become /dev/null, and no file gets their numbers") {
  int closed = 0;
  SUBCASE("0") {}
  SUBCASE("1") { closed = 1; }
  SUBCASE("2") { closed = 2; }
  SUBCASE("all") { closed = -1; }
  CHECK(in_child([closed] {
          for (int fd = 0; fd <= 2; ++fd) {
            if (closed < 0 || closed == fd) close(fd);
          }
          open_standard_descriptors();
          for (int fd = 0; fd <= 2; ++fd) {
            if (fcntl(fd, F_GETFD) < 0) return 1;
          }
          return open("/dev/null", O_RDONLY) > 2 ? 0 : 2;
        }) == 0);
}

TEST_CASE("the limit of open files is raised as far as it may be, and programs get the old one") {
  CHECK(in_child([] {
          rlimit limit{};
          getrlimit(RLIMIT_NOFILE, &limit);
          if (limit.rlim_max < 128) return 77;
          limit.rlim_cur = 64;
          if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
          if (programs_descriptor_limit() != 0) return 2;
          raise_descriptor_limit();
          rlimit raised{};
          getrlimit(RLIMIT_NOFILE, &raised);
          if (raised.rlim_cur != limit.rlim_max || most_descriptors() != limit.rlim_max) return 3;
          return programs_descriptor_limit() == 64 ? 0 : 4;
        }) == 0);
}

}  // namespace
}  // namespace lictor
