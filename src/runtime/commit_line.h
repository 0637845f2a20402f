#pragma once

#include <memory>

#include "net/carrier.h"
#include "runtime/loop.h"

namespace lictor::runtime {

/// The queues' own line to Consul, for what stands between a task and the next: its replies come on
/// the loop's thread, without a change of thread. Short replies only: they are decoded there. To be
/// added to the loop before what sends over it, so that a reply and what it leads to are one turn.
class CommitLine : public Task {
 public:
  CommitLine(std::unique_ptr<net::Carrier> carrier, Loop& loop) : carrier_(std::move(carrier)) {
    loop.watch(carrier_->fd());
    loop.add(*this);
  }

  [[nodiscard]] net::Carrier& carrier() { return *carrier_; }

  void step(Instant) override { carrier_->step(); }
  [[nodiscard]] Instant next_deadline() const override { return carrier_->next_deadline(); }

 private:
  const std::unique_ptr<net::Carrier> carrier_;
};

}  // namespace lictor::runtime
