#include "servers.h"

#include <signal.h>

#include <stdexcept>

#include "consul_agent.h"

namespace lictor::live {

using nlohmann::json;

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

json recorder(const Journal& journal, const std::string& host, const char* lock) {
  return {{"exec", {LICTOR_JOB_RECORDER, journal.file(), host, lock}}};
}

}  // namespace lictor::live
