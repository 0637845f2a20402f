// Reads one executor. All kinds share one table, so that a key of another kind gets an error that
// names that kind. An executor's kind is the key of kKinds that it has. Its program, folders and
// user must exist on this host; that is checked at the start, and not by the first task. A client
// reads the same file on a host that may have none of them, so it skips these checks.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "app/config_internal.h"
#include "base/errno_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "exec/http_post.h"
#include "exec/plugin.h"
#include "exec/privileges.h"

namespace lictor::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxArguments = 1000;
constexpr std::size_t kMaxTypeBytes = 256;
constexpr Duration kYear = 366 * 24h;
constexpr std::uint64_t kGiB = 1ULL << 30U;

Settings backoff_settings(core::Backoff& target) {
  return {{"initial", duration(target.initial, 1ms, 24h)},
          {"max", duration(target.max, 1ms, kYear)},
          {"factor", number(target.factor, 1, 100)},
          {"jitter", number(target.jitter, 0, 1)}};
}

Reader backoff(core::Backoff& target) {
  const auto check = [&target](const ConfigNode& place) -> Result<void> {
    if (target.max >= target.initial) return {};
    const std::string initial = format_duration(target.initial);
    const auto unless_set = [&](const char* name) {
      return place.has(name) ? "" : " (not set here)";
    };
    return place.refuse_at({"initial", "max"}, "max " + format_duration(target.max) +
                                                   unless_set("max") + " is less than initial " +
                                                   initial + unless_set("initial") +
                                                   "; set max to " + initial + " or more");
  };
  return object(backoff_settings(target), R"(an object such as {"initial": "1s", "max": "5m"})",
                check);
}

// An argument or a variable's value: any text without NUL, which ends a C string.
Result<std::string> take_argument(const ConfigNode& place) {
  if (!place.value().is_string()) return place.expected("text");
  auto text = place.value().get<std::string>();
  if (text.find('\0') != std::string::npos) return place.expected("text without NUL");
  return text;
}

// The fault of a path on this host; empty if there is none. A typo is found at start, not with the
// first task.
using Fault = std::string (*)(const std::string& path);

std::string program_fault(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return errno_text() + "; install the program or correct the path";
  }
  if (S_ISDIR(status.st_mode)) return "expected a program, got a folder";
  if (!S_ISREG(status.st_mode)) return "expected a program, got something else than a file";
  if (::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0) return {};
  return "not executable (" + errno_text() + "); make it so with chmod +x";
}

std::string folder_fault(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return errno_text() + "; make the folder or correct the path";
  }
  return S_ISDIR(status.st_mode) ? "" : "expected a folder, got something else; correct the path";
}

std::string reading_fault(const std::string& path) {
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0) return {};
  return errno_text() + "; correct the path or the file's rights";
}

Result<void> check_path(const ConfigNode& place, const std::string& path, Mode mode,
                        Fault fault_of) {
  const std::string fault = mode == Mode::kClient ? "" : fault_of(path);
  if (fault.empty()) return {};
  return place.missing('"' + excerpt(path, 200) + "\": " + fault);
}

Reader path_on_host(std::string& target, Mode mode, Fault fault_of) {
  return {[&target, mode, fault_of](const ConfigNode& place) -> Result<void> {
            if (auto read = absolute_path(target)(place); !read) return read;
            return check_path(place, target, mode, fault_of);
          },
          "an absolute path"};
}

Reader arguments(std::vector<std::string>& target, Mode mode) {
  const std::string what = R"(an array of program and arguments such as ["/opt/jobs/any", "-v"])";
  auto read = [&target, mode, what](const ConfigNode& place) -> Result<void> {
    if (!place.value().is_array() || place.value().empty()) {
      return place.expected(what);
    }
    const Reader element{[&target](const ConfigNode& item) -> Result<void> {
                           LICTOR_TRY(auto argument, take_argument(item));
                           target.push_back(std::move(argument));
                           return {};
                         },
                         "text"};
    if (auto rest = list(kMaxArguments, element)(place); !rest) return rest;
    // A service's PATH is not the PATH of the person who wrote the configuration.
    const ConfigNode program = place.item(0);
    if (!target.front().starts_with('/')) return program.expected("a program's absolute path");
    return check_path(program, target.front(), mode, program_fault);
  };
  return {std::move(read), what};
}

Reader variables(std::vector<std::pair<std::string, std::string>>& target) {
  auto read = [&target](const ConfigNode& place) -> Result<void> {
    if (!place.value().is_object()) return place.expected("an object");
    for (const auto& [name, ignored] : place.value().items()) {
      const ConfigNode member = place.member(name);
      const bool starts_with_digit = name.find_first_of("0123456789") == 0;
      if (!is_word(name, "_") || starts_with_digit) {
        return member.refuse(
            "a variable's name has letters, digits and \"_\" only, no digit first");
      }
      if (name.starts_with("LICTOR_")) {
        return member.refuse("lictor sets LICTOR_ variables itself; choose another name");
      }
      LICTOR_TRY(auto value, take_argument(member));
      target.emplace_back(name, std::move(value));
    }
    return {};
  };
  return {std::move(read), R"(an object such as {"LANG": "C.UTF-8"})"};
}

Reader user(std::optional<exec::User>& target, Mode mode) {
  auto take = [&target, mode](const ConfigNode& place) -> Result<void> {
    std::string name;
    if (auto read = text(name)(place); !read || mode == Mode::kClient) return read;
    auto found = exec::find_user(name);
    if (!found) {
      return place.missing(found.error().message + "; create the user or correct the name");
    }
    const uid_t own = ::geteuid();
    if (found->credentials.uid == own) return {};
    if (own != 0 && found->credentials.uid == 0) {
      return place.refuse(
          "user \"" + excerpt(name) +
          "\": a daemon that is not root runs no jobs as root; choose another user");
    }
    if (!exec::may_change_user()) {
      return place.refuse("user \"" + excerpt(name) +
                          "\": jobs of another user need CAP_SETUID, CAP_SETGID, CAP_KILL and "
                          "CAP_CHOWN, or root; for the service, install systemd/job-user.conf; for "
                          "\"lictor check\", use root; or leave this out");
    }
    found->shell = "/bin/sh";  // a service user's shell is often nologin
    target = *std::move(found);
    return {};
  };
  return {std::move(take), "a user's name"};
}

// A limit whose value `take` reads; the hard limit is higher by `more`.
template <class Take>
Reader limit(std::vector<exec::Limit>& target, int resource, std::string form, Take take,
             std::uint64_t more = 0) {
  return {[&target, resource, take, more](const ConfigNode& member) -> Result<void> {
            LICTOR_TRY(const std::uint64_t value, take(member));
            target.push_back({resource, value, value + more});
            return {};
          },
          std::move(form)};
}

Settings limits_settings(std::vector<exec::Limit>& target) {
  const auto bytes = [&](int resource) {
    constexpr std::uint64_t kMost = 1024 * kGiB;
    return limit(target, resource, size_form(kMost),
                 [](const ConfigNode& member) { return size_of(member, kMost); });
  };
  const auto count = [&](int resource, std::uint64_t min, std::uint64_t max) {
    return limit(target, resource, whole_form(min, max),
                 [=](const ConfigNode& member) { return whole_of(member, min, max); });
  };
  const auto seconds = [](const ConfigNode& member) -> Result<std::uint64_t> {
    LICTOR_TRY(const Duration time, duration_of(member, 1s, kYear, {}));
    return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(time).count());
  };
  return {{"open_files", count(RLIMIT_NOFILE, 3, 1U << 30U)},
          {"processes", count(RLIMIT_NPROC, 1, 1U << 22U)},
          {"memory", bytes(RLIMIT_DATA)},
          {"file_size", bytes(RLIMIT_FSIZE)},
          {"core", bytes(RLIMIT_CORE)},
          // SIGXCPU at the soft limit, which a program may catch, and KILL at the hard one.
          {"cpu_time", limit(target, RLIMIT_CPU, duration_form(1s, kYear, {}), seconds, 5)}};
}

Reader plugin_file(std::string& target, Mode mode) {
  return {[&target, mode](const ConfigNode& place) -> Result<void> {
            auto read = absolute_path(target)(place);
            if (!read || mode == Mode::kClient) return read;
            // Loaded later, when the warden has been forked.
            return place.checked(exec::check_plugin_file(target));
          },
          "an absolute path"};
}

Reader plugin(PluginConfig& target, Mode mode) {
  const std::string form = R"(an absolute path, or an object such as )"
                           R"({"file": "/opt/jobs/libresize.so", "executor": "Resize"})";
  const Reader file = plugin_file(target.file, mode);
  return text_or(file, object({{"file", file}, {"executor", text(target.executor)}}, form,
                              [&target, form](const ConfigNode& place) -> Result<void> {
                                if (!target.file.empty()) return {};
                                return place.refuse("has no \"file\"; expected " + form);
                              }));
}

constexpr Duration kLongestKeepAlive = std::chrono::hours{1};

// The headers that HTTP itself needs.
constexpr std::array<std::string_view, 5> kOwnHeaders{"Connection", "Content-Length", "Expect",
                                                      "Transfer-Encoding", "Upgrade"};

Result<void> read_header(const ConfigNode& place, const std::string& name, HttpConfig& target) {
  if (!is_word(name, "!#$%&'*+-.^_`|~")) {  // a token of RFC 9110, 5.6.2
    return place.refuse("a header's name has letters, digits and \"-\", no space and no \":\"");
  }
  const bool is_ours = name.size() >= 7 && equal_but_for_case(name.substr(0, 7), "lictor-");
  if (is_ours || std::any_of(kOwnHeaders.begin(), kOwnHeaders.end(),
                             [&](std::string_view own) { return equal_but_for_case(name, own); })) {
    return place.refuse("lictor sets this header itself; remove it");
  }
  const auto text = place.value().is_string() ? place.value().get<std::string>() : "\n";
  // Not quoted: it may be a secret.
  if (std::any_of(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
      })) {
    return place.refuse("expected text of one line");
  }
  target.headers.emplace_back(name, text);
  return {};
}

Reader headers(HttpConfig& target) {
  const std::string form = R"(an object such as {"X-Source": "lictor"})";
  auto take = [&target, form](const ConfigNode& place) -> Result<void> {
    if (!place.value().is_object()) return place.expected(form);
    for (const auto& [name, ignored] : place.value().items()) {
      if (auto read = read_header(place.member(name), name, target); !read) return read;
    }
    return {};
  };
  return {std::move(take), form};
}

Reader url(exec::HttpTarget& target) {
  const std::string form = R"(a URL such as "http://127.0.0.1:9000/notify")";
  return into(target, form, [form](const ConfigNode& place) -> Result<exec::HttpTarget> {
    if (!place.value().is_string()) return place.expected(form);
    return place.checked(exec::parse_http_target(place.value().get<std::string>()));
  });
}

Result<void> check_http(const ConfigNode& place, const HttpConfig& target) {
  if (target.target.url.empty()) {
    return place.refuse(R"(has no "url"; add one such as "http://127.0.0.1:9000/notify")");
  }
  if (target.keep_alive > 0s && target.keep_alive < 1s) {
    return place.member("keep_alive")
        .refuse("expected 0s, which keeps no connection, or 1s or more");
  }
  const bool own_authorization =
      target.target.has_user ||
      std::any_of(target.headers.begin(), target.headers.end(), [](const auto& header) {
        return equal_but_for_case(header.first, "Authorization");
      });
  if (!target.token_file.empty() && own_authorization) {
    return place.member("token_file")
        .refuse("the URL or a header already has credentials; remove one of the two");
  }
  return {};
}

Reader http(HttpConfig& target, Mode mode) {
  Settings settings{{"url", url(target.target)},
                    {"headers", headers(target)},
                    {"token_file", path_on_host(target.token_file, mode, reading_fault)},
                    {"ca_file", path_on_host(target.ca_file, mode, reading_fault)},
                    {"keep_alive", duration(target.keep_alive, 0s, kLongestKeepAlive)}};
  return text_or(url(target.target),
                 object(std::move(settings),
                        R"(a URL, or an object such as {"url": "http://127.0.0.1:9000/notify"})",
                        [&target](const ConfigNode& place) { return check_http(place, target); }));
}

// The kind of an executor is the one of these keys that it has.
constexpr std::array<std::string_view, 6> kKinds{"exec", "worker", "http", "noop", "cpp", "plugin"};
// The settings that only some kinds have, with those kinds.
constexpr std::string_view kPrograms = R"("exec" and "worker")";
constexpr std::string_view kWorkers = R"("worker")";
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kOfSomeKinds{
    {{"cwd", kPrograms},
     {"user", kPrograms},
     {"env", kPrograms},
     {"output_limit", kPrograms},
     {"limits", kPrograms},
     {"processes", kWorkers},
     {"tasks_per_process", kWorkers},
     {"max_tasks", kWorkers},
     {"idle_timeout", kWorkers},
     {"start_timeout", kWorkers}}};

Result<std::string> kind_of(const ConfigNode& place) {
  std::string kind;
  for (const std::string_view known : kKinds) {
    if (!place.has(known)) continue;
    if (!kind.empty()) {
      return place.refuse_at(
          {kind, known}, fmt::format("has \"{}\" and \"{}\", an executor is one of them; remove "
                                     "the other",
                                     kind, known));
    }
    kind = known;
  }
  if (kind.empty()) {
    return place.refuse(R"(says nothing to run; expected "exec", "worker", "http", "noop", "cpp" )"
                        R"(or "plugin", such as {"exec": ["/opt/jobs/any"]})");
  }
  const std::string quoted = '"' + kind + '"';
  for (const auto& [key, whose] : kOfSomeKinds) {
    if (!place.has(key) || whose.find(quoted) != std::string_view::npos) continue;
    return place.member(key).refuse(
        fmt::format("is for {}, this executor is {}; remove it", whose, quoted));
  }
  return kind;
}

constexpr std::uint32_t kMostProcesses = 256;  // of one executor

// Limits the executor to as many jobs as its processes take: more would wait in them out of order,
// while their time-out runs. Tasks of an executor without a limit are claimed ahead, so it gets no
// limit if the queue's concurrency is not higher anyway.
Result<void> fit_concurrency(const ConfigNode& place, const WorkerConfig& worker,
                             std::uint32_t of_queue, core::TypePolicy& policy) {
  const std::uint32_t most = worker.processes * worker.tasks_per_process;
  if (policy.concurrency > most) {
    const std::uint32_t processes =
        (policy.concurrency + worker.tasks_per_process - 1) / worker.tasks_per_process;
    return place.refuse_at(
        {"concurrency", "processes"},
        fmt::format("concurrency {} is more than its processes take ({} with {} at a time each); "
                    "{}, or leave concurrency out",
                    policy.concurrency, worker.processes, worker.tasks_per_process,
                    processes <= kMostProcesses
                        ? fmt::format("set processes to {} or more", processes)
                        : "raise processes and tasks_per_process"));
  }
  if (policy.concurrency == 0 && most < of_queue) policy.concurrency = most;
  return {};
}

Settings worker_settings(WorkerConfig& worker, Mode mode) {
  return {{"worker", arguments(worker.program.argv, mode)},
          {"processes", whole(worker.processes, 1, kMostProcesses)},
          {"tasks_per_process", whole(worker.tasks_per_process, 1, 1000)},
          {"max_tasks", whole(worker.max_tasks, 0, 1'000'000'000)},
          {"idle_timeout", duration(worker.idle_timeout, 1s, kYear)},
          {"start_timeout", duration(worker.start_timeout, 100ms, 1h)}};
}

// `of_queue`: the queue's concurrency.
Result<void> read_executor(const ConfigNode& place, Mode mode, std::uint32_t of_queue,
                           ExecutorConfig& target, core::TypePolicy& policy) {
  ExecutorParts parts;
  auto read = read_settings(place, executor_settings(parts, policy, mode));
  if (!read) return read;
  LICTOR_TRY(const auto kind, kind_of(place));
  if (kind == "worker") {
    if (auto fits = fit_concurrency(place, parts.worker, of_queue, policy); !fits) return fits;
    parts.exec.argv = std::move(parts.worker.program.argv);
    parts.worker.program = std::move(parts.exec);
    target = std::move(parts.worker);
    return {};
  }
  parts.cpp.where = parts.plugin.where = place.member(kind).where();
  target = kind == "exec"     ? ExecutorConfig{std::move(parts.exec)}
           : kind == "http"   ? ExecutorConfig{std::move(parts.http)}
           : kind == "plugin" ? ExecutorConfig{std::move(parts.plugin)}
           : kind == "cpp"    ? ExecutorConfig{std::move(parts.cpp)}
                              : ExecutorConfig{parts.noop};
  return {};
}

}  // namespace

Settings policy_settings(core::TypePolicy& policy) {
  return {{"timeout", duration(policy.timeout, 0s, kYear)},
          {"max_attempts", whole(policy.max_attempts, 1, policy.max_attempts_limit)},
          {"backoff", backoff(policy.backoff)},
          {"delivery", choice<core::Delivery>(policy.delivery,
                                              {{"at_least_once", core::Delivery::kAtLeastOnce},
                                               {"effectively_once", core::Delivery::kAtLeastOnce},
                                               {"at_most_once", core::Delivery::kAtMostOnce}})}};
}

Settings executor_settings(ExecutorParts& parts, core::TypePolicy& policy, Mode mode) {
  const Choices<core::OnLeaseLost> on_lease_lost{{"stop", core::OnLeaseLost::kStop},
                                                 {"finish", core::OnLeaseLost::kFinish}};
  Settings settings = policy_settings(policy);
  const Settings own{{"concurrency", derived(whole(policy.concurrency, 1, kMostConcurrency))},
                     {"on_lease_lost", choice(policy.on_lease_lost, on_lease_lost)},
                     {"exec", arguments(parts.exec.argv, mode)},
                     {"cwd", path_on_host(parts.exec.directory, mode, folder_fault)},
                     {"user", user(parts.exec.user, mode)},
                     {"env", variables(parts.exec.environment)},
                     {"output_limit", size(parts.exec.log_cap, 16 * kGiB)},
                     {"limits", object(limits_settings(parts.exec.limits))},
                     {"noop", object({{"sleep", duration(parts.noop.sleep, 0s, kYear)}})},
                     {"cpp", text(parts.cpp.name)},
                     {"http", http(parts.http, mode)},
                     {"plugin", plugin(parts.plugin, mode)}};
  settings.insert(settings.end(), own.begin(), own.end());
  const Settings workers = worker_settings(parts.worker, mode);
  settings.insert(settings.end(), workers.begin(), workers.end());
  return settings;
}

void limit_at_most_once(core::TypePolicy& policy, bool counts_attempts) {
  if (policy.delivery != core::Delivery::kAtMostOnce) return;
  if (!counts_attempts) policy.max_attempts = 1;
  policy.max_attempts_limit = policy.max_attempts;
}

Result<void> read_executors(const ConfigNode& place, const LoadRequest& request,
                            const core::TypePolicy& defaults, bool counts_attempts,
                            QueueConfig& queue) {
  if (!place.value().is_object()) return place.expected("an object");
  const std::string only = request.only_type.value_or("");
  const std::string tried = place.has(only) ? only : "*";
  for (const auto& [type, ignored] : place.value().items()) {
    const ConfigNode member = place.member(type);
    const Mode mode = request.only_type && type != tried ? Mode::kClient : request.mode;
    if (type.empty() || type.size() > kMaxTypeBytes) {
      return member.refuse("expected a taskType of 1 to " + std::to_string(kMaxTypeBytes) +
                           " bytes, or \"*\" for the rest");
    }
    ExecutorConfig executor;
    core::TypePolicy policy = defaults;
    if (auto read = read_executor(member, mode, queue.options.concurrency, executor, policy); !read)
      return read;
    limit_at_most_once(policy, member.has("max_attempts") || counts_attempts);
    queue.executors.insert_or_assign(type, std::move(executor));
    if (type == "*") {
      queue.options.any_type = policy;
    } else {
      queue.options.types.insert_or_assign(type, policy);
    }
  }
  return {};
}

}  // namespace lictor::app
