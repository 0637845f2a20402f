#include "hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "consul_agent.h"

namespace lictor::live {
namespace {

constexpr const char* kStem = "lictor-test-";
constexpr const char* kFolder = "/run/netns";

Output ip(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "ip");
  return run(arguments);
}

void must(std::vector<std::string> arguments) {
  std::string line = "ip";
  for (const std::string& argument : arguments) line += ' ' + argument;
  const Output output = ip(std::move(arguments));
  if (output.exit_code != 0) throw std::runtime_error{line + ": " + output.out};
}

// Removes the hosts of a run that was killed.
void remove_leftovers() {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator{kFolder, error}) {
    names.push_back(entry.path().filename());
  }
  for (const std::string& name : names) {
    if (!name.starts_with(kStem)) continue;
    const int pid = std::atoi(name.substr(std::string{kStem}.size()).c_str());
    if (pid > 0 && kill(pid, 0) != 0) static_cast<void>(ip({"netns", "del", name}));
  }
}

void enter(const std::string& name) {
  const int fd = open((std::string{kFolder} + "/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) throw std::runtime_error{"cannot enter " + name};
  close(fd);
}

}  // namespace

bool Hosts::possible(std::string& why_not) {
  const std::string name = kStem + std::to_string(getpid()) + "-try";
  const Output added =
      run({"/bin/sh", "-c", "ip netns add " + name + " && ip -n " + name + " link set lo up"});
  if (added.exit_code == 0) {
    must({"netns", "del", name});
    return true;
  }
  why_not = "no network namespaces here: " + added.out;
  return false;
}

Hosts::Hosts(int count) : count_(count), stem_(kStem + std::to_string(getpid()) + "-") {
  remove_leftovers();
  home_ = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const std::string hub = stem_ + "hub";
  must({"netns", "add", hub});
  must({"-n", hub, "link", "set", "lo", "up"});
  must({"-n", hub, "link", "add", "br0", "type", "bridge"});
  must({"-n", hub, "addr", "add", "10.77.0.254/24", "dev", "br0"});
  must({"-n", hub, "link", "set", "br0", "up"});
  for (int host = 0; host < count; ++host) {
    const std::string port = "port" + std::to_string(host);
    must({"netns", "add", name(host)});
    must({"-n", name(host), "link", "set", "lo", "up"});
    must({"-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns",
          name(host)});
    must({"-n", hub, "link", "set", port, "master", "br0", "up"});
    must({"-n", name(host), "addr", "add", address(host) + "/24", "dev", "eth0"});
    must({"-n", name(host), "link", "set", "eth0", "up"});
  }
  enter(hub);
}

Hosts::~Hosts() {
  static_cast<void>(setns(home_, CLONE_NEWNET));
  close(home_);
  for (int host = 0; host < count_; ++host) static_cast<void>(ip({"netns", "del", name(host)}));
  static_cast<void>(ip({"netns", "del", stem_ + "hub"}));
}

std::string Hosts::name(int host) const { return stem_ + std::to_string(host); }

std::string Hosts::address(int host) { return "10.77.0." + std::to_string(host + 1); }

std::vector<std::string> Hosts::on(int host) const { return {"ip", "netns", "exec", name(host)}; }

void Hosts::cut(int host) const {
  must({"-n", stem_ + "hub", "link", "set", "port" + std::to_string(host), "down"});
}

void Hosts::cut_out(int host) const {
  for (int other = 0; other < count_; ++other) {
    if (other != host) {
      must({"-n", name(host), "route", "replace", "blackhole", address(other) + "/32"});
    }
  }
}

void Hosts::heal(int host) const {
  must({"-n", stem_ + "hub", "link", "set", "port" + std::to_string(host), "up"});
  for (int other = 0; other < count_; ++other) {
    if (other != host) {
      static_cast<void>(
          ip({"-n", name(host), "route", "del", "blackhole", address(other) + "/32"}));
    }
  }
}

Server::Server(const Hosts& hosts, int host, int count) : hosts_(hosts), host_(host) {
  json join = json::array();
  for (int other = 0; other < count; ++other) join.push_back(Hosts::address(other));
  const json config{{"node_name", "server-" + std::to_string(host)},
                    {"server", true},
                    {"bootstrap_expect", count},
                    {"data_dir", folder_.file("data")},
                    {"bind_addr", Hosts::address(host)},
                    {"client_addr", "0.0.0.0"},
                    {"retry_join", join},
                    {"retry_interval", "1s"},
                    {"ports", {{"http", 8500}}},
                    {"performance", {{"raft_multiplier", 1}}},
                    {"leave_on_terminate", false},
                    {"disable_update_check", true}};
  write_text(folder_.file("consul.json"), config.dump(2));
  start();
}

Server::~Server() {
  keep_for_failure("server " + std::to_string(host_), read_text(folder_.file("log")));
}

void Server::start() {
  auto argv = hosts_.on(host_);
  const auto agent = agent_command(folder_.file("consul.json"));
  argv.insert(argv.end(), agent.begin(), agent.end());
  process_ = std::make_unique<Process>(argv, folder_.file("log"));
}

void Server::kill() {
  process_->signal(SIGKILL);
  static_cast<void>(process_->wait());
}

Servers::Servers(const Hosts& hosts, int count) : hosts_(hosts) {
  for (int host = 0; host < count; ++host) {
    servers_.push_back(std::make_unique<Server>(hosts, host, count));
  }
  const bool led = eventually([&] {
    return ask([](Kv& kv) { return kv.request("PUT", "/v1/kv/ready", "yes").body == "true"; });
  });
  if (!led) throw std::runtime_error{"the servers elect no leader"};
}

DaemonSettings Servers::settings_on(int host) const {
  DaemonSettings settings;
  settings.node = "host-" + std::to_string(host);
  settings.prefix = hosts_.on(host);
  const int servers = static_cast<int>(count());
  if (host < servers) settings.consul = {"http://127.0.0.1:8500"};
  for (int other = 0; other < servers; ++other) {
    if (other != host) settings.consul.push_back("http://" + Hosts::address(other) + ":8500");
  }
  return settings;
}

void Servers::lose_quorum() {
  for (std::size_t number = 1; number < count(); ++number) servers_[number]->kill();
}

void Servers::regain_quorum() {
  for (std::size_t number = 1; number < count(); ++number) servers_[number]->start();
}

}  // namespace lictor::live
