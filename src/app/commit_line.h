#pragma once

#include <memory>
#include <utility>

#include "net/carrier.h"
#include "runtime/loop.h"

namespace lictor::app {

/// A connection to Consul on the loop's own thread, for the transactions between one task and the
/// next: a reply needs no change of thread. Only for short replies, since the loop decodes them.
/// Added to the loop before the tasks that send over it, so that one turn handles a reply and its
/// consequences.
class CommitLine : public runtime::Task {
 public:
  CommitLine(std::unique_ptr<net::Carrier> carrier, runtime::Loop& loop)
      : carrier_(std::move(carrier)) {
    loop.watch(carrier_->fd());
    loop.add(*this);
  }

  [[nodiscard]] net::Carrier& carrier() { return *carrier_; }

  void step(Instant) override { carrier_->step(); }
  [[nodiscard]] Instant next_deadline() const override { return carrier_->next_deadline(); }

 private:
  const std::unique_ptr<net::Carrier> carrier_;
};

}  // namespace lictor::app
