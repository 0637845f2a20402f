#pragma once

// Hosts of a network of our own, as network namespaces on a bridge: traffic can be cut, in both
// directions or in one. Needs root and iproute2.

#include <memory>
#include <string>
#include <vector>

#include "journal.h"
#include "kv.h"
#include "lictor_daemon.h"
#include "process.h"
#include "support.h"

namespace lictor::live {

class Hosts {
 public:
  /// `count` hosts, numbered from 0. This process moves into the network, so that it reaches all of
  /// them, and back at the end. Throws where the system does not allow it.
  explicit Hosts(int count);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  /// Whether this system allows it; if not, why.
  [[nodiscard]] static bool possible(std::string& why_not);

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] static std::string address(int host);
  /// The beginning of a command line that runs on `host`.
  [[nodiscard]] std::vector<std::string> on(int host) const;

  /// Nothing gets in or out.
  void cut(int host) const;
  /// Messages of this host to the others are lost; theirs arrive.
  void cut_out(int host) const;
  void heal(int host) const;

 private:
  [[nodiscard]] std::string name(int host) const;

  int count_;
  std::string stem_;
  int home_ = -1;
};

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
  /// All servers but the first die, so that none of those left may lead.
  void lose_quorum();
  void regain_quorum();

  /// Asks the servers in turn until `question` says yes; passes over one that does not answer.
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

}  // namespace lictor::live
