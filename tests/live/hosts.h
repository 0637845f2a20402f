#pragma once

// Hosts of a network of our own, as network namespaces on a bridge: what crosses it can be cut, in
// both directions or in one. Needs root and iproute2.

#include <memory>
#include <string>
#include <vector>

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
  /// What a command line begins with to run on `host`.
  [[nodiscard]] std::vector<std::string> on(int host) const;

  /// Nothing comes or goes.
  void cut(int host) const;
  /// What it says to the other hosts is lost; what they say arrives.
  void cut_out(int host) const;
  void heal(int host) const;

 private:
  [[nodiscard]] std::string name(int host) const;

  int count_;
  std::string stem_;
  int home_ = -1;
};

}  // namespace lictor::live
