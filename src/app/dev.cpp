// lictor dev: runs a store that speaks Consul's HTTP API, in memory and in its own process, and a
// daemon that uses it. SIGINT and SIGTERM end both. Without a configuration the daemon prints every
// task, counts it as done, and stops when another daemon joins the queue; the store goes on.

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/daemon.h"
#include "app/program.h"
#include "app/scratch_folder.h"
#include "base/errno_text.h"
#include "base/printable.h"
#include "base/random.h"
#include "base/try.h"
#include "dev/store_server.h"
#include "exec/init.h"
#include "httpd/listener.h"
#include "lictor/executor.h"

namespace lictor::app {
namespace {

struct DevOptions {
  std::string listen = "127.0.0.1:8500";  // of the store, where a Consul agent would be
  bool worker = true;
};

// The function "print" of this program runs every task.
constexpr std::string_view kBuiltIn =
    R"({"queues": [{"name": "default", "executors": {"*": {"cpp": "print"}}}]})";

// Prints each task and its parameters.
std::shared_ptr<Executor> printer() {
  return make_executor([](const Context& context) {
    const Task& task = context.task();
    const std::string line =
        "task " + task.id + ": " + task.type + ' ' +
        task.parameters.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    std::fprintf(stdout, "%s\n", printable(line).c_str());
    std::fflush(stdout);
  });
}

// Each daemon of the built-in queue holds a session whose name starts like this.
bool has_rivals(const dev::State& state) {
  return std::count_if(state.sessions().begin(), state.sessions().end(), [](const auto& entry) {
           return entry.second.name.starts_with("lictor default ");
         }) > 1;
}

// The store's process. The daemon forks its warden before it has any thread, and an HTTP server has
// threads: so the store gets a process of its own.
//
//   this process: the daemon --HTTP--> child: Model behind httpd::Server
//        ^                                |
//        +--SIGTERM, a byte in rivals_ ---+ a second daemon joined the built-in queue
class StoreProcess {
 public:
  /// With `gives_way` this process gets SIGTERM when a second daemon joins the built-in queue.
  StoreProcess(std::vector<httpd::Listener> listeners, bool gives_way) {
    const pid_t parent = getpid();
    if (pipe2(rivals_.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
    pid_ = fork();
    if (pid_ != 0) {
      for (httpd::Listener& each : listeners) each.unix_path.clear();  // the child's now
      return;
    }
    // Ctrl-C goes to the whole group, and so may TERM. The daemon needs the store for an orderly
    // stop, and kills it afterwards.
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) std::_Exit(0);
    dev::Model model{{random_seed()}};
    std::uint64_t seen = 0;
    const auto on_change = [&](const dev::State& state) {
      if (!gives_way || state.session_index() == seen) return;
      seen = state.session_index();
      if (!has_rivals(state)) return;
      gives_way = false;
      if (write(rivals_[1], "", 1) == 1) kill(parent, SIGTERM);
    };
    const auto server = dev::serve_store(std::move(listeners), model, on_change);
    if (!server) std::fprintf(stderr, "lictor dev: %s\n", server.error().message.c_str());
    if (!server) std::_Exit(1);
    while (true) pause();  // It ends by SIGKILL, and keeps nothing.
  }
  ~StoreProcess() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    for (const int fd : rivals_) close(fd);
  }
  StoreProcess(const StoreProcess&) = delete;
  StoreProcess& operator=(const StoreProcess&) = delete;

  [[nodiscard]] bool started() const { return pid_ > 0; }
  /// Whether another daemon has joined the built-in queue.
  [[nodiscard]] bool has_rival() const {
    char byte = 0;
    return read(rivals_[0], &byte, 1) == 1;
  }

 private:
  pid_t pid_ = -1;
  std::array<int, 2> rivals_{-1, -1};
};

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT}) sigaddset(&signals, number);
  return signals;
}

// The signals are blocked: here, or by the daemon before.
void wait_for_end() {
  const sigset_t signals = ending_signals();
  int number = 0;
  sigwait(&signals, &number);
}

// `pages`: the addresses of the worker's web page.
std::string greeting(const std::vector<std::string>& pages, const std::string& url,
                     const Config& config, bool built_in, bool has_worker) {
  const std::string worker =
      !has_worker ? "none; start one with \"lictor run\""
      : !built_in ? "as " + config.file + " says"
                  : "prints each task and counts it as done, until \"lictor run\" comes;\n"
                    "          --config gives it executors";
  const auto& executors = config.queues.front().executors;
  // A type that the configuration runs.
  const std::string type =
      executors.contains("*") || executors.empty() ? "Hello" : executors.begin()->first;
  const std::string page =
      pages.empty() ? ""
                    : fmt::format("  page    {0}\n  manual  {0}/manual/, or \"lictor help\"\n",
                                  pages.front());
  return fmt::format(
      "lictor dev: a store that speaks Consul's HTTP API, and a worker.\n"
      "Nothing is kept: all tasks are gone when this ends, by Ctrl-C.\n\n"
      "{3}  store   {0}\n  worker  {1}\n\nTry, in another terminal:\n\n"
      "  export CONSUL_HTTP_ADDR={0}\n"
      "  curl -X PUT {0}/v1/kv/{2}1 -d '{{\"taskType\": \"{4}\", \"taskPara\": {{\"to\": "
      "\"you\"}}}}'\n\n",
      url, worker, config.queues.front().layout.tasks_prefix, page, type);
}

// Forks, so no thread may exist yet. Errors: of the configuration and of listening. Returns the
// daemon's exit code.
Result<int> run_dev(const Program& program, const DevOptions& options) {
  exec::leave_pid_1();
  LoadRequest request = program.load_request(Mode::kEmbedded);
  request.refuse_untrusted = false;  // for trying out, with files of one's own
  const bool built_in = !request.flags.config && !request.environment.contains("LICTOR_CONFIG");
  if (!built_in && options.worker) request.mode = program.daemon_mode();
  LICTOR_TRY(const auto folder, ScratchFolder::make("lictor-dev"));
  Registry executors = program.registry;
  if (built_in) executors.try_emplace("print", printer());

  httpd::ListenOptions listen;
  listen.addresses = {options.listen};
  auto listeners = httpd::open_listeners(listen);
  if (!listeners) {
    return fail(listeners.error().code,
                "--listen: " + listeners.error().message +
                    "; if Consul or another lictor dev has the port, choose another with --listen, "
                    "such as 127.0.0.1:0");
  }
  const std::string url = listeners->front().url;
  const auto configure = [&]() -> Result<Config> {
    LICTOR_TRY(auto loaded, built_in ? parse_config(kBuiltIn, "the built-in configuration", request)
                                     : load_config(request));
    LICTOR_TRY(auto config, with_registered(std::move(loaded), executors));
    config.consul.options = net::Options{};
    config.consul.options.addresses = {url};
    // The session saved by a daemon of another store does not exist in this one.
    config.state_dir = folder->path();
    return config;
  };
  LICTOR_TRY(auto config, configure());

  // Blocks the signals before the fork, so that an early one ends both processes in order.
  if (!options.worker) {
    const sigset_t signals = ending_signals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  }
  const StoreProcess store{std::move(*listeners), built_in && options.worker};
  if (!store.started()) {
    return fail(ErrorCode::kFailed,
                std::string{"cannot start the store's process: "} + errno_text());
  }
  const auto greet = [&](const std::vector<std::string>& pages) {
    program.console.print(greeting(pages, url, config, built_in, options.worker));
    return program.console.flush();
  };
  if (options.worker) {
    const int code = run_daemon(config, executors, {false, configure, greet});
    if (code != 0 || !store.has_rival()) return code;
    std::fprintf(
        stderr,
        "lictor dev: another daemon serves the queue \"default\" now; the printing worker has "
        "stopped, the store goes on\n");
  } else if (auto greeted = greet({}); !greeted) {
    return tl::unexpected(std::move(greeted.error()));
  }
  wait_for_end();
  return 0;
}

}  // namespace

void add_dev(cli::Commands& to, Program& program) {
  auto [command, options] = to.add_alone<DevOptions>(
      "dev", "Try lictor without Consul: a store and a worker in one",
      R"(Serves keys, sessions, transactions and blocking queries as a Consul agent does, in memory: nothing
is kept. Without --config every task is printed and counts as done, until a "lictor run" is started
beside it.

Examples:
  lictor dev
  lictor dev --no-worker & lictor run --config ./lictor.json
  lictor dev --listen 127.0.0.1:0 --config ./lictor.json
)",
      [&program](const DevOptions& read) { return run_dev(program, read); });
  command.text("--listen", options.listen,
               "Where the store listens (default: 127.0.0.1:8500; port 0: any)", "ADDRESS");
  command.flag("--no-worker", options.worker, "Only the store", false);
}

}  // namespace lictor::app
