// The warden waits for nothing but its own poll: its system calls, and those that would make it
// wait.

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/clock.h"
#include "exec/privileges.h"
#include "exec/warden.h"
#include "skip.h"
#include "support.h"

namespace lictor::exec::test {
namespace {

// A debugger that is attached to a process and idle. The test never waits for it.
class IdleDebugger {
 public:
  explicit IdleDebugger(pid_t process) {
    std::array<int, 2> ready{};
    REQUIRE(pipe2(ready.data(), O_CLOEXEC) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      const char good = ptrace(PTRACE_ATTACH, process, nullptr, nullptr) == 0 ? 'y' : 'n';
      (void)!write(ready[1], &good, 1);
      while (true) pause();
    }
    char good = 'n';
    (void)!read(ready[0], &good, 1);
    attached_ = good == 'y';
    for (const int fd : ready) close(fd);
  }
  ~IdleDebugger() { detach(); }
  IdleDebugger(const IdleDebugger&) = delete;
  IdleDebugger& operator=(const IdleDebugger&) = delete;

  explicit operator bool() const { return attached_; }
  void detach() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  bool attached_ = false;
};

std::string proc(pid_t pid, const std::string& file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

bool is_below(const std::string& path, const std::string& folder) {
  return path.starts_with(folder + "/") || path == folder;
}

// A system call that the warden begins.
struct Call {
  pid_t pid;
  long number;
  std::array<std::uint64_t, 6> arguments;

  [[nodiscard]] std::uint64_t argument(std::size_t index) const { return arguments.at(index); }

  [[nodiscard]] std::string text(std::size_t index) const {
    std::string bytes(PATH_MAX, '\0');
    const std::uint64_t address = arguments.at(index);
    // Not beyond the page, of which there may be no next.
    const iovec local{bytes.data(), std::min<std::size_t>(bytes.size(), 4096 - address % 4096)};
    const iovec remote{reinterpret_cast<void*>(address), local.iov_len};
    const ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    return bytes.substr(0, bytes.find('\0'));
  }

  [[nodiscard]] std::string file(std::size_t index) const {
    std::error_code error;
    const auto fd = static_cast<int>(arguments.at(index));
    return std::filesystem::read_symlink(proc(pid, "fd/" + std::to_string(fd)), error).string();
  }

  // The kernel answers from its own memory; no disk and no peer has a part in it.
  [[nodiscard]] bool is_kernels(std::size_t index) const {
    const std::string name = file(index);
    if (name.starts_with("pipe:")) return is_nonblocking(index);
    for (const char* kind : {"anon_inode:", "socket:", "/memfd:", "/proc/", "/sys/fs/cgroup"}) {
      if (name.starts_with(kind)) return !name.ends_with("/environ");
    }
    return false;
  }

  [[nodiscard]] bool is_nonblocking(std::size_t index) const {
    const auto fd = static_cast<int>(arguments.at(index));
    std::ifstream info{proc(pid, "fdinfo/" + std::to_string(fd))};
    for (std::string word; info >> word;) {
      if (word == "flags:" && info >> word) return (std::stoi(word, nullptr, 8) & O_NONBLOCK) != 0;
    }
    return false;
  }

  // The path of openat, mkdirat and unlinkat.
  [[nodiscard]] bool is_kernels_path() const {
    const std::string path = text(1);
    if (path.starts_with('/')) return is_below(path, "/proc") && !path.ends_with("/environ");
    return is_below(file(0), "/sys/fs/cgroup");
  }

  [[nodiscard]] std::string told() const {
    std::string words = "system call " + std::to_string(number);
    for (const std::uint64_t each : arguments) words += " " + std::to_string(each);
    return words + " (" + file(0) + ", " + text(1) + ")";
  }
};

// Calls that wait whatever their arguments are; sigaltstack(2) is AddressSanitizer's.
constexpr long kNever[] = {SYS_epoll_ctl,     SYS_close,
                           SYS_fcntl,         SYS_lseek,
                           SYS_fstat,         SYS_getdents64,
                           SYS_kill,          SYS_pidfd_send_signal,
                           SYS_pidfd_open,    SYS_getpid,
                           SYS_getppid,       SYS_getpgid,
                           SYS_getsid,        SYS_gettid,
                           SYS_geteuid,       SYS_mmap,
                           SYS_munmap,        SYS_brk,
                           SYS_mprotect,      SYS_mremap,
                           SYS_madvise,       SYS_rt_sigprocmask,
                           SYS_sigaltstack,   SYS_timerfd_settime,
                           SYS_clock_gettime, SYS_getrandom,
                           SYS_pipe2,         SYS_shutdown,
                           SYS_exit_group,    SYS_restart_syscall,
                           SYS_epoll_pwait};

bool cannot_wait(const Call& call) {
  if (std::ranges::count(kNever, call.number) != 0) return true;
  switch (call.number) {
    case SYS_waitid:
      return (call.argument(3) & WNOHANG) != 0;
    case SYS_wait4:
      return (call.argument(2) & WNOHANG) != 0;
#ifdef SYS_poll  // and the others that newer architectures have not
    case SYS_poll:
      return call.argument(2) == 0;
    case SYS_getpgrp:
    case SYS_epoll_wait:
      return true;
#endif
    case SYS_sendmsg:
    case SYS_recvmsg:
      return call.is_nonblocking(0);
    case SYS_read:
    case SYS_write:
      return call.is_kernels(0);
    case SYS_newfstatat:
      return call.text(1).empty() && call.is_kernels(0);
    case SYS_fchown:  // so that a job may open its standard output by name
      return call.file(0).starts_with("pipe:");
    case SYS_openat:
    case SYS_mkdirat:
    case SYS_unlinkat:
      return call.is_kernels_path();
    case SYS_clone:
      return (call.argument(0) & CLONE_VFORK) == 0;
    case SYS_clone3:
      return true;
    default:
      return false;
  }
}

// Follows `process` until `end`, or its own end. Returns the calls that could make it wait.
class Trace {
 public:
  explicit Trace(pid_t process) : pid_(process) {
    attached_ = ptrace(PTRACE_SEIZE, pid_, nullptr, PTRACE_O_TRACESYSGOOD) == 0 &&
                ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr) == 0;
  }
  explicit operator bool() const { return attached_; }

  void follow(const std::function<bool()>& end) {
    REQUIRE(eventually([&] {
      for (int status = 0; waitpid(pid_, &status, __WALL | WNOHANG) == pid_;) {
        if (WIFEXITED(status) || WIFSIGNALED(status)) return true;
        const int number = WSTOPSIG(status);
        if (number == (SIGTRAP | 0x80)) look();
        const bool ours = number == (SIGTRAP | 0x80) || status >> 16 != 0;
        ptrace(PTRACE_SYSCALL, pid_, nullptr, ours ? 0L : static_cast<long>(number));
      }
      return end();
    }));
  }
  [[nodiscard]] const std::set<std::string>& suspects() const { return suspects_; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  void look() {
    __ptrace_syscall_info info{};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid_, sizeof info, &info) <= 0) return;
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
    Call call{pid_, static_cast<long>(info.entry.nr), {}};
    std::copy(std::begin(info.entry.args), std::end(info.entry.args), call.arguments.begin());
    ++count_;
    if (!cannot_wait(call)) suspects_.insert(call.told());
  }

  pid_t pid_;
  bool attached_ = false;
  std::size_t count_ = 0;
  std::set<std::string> suspects_;
};

}  // namespace

TEST_CASE("a job or its stray that an idle debugger has is killed, and holds nobody up") {
  std::string leaves;
  SUBCASE("the job") {}
  SUBCASE("its stray") { leaves = "(setsid sh -c 'echo $$ > $2; exec sleep 1000' sh $1 $2 &);"; }
  RigInFolder rig;
  const std::string own = leaves.empty() ? "echo $$ > $2;" : "";
  const auto runner =
      rig.start(shell(own + leaves + "exec sleep 1000", {rig.dir / "unused", rig.dir / "pid"}));
  const pid_t job = pid_in(rig.dir / "pid");
  IdleDebugger debugger{job};
  if (!debugger) {
    runner->stop(AttemptId{1}, 0ms);
    return tell_skipped("ptrace(2) is not allowed here");
  }
  runner->stop(AttemptId{1}, 50ms);
  CHECK(rig.of(1).ending == Ending::kStopped);
  CHECK(gone(job));
  CHECK(rig.run({"/bin/true"}, attempt(2)).ending == Ending::kDone);
  debugger.detach();
  CHECK(eventually([&] { return kill(job, 0) != 0 && errno == ESRCH; }));
}

TEST_CASE("an end that a debugger passes on late is reported as it was") {
  RigInFolder rig;
  const auto runner =
      rig.start(shell("echo $$ > $1; while [ ! -e $2 ]; do sleep 0.01; done; exit 3",
                      {rig.dir / "pid", rig.dir / "go"}));
  const pid_t job = pid_in(rig.dir / "pid");
  Trace debugger{job};
  if (!debugger) {
    runner->stop(AttemptId{1}, 0ms);
    return tell_skipped("ptrace(2) is not allowed here");
  }
  write_file(rig.dir / "go", "");
  debugger.follow([&] { return false; });
  CHECK(rig.of(1).error == "exit status 3");
}

TEST_CASE("no system call of the warden can wait") {
  if (!is_root()) return;
  const TemporaryFolder dir;
  const TemporaryFolder shared;
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
  REQUIRE(chmod(shared.path().c_str(), 0777) == 0);
  bool cgroups = true;
  SUBCASE("with cgroups, where they can be made") {}
  SUBCASE("without") { cgroups = false; }
  const auto body = [&](Rig& rig) {
    CHECK(rig.run({"/bin/true"}, attempt(9)).ending == Ending::kDone);  // the warden has started
    std::thread{[&] {
      (void)eventually([&] { return !contents(dir / "go").empty(); });
      ProcessOptions options{.argv = shell("(setsid sleep 1000 &); echo 7 > $LICTOR_RESULT"),
                             .directory = "/",
                             .user = find_user("daemon").value(),
                             .scratch_directory = dir / "scratch"};
      const Exit one = rig.run(options, attempt(1));
      options.argv = shell("trap '' TERM; echo up > $1; sleep 1000; :", {shared / "up"});
      const auto deaf = rig.runner(options);
      (void)deaf->start(attempt(2), Instant::max(), rig.exits.callback());
      (void)eventually([&] { return !contents(shared / "up").empty(); });
      deaf->stop(AttemptId{2}, 50ms);
      (void)rig.of(2);
      options.slot = 0;
      rig.host->set_lease(0, boot_now() + 300ms, 50ms);
      const auto leased = rig.runner(options);
      (void)leased->start(attempt(3), Instant::max(), rig.exits.callback());
      (void)rig.of(3);
      ProcessOptions left{.argv = shell("(setsid sleep 1000 &); exec sleep 1000")};
      const auto last = rig.runner(left);
      (void)last->start(attempt(4), Instant::max(), rig.exits.callback());
      rig.host->keep_lock({1, "session", 7, "value", 1});
      rig.board.beat();  // and hangs
      write_file(dir / "result", one.result.value_or(one.error));
      write_file(dir / "done", "done");
    }}.detach();
  };
  WardenOptions options{.hang_timeout = 1s};
  options.release_locks = [](const auto&) { return "given back"; };
  options.cgroups = cgroups;
  std::fflush(stdout);  // or a sanitizer's end of the warden writes what we have printed
  MiniDaemon daemon{body, std::move(options)};
  Trace trace{daemon.warden()};
  write_file(dir / "go", "go");
  if (!trace) return tell_skipped("ptrace(2) is not allowed here");
  trace.follow([] { return false; });  // to its end, which comes after the daemon's
  CHECK(contents(dir / "result") == "7\n");
  CHECK(contents(dir / "done") == "done");
  CHECK(trace.count() > 100);
  for (const std::string& suspect : trace.suspects()) FAIL_CHECK(suspect);
}

}  // namespace lictor::exec::test
