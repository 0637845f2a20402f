#include "app/client_side.h"

#include <utility>

#include "base/try.h"

namespace lictor::app {

Result<std::unique_ptr<ClientSide>> ClientSide::open(const Config& config) {
  LICTOR_TRY(auto transport, net::Transport::open(config.consul.options));
  return std::unique_ptr<ClientSide>{new ClientSide{config, std::move(transport)}};
}

ClientSide::ClientSide(const Config& config, std::unique_ptr<net::Transport> transport)
    : transport_(std::move(transport)) {
  for (const QueueConfig& queue : config.queues) {
    auto impl = std::make_unique<Client::Impl>(*transport_, queue.options.queue, queue.layout);
    client::Queue stored = impl->queue;
    clients_.push_back(std::make_unique<Client>(std::move(impl)));
    queues_.push_back({*clients_.back(), std::move(stored)});
  }
}

}  // namespace lictor::app
