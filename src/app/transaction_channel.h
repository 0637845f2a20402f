#pragma once

#include <memory>
#include <utility>

#include "net/consul_client.h"
#include "runtime/loop.h"

namespace lictor::app {

/// A connection to Consul on the loop's own thread, for the transactions between one task and the
/// next: a reply needs no change of thread. It is only for short replies, since the loop decodes
/// them. Add it to the loop before the members that send over it, so that one turn handles a reply
/// and its consequences.
class TransactionChannel : public runtime::LoopMember {
 public:
  TransactionChannel(std::unique_ptr<net::ConsulClient> consul_client, runtime::Loop& loop)
      : consul_client_(std::move(consul_client)) {
    loop.watch(consul_client_->fd());
    loop.add(*this);
  }

  [[nodiscard]] net::ConsulClient& consul_client() { return *consul_client_; }

  void step(Instant) override { consul_client_->step(); }
  [[nodiscard]] Instant next_deadline() const override { return consul_client_->next_deadline(); }

 private:
  const std::unique_ptr<net::ConsulClient> consul_client_;
};

}  // namespace lictor::app
