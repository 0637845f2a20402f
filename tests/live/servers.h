#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "hosts.h"
#include "journal.h"
#include "kv.h"
#include "lictor_daemon.h"
#include "process.h"
#include "support.h"

namespace lictor::live {

/// A Consul server on a host of its own, on port 8500; it asks `count` servers for one cluster, on
/// the hosts from 0.
class Server {
 public:
  Server(const Hosts& hosts, int host, int count);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  void kill();
  void signal(int number) const { process_->signal(number); }

 private:
  const Hosts& hosts_;
  int host_;
  TemporaryFolder folder_;
  std::unique_ptr<Process> process_;
};

/// A cluster of servers, the nth on the nth host.
class Servers {
 public:
  /// Returns when they have a leader.
  Servers(const Hosts& hosts, int count);

  [[nodiscard]] Server& operator[](std::size_t number) { return *servers_[number]; }
  [[nodiscard]] std::size_t count() const { return servers_.size(); }
  /// A daemon on `host`, called "host-<host>", that uses them.
  [[nodiscard]] DaemonSettings settings_on(int host) const;
  /// All but the first die, so that none of those that are left may lead.
  void lose_quorum();
  void regain_quorum();

  /// Asks one after the other until `question` says yes; one that does not answer is passed over.
  template <class Question>
  bool ask(Question question) const {
    for (std::size_t number = 0; number < count(); ++number) {
      try {
        Kv kv{"http://" + Hosts::address(static_cast<int>(number)) + ":8500"};
        if (question(kv)) return true;
      } catch (const std::exception&) {  // another may know better
      }
    }
    return false;
  }

 private:
  const Hosts& hosts_;
  std::vector<std::unique_ptr<Server>> servers_;
};

/// An executor that runs job_recorder; `lock`: see there.
[[nodiscard]] nlohmann::json recorder(const Journal& journal, const std::string& host,
                                      const char* lock);

}  // namespace lictor::live
