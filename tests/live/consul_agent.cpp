#include "consul_agent.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "kv.h"

namespace lictor::live {

const std::string& consul_binary() {
  static const std::string path = [] {
    if (const char* named = std::getenv("CONSUL_BIN"); named != nullptr && *named != '\0') {
      return std::string{named};
    }
    const TemporaryFolder folder;
    const std::string script = LICTOR_CONSUL_FOLDER "/get-consul.sh";
    const Output found = run({"/bin/sh", "-c", R"("$0" 2>"$1")", script, folder.file("errors")});
    if (found.exit_code != 0) {
      throw std::runtime_error{script + " failed:\n" + read_text(folder.file("errors"))};
    }
    return found.out.substr(0, found.out.find('\n'));
  }();
  return path;
}

std::vector<std::string> agent_command(const std::string& config_file) {
  static const std::string closed_ports = [] {
    const Output flags = run({LICTOR_CONSUL_FOLDER "/agent-ports.sh", consul_binary()});
    if (flags.exit_code != 0) throw std::runtime_error{flags.out};
    return flags.out;
  }();
  std::vector<std::string> command{consul_binary(), "agent", "-config-file=" + config_file};
  std::istringstream lines{closed_ports};
  for (std::string flag; std::getline(lines, flag);) command.push_back(flag);
  return command;
}

ConsulAgent::ConsulAgent(const json& extra) : extra_(extra) {
  node_ = "live-" + std::to_string(getpid());
  for (int tries = 0; tries < 5; ++tries) {
    http_port_ = free_port();
    const json ports{{"http", http_port_}, {"server", free_port()}, {"serf_lan", free_port()}};
    json config{{"node_name", node_},
                {"server", true},
                {"bootstrap_expect", 1},
                {"data_dir", folder_.file("data")},
                {"bind_addr", "127.0.0.1"},
                {"client_addr", "127.0.0.1"},
                {"ports", ports},
                {"performance", {{"raft_multiplier", 1}}},
                {"leave_on_terminate", false},
                {"disable_update_check", true}};
    if (!extra_.is_null()) config.merge_patch(extra_);
    write_text(folder_.file("consul.json"), config.dump(2));
    if (starts()) return;
  }
  keep_for_failure("consul", read_text(folder_.file("log")));
  throw std::runtime_error{"consul does not start:\n" + read_text(folder_.file("log"))};
}

ConsulAgent::~ConsulAgent() {
  if (process_) process_->signal(SIGKILL);
  process_.reset();
}

std::string ConsulAgent::address() const {
  return "http://127.0.0.1:" + std::to_string(http_port_);
}

void ConsulAgent::stop() {
  process_->signal(SIGTERM);
  if (!process_->wait()) throw std::runtime_error{"consul does not stop"};
  process_.reset();
}

void ConsulAgent::start() {
  if (!starts()) {
    throw std::runtime_error{"consul does not start again:\n" + read_text(folder_.file("log"))};
  }
}

// False: the agent ended, for instance because another process took one of its ports.
bool ConsulAgent::starts() {
  process_ =
      std::make_unique<Process>(agent_command(folder_.file("consul.json")), folder_.file("log"));
  Kv kv{address()};
  const bool has_acl = extra_.contains("acl");
  return eventually([&] {
           if (!process_->runs()) return true;
           if (!has_acl) {
             // No session can be created before the server that leads has registered its node with
             // this check ("Missing node registration").
             return kv.request("PUT", "/v1/kv/live-ready", "yes").body == "true" &&
                    kv.request("GET", "/v1/health/state/passing").body.find("serfHealth") !=
                        std::string::npos;
           }
           const HttpAnswer leader = kv.request("GET", "/v1/status/leader");
           return leader.status == 200 && leader.body != "\"\"";
         }) &&
         process_->runs();
}

}  // namespace lictor::live
