#pragma once

// The inside of include/lictor/client.h: one transport, one queue, and the state that outlives a
// call. The methods of Client are in client.cpp (submitting), control.cpp and queue.cpp.
//
//   submit()      --> make_record() --> one transaction of one record
//   submit_many() --> make_record() --> RecordWriter: many a transaction, several under way
//   all others    --> queue.h, change.h: read, plan, write
//
// Every method may be called from any thread. Store and Transport are thread safe, and `mutex`
// guards the generator of ids alone, so no call waits for another one's answer from Consul. The
// daemon, the commands and the tests build an Impl on a transport of their own.

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "client/new_record.h"
#include "client/queue.h"
#include "client/store.h"
#include "client/task_id.h"
#include "lictor/client.h"
#include "net/transport.h"

namespace lictor {

namespace client {

/// Keeps done/<id> of a cancelled task for `stay` in a queue without history, so that wait() sees
/// the cancellation. Thread safe. The destructor waits until all are deleted.
class CancelMarks {
 public:
  /// `store` must outlive this.
  explicit CancelMarks(Store& store) : store_(store) {}

  /// Deletes the entry at `key` unless it changes. Blocks for a read of its ModifyIndex; an entry
  /// that cannot be read now stays.
  void delete_later(std::string key);

  /// How long the entries stay; zero: delete_later() deletes at once. Set it before that call.
  Duration stay = std::chrono::seconds{2};

 private:
  struct Mark {
    Instant due;
    std::string key;
    std::uint64_t index;
  };
  void delete_all();
  void remove(const Mark& mark);

  Store& store_;
  std::mutex mutex_;
  std::deque<Mark> marks_;
  std::jthread thread_;  // while there are marks
};

}  // namespace client

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
