#pragma once

// Two daemons over one store: the first leads, the other waits. At the end the cluster's checks
// hold.

#include <string>

#include <doctest/doctest.h>

#include "cluster.h"

namespace lictor::core::test {

struct Two {
  explicit Two(QueueOptions options = options_of("a")) : a(cluster.add(options)) {
    REQUIRE(cluster.run_until([&] { return cluster.leader() == &a; }, 1s));
    options.node = std::string{"b"};
    b = &cluster.add(options);
    cluster.run_for(100ms);
    cluster.fault = [this](const Daemon& daemon, const Effect&) {
      Fault f;
      f.lose_request = f.lose_reply = cut_off == &daemon;
      return f;
    };
  }
  ~Two() {
    const auto& found = cluster.violations();
    CHECK_MESSAGE(found.empty(), (found.empty() ? std::string{} : found.front()));
  }
  Duration until_leader(Daemon& daemon) {
    const Instant from = cluster.now;
    CHECK(cluster.run_until([&] { return cluster.leader() == &daemon; }, 5min));
    return cluster.now - from;
  }

  Cluster cluster;
  Daemon& a;
  Daemon* b = nullptr;
  const Daemon* cut_off = nullptr;
};

}  // namespace lictor::core::test
