// A daemon that is not root: its capabilities, those of its warden and jobs, and the cgroups of its
// attempts.

#include "exec/privileges.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/clock.h"
#include "exec/cgroups.h"
#include "skip.h"
#include "support.h"

namespace lictor::exec::test {
namespace {

constexpr uid_t kNobody = 65534;
constexpr std::array kForJobs{CAP_CHOWN, CAP_KILL, CAP_SETGID, CAP_SETUID};
constexpr const char* kMask = "00000000000000e1";
constexpr const char* kNone = "0000000000000000";

// Does what User=, AmbientCapabilities= and CapabilityBoundingSet= of systemd do. Ends the process
// if that fails.
void become_nobody(bool with_capabilities) {
  std::uint32_t mask = 0;
  for (const int capability : kForJobs) mask |= 1U << static_cast<unsigned>(capability);
  bool good = chdir("/") == 0;  // the folder of the tests may be closed to nobody
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability) {
    const bool kept = capability < 32 && (mask >> static_cast<unsigned>(capability) & 1U) != 0;
    if (!kept) (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
  good = good && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && setgroups(0, nullptr) == 0 &&
         setresgid(kNobody, kNobody, kNobody) == 0 && setresuid(kNobody, kNobody, kNobody) == 0;
  if (!with_capabilities) mask = 0;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, 2> data{{{mask, mask, mask}, {0, 0, 0}}};
  good = good && syscall(SYS_capset, &header, data.data()) == 0;
  for (const int capability : kForJobs) {
    if (with_capabilities) {
      good = good && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) == 0;
    }
  }
  if (!good || may_change_user() != with_capabilities) _exit(99);
}

// "CapEff" of the text of /proc/<pid>/status.
std::string field(const std::string& status, const std::string& name) {
  std::istringstream lines{status};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return "no " + name;
}

std::string status_of(pid_t pid) { return contents("/proc/" + std::to_string(pid) + "/status"); }

void give_to_nobody(const TemporaryFolder& dir) {
  REQUIRE(chown(dir.path().c_str(), kNobody, kNobody) == 0);
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
}

// A cgroup like one that Delegate=yes of systemd makes.
class DelegatedCgroup {
 public:
  DelegatedCgroup() {
    std::ifstream mounts{"/proc/self/mountinfo"};
    for (std::string line; path_.empty() && std::getline(mounts, line);) {
      if (line.find(" - cgroup2 ") == std::string::npos) continue;
      std::istringstream fields{line};
      std::string skipped, point;
      fields >> skipped >> skipped >> skipped >> skipped >> point;
      const std::string path = point + "/lictor-unit." + std::to_string(getpid());
      if (mkdir(path.c_str(), 0755) == 0) path_ = path;
    }
    for (const char* file : {"", "/cgroup.procs", "/cgroup.subtree_control", "/cgroup.threads"}) {
      if (*this) (void)!chown((path_ + file).c_str(), kNobody, kNobody);
    }
  }
  ~DelegatedCgroup() {
    if (*this) CHECK(eventually([this] { return rmdir(path_.c_str()) == 0; }));
  }
  DelegatedCgroup(const DelegatedCgroup&) = delete;
  DelegatedCgroup& operator=(const DelegatedCgroup&) = delete;

  explicit operator bool() const { return !path_.empty(); }
  [[nodiscard]] bool join() const {
    std::ofstream file{path_ + "/cgroup.procs"};
    return static_cast<bool>(file << "0" << std::flush);
  }

 private:
  std::string path_;
};

// Why attempts get no cgroup here; empty: they get one.
std::string no_cgroups() {
  Cgroups here = Cgroups::create("here");
  here.remove();
  return here.available() ? "" : "no cgroup for attempts: " + here.absence();
}

// Starts a process twice removed, in a session of its own and with no environment but PATH, which
// writes its number to $1.
const std::string kEscape =
    "(setsid env -i PATH=$PATH sh -c 'echo $$ > $1; exec sleep 1000' sh $1 &)\n"
    "while [ ! -s $1 ]; do sleep 0.01; done\n";

}  // namespace

TEST_CASE("without root, only the warden can change users; neither the daemon nor a job can") {
  if (!is_root()) return;
  const User other = find_user("daemon").value();
  const TemporaryFolder dir;
  give_to_nobody(dir);
  const TemporaryFolder shared;
  REQUIRE(chmod(shared.path().c_str(), 0777) == 0);
  MiniDaemon daemon{
      [&](Rig& rig) {
        ProcessOptions options{
            .argv = shell("umask 077; id -u; cat /proc/self/status; echo 7 > $LICTOR_RESULT"),
            .directory = "/",
            .user = other,
            .scratch_directory = dir / "scratch"};
        const Exit job = rig.run(options, attempt(1));
        write_file(dir / "job", job.output_tail + job.error);
        write_file(dir / "result", job.result.value_or("none"));

        options.argv =
            shell("trap '' TERM; echo up > $1; while :; do sleep 0.01; done", {shared / "up"});
        const auto deaf = rig.start(options, attempt(2));
        REQUIRE(eventually([&] { return !contents(shared / "up").empty(); }));
        deaf->stop(AttemptId{2}, 200ms);
        write_file(dir / "stopped", rig.of(2).error);
        options.user = find_user("root").value();
        options.scratch_directory.clear();
        write_file(dir / "root", rig.run(options, attempt(3)).error);
        options.user.reset();
        options.argv = {"/bin/cat", "/proc/self/status"};
        write_file(dir / "own", rig.run(options, attempt(4)).output_tail);
      },
      {},
      MiniDaemon::PidfdOpen::kAllowed,
      [] { become_nobody(true); }};

  const std::string main = status_of(daemon.pid());
  const std::string warden = status_of(daemon.warden());
  const std::string job = contents(dir / "job");
  for (const char* set : {"CapEff", "CapPrm", "CapInh", "CapAmb"}) {
    CAPTURE(set);
    CHECK(field(main, set) == kNone);
    CHECK(field(job, set) == kNone);
    CHECK(field(contents(dir / "own"), set) == kNone);
  }
  CHECK(field(warden, "CapEff") == kMask);
  CHECK(field(warden, "CapPrm") == kMask);
  CHECK(field(warden, "CapInh") == kNone);
  CHECK(field(warden, "CapAmb") == kNone);
  for (const std::string& status : {main, warden, job}) CHECK(field(status, "CapBnd") == kMask);
  CHECK(job.starts_with(std::to_string(other.credentials.uid) + "\n"));
  CHECK(contents(dir / "result") == "7\n");
  CHECK(contents(dir / "stopped") == "stopped: killed by signal 9 (SIGKILL)");
  CHECK(contains(contents(dir / "root"), "change of user to uid 0: Operation not permitted"));
}

TEST_CASE("a stray that hides its attempt ends with it, while another queue is busy") {
  bool cgroups = true;
  bool root = geteuid() == 0;
  bool stopped = false, lease_ends = false;
  SUBCASE("of a job that ended") {}
  SUBCASE("of a job that was stopped") { stopped = true; }
  SUBCASE("without cgroups, of a job whose lease ran out") { cgroups = !(lease_ends = true); }
  SUBCASE("of a daemon that is not root") { root = false; }
  SUBCASE("without cgroups, when no other attempt is left") { cgroups = false; }
  SUBCASE("without cgroups and root, when no other attempt is left") { cgroups = root = false; }

  std::optional<DelegatedCgroup> delegated;
  if (!root && geteuid() == 0) {
    delegated.emplace();
    if (cgroups && !*delegated) return tell_skipped("no cgroup v2 can be made here");
  } else if (cgroups) {
    if (const std::string why = no_cgroups(); !why.empty()) return tell_skipped(why);
  }

  const TemporaryFolder dir;
  if (geteuid() == 0) give_to_nobody(dir);
  MiniDaemon daemon{
      [&](Rig& rig) {
        rig.host->set_lease(0, boot_now() + 1h, 100ms);
        rig.host->set_lease(1, boot_now() + 1h, 100ms);
        ProcessOptions busy{.argv = shell("while [ ! -e $1 ]; do sleep 0.01; done", {dir / "end"}),
                            .slot = 1};
        rig.start(busy);

        ProcessOptions options{
            .argv = shell(
                kEscape + (stopped || lease_ends ? "echo up > $2; exec sleep 1000" : "exit 0"),
                {dir / "escapee", dir / "up"}),
            .slot = 0};
        const auto runner = rig.start(options, attempt(2));
        if (stopped || lease_ends) {
          REQUIRE(eventually([&] { return !contents(dir / "up").empty(); }));
        }
        if (stopped) runner->stop(AttemptId{2}, 100ms);
        if (lease_ends) rig.host->set_lease(0, boot_now() + 10ms, 100ms);
        (void)rig.of(2);
        const pid_t escapee = pid_in(dir / "escapee");
        CHECK((!lease_ends || eventually([&] { return gone(escapee); })));
        write_file(dir / "alive", gone(escapee) ? "no" : "yes");
        write_file(dir / "end", "");
        (void)rig.of(1);
      },
      {.cgroups = cgroups},
      MiniDaemon::PidfdOpen::kAllowed,
      [&] {
        if (!delegated) return;
        if (cgroups && !delegated->join()) _exit(99);
        become_nobody(false);
      }};
  CHECK(contents(dir / "alive") == (cgroups || lease_ends ? "no" : "yes"));
  CHECK(eventually([&] { return gone(pid_in(dir / "escapee")); }));
}

TEST_CASE("processes in a dead daemon's cgroups are killed, also in groups below those") {
  Cgroups groups = Cgroups::create("left");
  if (!groups.available()) return tell_skipped("no cgroup for attempts: " + groups.absence());
  const auto group = groups.take().value();
  REQUIRE(mkdirat(group.folder.get(), ".below", 0755) == 0);
  const pid_t left = fork();
  if (left == 0) {
    while (true) pause();
  }
  const UniqueFd members{openat(group.folder.get(), ".below/cgroup.procs", O_WRONLY | O_CLOEXEC)};
  const std::string pid = std::to_string(left);
  REQUIRE(write(members.get(), pid.data(), pid.size()) == static_cast<ssize_t>(pid.size()));

  CHECK(Cgroups::kill_group_of(getpid(), "other").empty());
  CHECK(waitpid(left, nullptr, WNOHANG) == 0);
  const std::vector<pid_t> killed = Cgroups::kill_group_of(getpid(), "left");
  int status = 0;
  REQUIRE(waitpid(left, &status, 0) == left);
  CHECK(WTERMSIG(status) == SIGKILL);
  if (!killed.empty()) CHECK(killed == std::vector{left});  // else it was dead already
  CHECK(eventually([] { return Cgroups::kill_group_of(getpid(), "left").empty(); }));
  const std::string folder = "lictor." + std::to_string(getpid()) + ".left";
  CHECK(faccessat(groups.parent_fd(), folder.c_str(), F_OK, 0) != 0);
}

TEST_CASE("with cgroups, the death of the warden ends strays that hide their attempt") {
  Rig rig;
  if (const std::string why = no_cgroups(); !why.empty()) return tell_skipped(why);
  const TemporaryFolder dir;
  rig.start(shell(kEscape + "echo up > $2; exec sleep 1000", {dir / "escapee", dir / "up"}));
  REQUIRE(eventually([&] { return !contents(dir / "up").empty(); }));
  REQUIRE(kill(rig.warden, SIGKILL) == 0);
  CHECK(rig.of(1).error == "the warden died");
  CHECK(gone(pid_in(dir / "escapee")));
}

}  // namespace lictor::exec::test
