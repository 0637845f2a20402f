#include "exec/spawn.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "base/descriptors.h"

// A sanitizer's instrumentation would use the thread-local state of the parent.
#define LICTOR_BARE __attribute__((no_sanitize("address", "undefined", "thread")))

// ThreadSanitizer replaces clone() to run its own code in the child, but not the C library's
// internal name.
#if defined(__SANITIZE_THREAD__)
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);
#define LICTOR_CLONE __clone
#else
#define LICTOR_CLONE clone
#endif

namespace lictor::exec {
namespace {

// A system call that does not set errno, which the child shares with us. Returns -errno.
#if defined(__x86_64__)
constexpr int kWaitForExec = 0;

LICTOR_BARE inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0,
                             long e = 0) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
constexpr int kWaitForExec = 0;

LICTOR_BARE inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0,
                             long e = 0) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
}
#else
// Elsewhere the parent waits for the execve, as in vfork, so errno may be shared.
constexpr int kWaitForExec = CLONE_VFORK;

LICTOR_BARE inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0,
                             long e = 0) {
  const long result = syscall(number, a, b, c, d, e);
  return result < 0 ? -errno : result;
}
#endif

// clone3(2), which glibc lacks. The child runs `function` on its own stack and does not return from
// it. Returns the child's pid, or -errno.
#if defined(__x86_64__)
LICTOR_BARE long clone3(clone_args& arguments, int (*function)(void*), void* argument) {
  long result = SYS_clone3;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "mov %[function], %%rax\n\t"
      "mov %[argument], %%rdi\n\t"
      "xor %%ebp, %%ebp\n\t"  // no frame above; after the operands, which may be in it
      "call *%%rax\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(&arguments), "S"(sizeof(arguments)), [function] "r"(function), [argument] "r"(argument)
      : "rcx", "r11", "memory", "cc");
  return result;
}
#elif defined(__aarch64__)
LICTOR_BARE long clone3(clone_args& arguments, int (*function)(void*), void* argument) {
  register long x8 asm("x8") = SYS_clone3;
  register long x0 asm("x0") = reinterpret_cast<long>(&arguments);
  register long x1 asm("x1") = sizeof(arguments);
  asm volatile(
      "svc 0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x9, %[function]\n\t"
      "mov x0, %[argument]\n\t"
      "mov x29, xzr\n\t"
      "blr x9\n\t"
      "brk 0\n"
      "1:"
      : "+r"(x0)
      : "r"(x8), "r"(x1), [function] "r"(function), [argument] "r"(argument)
      : "memory", "cc", "x9", "x30");
  return x0;
}
#else
long clone3(clone_args&, int (*)(void*), void*) { return -ENOSYS; }
#endif

LICTOR_BARE inline long as_long(const void* pointer) { return reinterpret_cast<long>(pointer); }

// The kernel's sigset_t has 64 bits, unlike glibc's.
constexpr std::uint64_t kNoSignals = 0;

const __user_cap_header_struct kCapabilityVersion{_LINUX_CAPABILITY_VERSION_3, 0};
const __user_cap_data_struct kNoCapabilities[2]{};

// execve needs at most two pages of stack; the rest is a reserve.
constexpr std::size_t kStackBytes = 16384;

std::vector<const char*> pointers(const std::vector<std::string>& strings) {
  std::vector<const char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings) pointers.push_back(string.c_str());
  pointers.push_back(nullptr);
  return pointers;
}

// Everything the child reads, prepared before the clone. Plain pointers: a sanitizer would
// instrument the members of containers.
struct Plan {
  Spawning::Streams streams;
  int cgroup = -1;  // the child joins it
  pid_t parent = 0;
  bool drops_capabilities = false;
  const Limit* limits = nullptr;
  std::size_t limit_count = 0;
  const char* handover_folder = nullptr;  // null: no folder to give
  bool other_user = false;
  uid_t uid = 0;
  gid_t gid = 0;
  const gid_t* groups = nullptr;
  std::size_t group_count = 0;
  const char* directory = nullptr;
  const char* const* argv = nullptr;
  const char* const* environment = nullptr;
  Step failed_step = Step::kNone;  // only the child writes it
  int error = 0;                   // only the child writes it
};

[[noreturn]] LICTOR_BARE void give_up(Plan* plan, Step step, long result) {
  plan->error = static_cast<int>(-result);
  plan->failed_step = step;
  while (true) call(SYS_exit_group, 127);
}

// Ends the child if the step has failed.
LICTOR_BARE void must(Plan* plan, Step step, long result) {
  if (result < 0) give_up(plan, step, result);
}

// Gives the handover folder to the job's user. Done before the change of user, which ends the right
// to. Returns -errno.
LICTOR_BARE long give_folder(const char* path, uid_t uid) {
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const long folder = call(SYS_openat, AT_FDCWD, as_long(path), kFlags);
  if (folder < 0) return folder;
  struct statx info;
  const long known = call(SYS_statx, folder, as_long(""), AT_EMPTY_PATH, STATX_UID, as_long(&info));
  if (known == 0 && info.stx_uid == uid) return 0;  // a chown would write to the disk
  return call(SYS_fchownat, folder, as_long(""), static_cast<long>(uid), -1, AT_EMPTY_PATH);
}

// Moves the streams into place. All are above 2: the warden keeps 0 to 2 open. Returns -errno.
LICTOR_BARE long take_streams(const Spawning::Streams& streams) {
  long result = call(SYS_dup3, streams.input, 0, 0);
  if (result >= 0) result = call(SYS_dup3, streams.output, 1, 0);
  if (result >= 0) result = call(SYS_dup3, streams.output, 2, 0);
  if (result < 0) return result;
  const bool replies = streams.replies >= 0;
  if (streams.replies == kRepliesFd) {
    result = call(SYS_fcntl, kRepliesFd, F_SETFD, 0);
  } else if (replies) {
    result = call(SYS_dup3, streams.replies, kRepliesFd, 0);
  }
  if (result < 0) return result;
  // Before Linux 5.9, close-on-exec must suffice.
  call(SYS_close_range, replies ? kRepliesFd + 1 : kRepliesFd, ~0U, 0);
  return 0;
}

// Runs in the child, on its own stack, in the parent's memory.
LICTOR_BARE int run_child(void* argument) {
  auto* plan = static_cast<Plan*>(argument);
  must(plan, Step::kSession, call(SYS_setsid));

  // Best effort: without a cgroup, session, process group and environment identify the attempt.
  if (plan->cgroup >= 0) {
    const long file = call(SYS_openat, plan->cgroup, as_long("cgroup.procs"), O_WRONLY);
    if (file >= 0) call(SYS_write, file, as_long("0"), 1);
  }
  if (plan->handover_folder != nullptr) {
    must(plan, Step::kHandover, give_folder(plan->handover_folder, plan->uid));
  }
  must(plan, Step::kInputOutput, take_streams(plan->streams));
  for (std::size_t i = 0; i < plan->limit_count; ++i) {
    const Limit& limit = plan->limits[i];
    const struct { std::uint64_t soft, hard; } value{limit.soft, limit.hard};
    must(plan, Step::kLimits, call(SYS_prlimit64, 0, limit.resource, as_long(&value), 0));
  }
  if (plan->other_user) {
    const auto uid = static_cast<long>(plan->uid);
    const auto gid = static_cast<long>(plan->gid);
    const auto group_count = static_cast<long>(plan->group_count);
    must(plan, Step::kGroups, call(SYS_setgroups, group_count, as_long(plan->groups)));
    must(plan, Step::kGroups, call(SYS_setresgid, gid, gid, gid));
    must(plan, Step::kUser, call(SYS_setresuid, uid, uid, uid));
    // The change of user has reset this to fs.suid_dumpable, and this memory is the warden's.
    call(SYS_prctl, PR_SET_DUMPABLE, 0);
  }
  if (plan->drops_capabilities) {
    must(plan, Step::kUser,
         call(SYS_capset, as_long(&kCapabilityVersion), as_long(kNoCapabilities)));
  }
  must(plan, Step::kDirectory, call(SYS_chdir, as_long(plan->directory)));

  // After the change of user, which would clear the signal.
  call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  if (call(SYS_getppid) != plan->parent) give_up(plan, Step::kClone, -ESRCH);

  call(SYS_rt_sigprocmask, SIG_SETMASK, as_long(&kNoSignals), 0, sizeof(kNoSignals));
  give_up(plan, Step::kRun,
          call(SYS_execve, as_long(*plan->argv), as_long(plan->argv), as_long(plan->environment)));
}

}  // namespace

// Owns everything that the plan points to.
struct Spawning::Block {
  Program program;
  std::string handover_folder;
  std::vector<const char*> argv;
  std::vector<const char*> environment;
  std::unique_ptr<std::byte[]> stack;
  Plan plan;
};

Spawning::Spawning(Program program, std::string handover_folder)
    : block_(std::make_unique<Block>()) {
  Block& block = *block_;
  block.program = std::move(program);
  block.handover_folder = std::move(handover_folder);
  block.argv = pointers(block.program.argv);
  block.environment = pointers(block.program.environment);

  if (const rlim_t soft = programs_descriptor_limit(); soft != 0) {
    // The configured limits come later and win.
    auto& limits = block.program.limits;
    limits.insert(limits.begin(), {RLIMIT_NOFILE, soft, most_descriptors()});
  }

  Plan& plan = block.plan;
  plan.parent = getpid();
  // Root's capabilities go with its uid, and come back with an exec as root.
  plan.drops_capabilities = geteuid() != 0 && block.program.user.has_value();
  plan.limits = block.program.limits.data();
  plan.limit_count = block.program.limits.size();
  if (block.program.user) {
    plan.other_user = true;
    plan.uid = block.program.user->uid;
    plan.gid = block.program.user->gid;
    plan.groups = block.program.user->groups.data();
    plan.group_count = block.program.user->groups.size();
    if (!block.handover_folder.empty()) plan.handover_folder = block.handover_folder.c_str();
  }
  plan.directory = block.program.directory.c_str();
  plan.argv = block.argv.data();
  plan.environment = block.environment.data();
}

Spawning::Child Spawning::start(const Streams& streams, int cgroup) {
  Block& block = *block_;
  block.plan.streams = streams;
  block.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);

  // Lets the job open /dev/stdout by name although the pipe is the daemon user's. Best effort.
  for (const int pipe : {streams.output, streams.replies}) {
    if (block.plan.other_user && pipe >= 0) (void)!fchown(pipe, block.plan.uid, block.plan.gid);
  }

  Child child;
  int pidfd = -1;
  const int flags = CLONE_VM | CLONE_PIDFD | kWaitForExec;
  if (cgroup >= 0) {
    clone_args arguments{};
    arguments.flags = static_cast<std::uint64_t>(flags) | CLONE_INTO_CGROUP;
    arguments.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
    arguments.exit_signal = SIGCHLD;
    arguments.stack = reinterpret_cast<std::uintptr_t>(block.stack.get());
    arguments.stack_size = kStackBytes;
    arguments.cgroup = static_cast<std::uint64_t>(cgroup);
    child.pid = static_cast<pid_t>(clone3(arguments, run_child, &block.plan));
    // systemd's RestrictNamespaces= and some containers deny clone3. Joining the group later costs
    // more, because the kernel then waits for all CPUs.
    if (child.pid < 0) block.plan.cgroup = cgroup;
  }
  if (child.pid < 0) {
    child.pid = LICTOR_CLONE(run_child, block.stack.get() + kStackBytes, flags | SIGCHLD,
                             &block.plan, &pidfd);
  }
  if (child.pid < 0) {
    child.error = errno;
  } else {
    child.pidfd.reset(pidfd);
  }
  return child;
}

Step Spawning::failed_step() const { return block_->plan.failed_step; }
int Spawning::error() const { return block_->plan.error; }

Spawning::Spawning(Spawning&&) noexcept = default;
Spawning& Spawning::operator=(Spawning&&) noexcept = default;
Spawning::~Spawning() = default;

}  // namespace lictor::exec
