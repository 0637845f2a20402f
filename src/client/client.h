#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "client/cancel_marks.h"
#include "client/new_record.h"
#include "client/queue.h"
#include "client/store.h"
#include "client/task_id.h"
#include "lictor/client.h"
#include "net/transport.h"

namespace lictor {

class Client::Impl {
 public:
  /// `transport` must outlive it.
  Impl(net::Transport& transport, std::string name, wire::Layout layout);
  Impl(std::unique_ptr<net::Transport> transport, std::string name, wire::Layout layout);

  [[nodiscard]] Result<client::NewRecord> make_record(const NewTask& task);

  std::unique_ptr<net::Transport> owned;
  client::Store store;
  client::Queue queue;
  client::CancelMarks cancel_marks;
  std::mutex mutex;
  client::TaskIds ids;  // under mutex
};

}  // namespace lictor
