#include "base/traced_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "base/descriptors.h"
#include "base/read_file.h"
#include "skip.h"
#include "temporary_folder.h"

namespace lictor {
namespace {

constexpr uid_t kOther = 12345;

// A tree that belongs to root alone, until a test changes that.
class Tree : public unit::TemporaryFolder {
 public:
  std::string folder(const std::string& name, mode_t mode = 0755) const {
    const std::string made = *this / name;
    REQUIRE(::mkdir(made.c_str(), 0700) == 0);
    REQUIRE(::chmod(made.c_str(), mode) == 0);
    return made;
  }
  std::string file(const std::string& name, mode_t mode = 0644) const {
    const std::string made = write(name, name);
    REQUIRE(::chmod(made.c_str(), mode) == 0);
    return made;
  }
  std::string link(const std::string& name, const std::string& target) const {
    const std::string made = *this / name;
    REQUIRE(::symlink(target.c_str(), made.c_str()) == 0);
    return made;
  }
};

std::string text_of(const std::string& path) {
  const auto file = open_traced(path, O_RDONLY);
  return file ? read_up_to(file->fd.get(), 1000).value_or("?") : "errno " + std::to_string(errno);
}

std::string fault_of(const std::string& path, uid_t owner = 0) {
  const auto file = open_traced(path, O_RDONLY, owner);
  return file ? file->fault : "errno " + std::to_string(errno);
}

}  // namespace

TEST_CASE("a file is found where open(2) finds it, and one that is not there is an error") {
  const Tree tree;
  tree.folder("a");
  tree.folder("a/b");
  tree.file("a/b/f");
  tree.link("a/up", "../a/./b//");
  tree.link("absolute", tree / "a/up");
  tree.link("chain", "absolute/../b/f");
  tree.link("loop", "loop");
  const std::string file = "a/b/f";
  for (const char* name : {"a/b/f", "a/up/f", "absolute/f", "chain", "a//b/./../b/f"}) {
    CAPTURE(name);
    CHECK(text_of(tree / name) == file);
  }
  CHECK(text_of(tree / "loop") == "errno " + std::to_string(ELOOP));
  CHECK(text_of(tree / "a/b/f/") == "errno " + std::to_string(ENOTDIR));
  CHECK(text_of("") == "errno " + std::to_string(ENOENT));

  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(tree / "a");
  CHECK(text_of("b/f") == file);
  CHECK(text_of("../chain") == file);
  std::filesystem::current_path(before);
  CHECK(open_traced(tree / "a/up/", O_RDONLY));
  CHECK(open_traced("/", O_PATH)->status.st_ino == open_traced("/..//", O_PATH)->status.st_ino);
}

TEST_CASE("every file, folder and link on the way counts, also those between two links") {
  if (!is_root()) return;
  const Tree tree;
  tree.folder("safe");
  const std::string file = tree.file("safe/f");
  const std::string open = tree.folder("open", 0777);
  tree.link("open/second", "../safe/f");
  const std::string link = tree.link("first", "open/second");
  const std::string folder_link = tree.link("elsewhere", open + "/deep");
  tree.link("open/deep", "../safe");

  CHECK(fault_of(file).empty());
  const std::string fault = "the folder " + open + " may be written by others than root";
  CHECK(fault_of(link) == fault);
  CHECK(fault_of(folder_link + "/f") == fault);
  CHECK(fault_of(tree / "open/../safe/f") == fault);

  REQUIRE(::chmod(open.c_str(), 01777) == 0);  // as /tmp is
  CHECK(fault_of(link).empty());
  REQUIRE(::lchown((open + "/second").c_str(), kOther, 0) == 0);
  CHECK(fault_of(link) == open + "/second belongs to another user than root");
  CHECK(fault_of(link, kOther).empty());
  REQUIRE(::chmod(file.c_str(), 0664) == 0);
  CHECK(fault_of(file) == file + " may be written by others than root");
  CHECK(fault_of(file, kOther) == file + " may be written by others than root");
}

TEST_CASE("a FIFO counts as a file does; a pipe that this process was given has no way") {
  if (!is_root()) return;
  const Tree tree;
  const std::string open = tree.folder("open", 0777);
  const std::string fifo = open + "/fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_FALSE(open_traced(fifo, O_RDONLY | O_NONBLOCK)->fault.empty());

  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const UniqueFd out{ends[0]};
  UniqueFd in{ends[1]};
  REQUIRE(::write(in.get(), "text", 4) == 4);
  in.reset();
  const auto given = open_traced("/dev/fd/" + std::to_string(out.get()), O_RDONLY).value();
  CHECK(given.fault.empty());
  CHECK(read_up_to(given.fd.get(), 1000) == "text");
}

TEST_CASE("a file that is swapped while it is opened is seen to be untrusted, or not opened") {
  if (!is_root()) return;
  const Tree tree;
  tree.folder("ours");
  tree.file("ours/f");
  const std::string theirs = tree.folder("theirs", 0777);
  tree.file("theirs/f", 0666);
  tree.link("way", "ours");
  tree.link("other", "theirs");
  std::atomic<bool> over = false;
  std::thread swapper{[&] {
    const std::string way = tree / "way";
    const std::string other = tree / "other";
    while (!over) ::renameat2(AT_FDCWD, way.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
  }};
  int trusted = 0;
  int untrusted = 0;
  for (int i = 0; i < 200'000 && (trusted < 1'000 || untrusted < 1'000); ++i) {
    const auto file = open_traced(tree / "way/f", O_RDONLY).value();
    const bool is_ours = *read_up_to(file.fd.get(), 1000) == "ours/f";
    if (is_ours != file.fault.empty()) FAIL("a fault is missed, or invented: ", file.fault);
    ++(is_ours ? trusted : untrusted);
  }
  over = true;
  swapper.join();
  CHECK(trusted > 0);
  CHECK(untrusted > 0);
}

namespace {

// The result of `body` in a process of its own.
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
