#include "support.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "exec/children.h"
#include "exec/warden.h"

namespace lictor::exec::test {

std::string contents(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream{path, std::ios::binary}.rdbuf();
  return bytes.str();
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file{path, std::ios::binary};
  file << bytes;
  REQUIRE(file.flush().good());
}

pid_t pid_in(const std::string& path) {
  REQUIRE(eventually([&] { return contents(path).ends_with("\n"); }));
  return static_cast<pid_t>(std::stol(contents(path)));
}

bool gone(pid_t pid) {
  const std::string stat = contents("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t state = stat.rfind(") ");
  return state == std::string::npos || stat[state + 2] == 'Z' || stat[state + 2] == 'X';
}

ExitCallback Exits::callback() {
  return [state = state_](Exit exit) {
    const std::lock_guard lock{state->mutex};
    const bool first = state->exits.emplace(exit.attempt, exit).second;
    if (!first) {
      std::fprintf(stderr, "on_exit ran twice\n");
      std::abort();
    }
    state->changed.notify_all();
  };
}

Exit Exits::of(AttemptId attempt) {
  std::unique_lock lock{state_->mutex};
  const bool came =
      state_->changed.wait_for(lock, kPatience, [&] { return state_->exits.contains(attempt); });
  REQUIRE_MESSAGE(came, "no exit came of attempt ", attempt.value);
  return state_->exits.at(attempt);
}

bool Exits::has(AttemptId attempt) {
  const std::lock_guard lock{state_->mutex};
  return state_->exits.contains(attempt);
}

void Exits::wait_for(std::size_t count) {
  std::unique_lock lock{state_->mutex};
  REQUIRE(state_->changed.wait_for(lock, kPatience, [&] { return state_->exits.size() >= count; }));
}

Attempt attempt(std::uint64_t id, std::string record) {
  Attempt made{.id = AttemptId{id},
               .queue = "oracle",
               .task_id = "7",
               .task_key = "oracleTask/7",
               .key_id = "7",
               .task_type = "Any",
               .fencing_token = 1000 + id,
               .record = std::make_shared<const std::string>(std::move(record))};
  return made;
}

std::vector<std::string> shell(std::string script, std::vector<std::string> arguments) {
  std::vector<std::string> argv{"/bin/sh", "-c", std::move(script), "sh"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

Rig::Rig(WardenOptions options) : board(std::move(LeaseBoard::create(8).value())) {
  auto started = start_warden(board, std::move(options)).value();
  warden = started.pid;
  ProcessHost::Hooks hooks;
  hooks.on_warning = [this](std::string text) {
    const std::lock_guard lock{mutex_};
    warnings_.push_back(std::move(text));
  };
  hooks.on_warden_death = [this] {
    const std::lock_guard lock{mutex_};
    warden_died_ = true;
  };
  host = std::move(ProcessHost::create(std::move(started), board, std::move(hooks)).value());
}

// No process of any attempt may be left, which the warden's end proves, nor any child of ours.
Rig::~Rig() {
  host.reset();
  for (const pid_t child : scan_children()) WARN_MESSAGE(reap(child), "left behind: ", child);
}

std::unique_ptr<ProcessRunner> Rig::runner(ProcessOptions options) {
  return ProcessRunner::create(*host, std::move(options)).value();
}

namespace {

ProcessOptions running(std::vector<std::string> argv) {
  ProcessOptions options{.argv = std::move(argv)};
  return options;
}

}  // namespace

std::unique_ptr<ProcessRunner> Rig::runner(std::vector<std::string> argv) {
  return runner(running(std::move(argv)));
}

void Rig::start(ProcessRunner& runner, std::uint64_t id) {
  REQUIRE(runner.start(attempt(id), Instant::max(), exits.callback()).has_value());
}

std::unique_ptr<ProcessRunner> Rig::start(ProcessOptions options, const Attempt& attempt) {
  auto made = runner(std::move(options));
  REQUIRE(made->start(attempt, Instant::max(), exits.callback()).has_value());
  return made;
}

std::unique_ptr<ProcessRunner> Rig::start(std::vector<std::string> argv, const Attempt& attempt) {
  return start(running(std::move(argv)), attempt);
}

Exit Rig::run(ProcessOptions options, const Attempt& attempt) {
  (void)start(std::move(options), attempt);
  return exits.of(attempt.id);
}

Exit Rig::run(std::vector<std::string> argv, const Attempt& attempt) {
  return run(running(std::move(argv)), attempt);
}

std::vector<std::string> Rig::warnings() {
  const std::lock_guard lock{mutex_};
  return warnings_;
}

bool Rig::warden_died() {
  const std::lock_guard lock{mutex_};
  return warden_died_;
}

namespace {

void deny_pidfd_open() {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{program.size(), program.data()};
  REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
  REQUIRE(syscall(SYS_pidfd_open, getpid(), 0) < 0);
}

}  // namespace

MiniDaemon::MiniDaemon(const std::function<void(Rig&)>& body, WardenOptions options,
                       PidfdOpen pidfd_open, const std::function<void()>& before) {
  std::array<int, 2> ready{};
  REQUIRE(pipe(ready.data()) == 0);
  pid_ = fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    close(ready[0]);
    if (pidfd_open == PidfdOpen::kDenied) deny_pidfd_open();
    if (before) before();
    Rig rig{std::move(options)};
    body(rig);
    if (write(ready[1], &rig.warden, sizeof(rig.warden)) != sizeof(rig.warden)) _exit(1);
    while (true) pause();
  }
  close(ready[1]);
  const bool up = read(ready[0], &warden_, sizeof(warden_)) == sizeof(warden_);
  close(ready[0]);
  REQUIRE(up);
}

MiniDaemon::~MiniDaemon() {
  if (!waited_) {
    kill(pid_, SIGKILL);
    (void)wait();
  }
  CHECK(eventually([&] { return gone(warden_); }));
  (void)reap(warden_);  // This process may be a subreaper by now.
}

void MiniDaemon::send(int signal_number) const { REQUIRE(kill(pid_, signal_number) == 0); }

int MiniDaemon::wait() {
  int status = 0;
  REQUIRE(eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }));
  waited_ = true;
  return status;
}

}  // namespace lictor::exec::test
