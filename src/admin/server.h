#pragma once

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "admin/connection.h"
#include "admin/listener.h"
#include "base/unique_fd.h"

namespace lictor::admin {

/// Serves the admin face on threads of its own: one that accepts, and one for each connection, up
/// to kMaxConnections; who comes then is told 503.
class Server {
 public:
  static constexpr std::size_t kMaxConnections = 32;

  /// Begins at once. `router` must outlive it. Errors: kFailed, out of file descriptors.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(std::vector<Listener> listeners,
                                                             const Router& router);
  /// Has the handlers answer, which gets them a second, then cuts all connections.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  struct Slot {
    std::thread thread;
    int fd = -1;  // -1: free, and the thread is at its end
  };

  Server(std::vector<Listener> listeners, const Router& router, UniqueFd wake);
  void run();
  void accept_from(const Listener& listener);
  void take(UniqueFd connection, bool trusted);
  void shut_down(int how);

  const std::vector<Listener> listeners_;
  HttpFace face_;
  const UniqueFd wake_;
  std::mutex mutex_;               // for the slots' descriptors
  std::condition_variable ended_;  // one of them has become free
  std::array<Slot, kMaxConnections> slots_;
  std::thread thread_;
};

}  // namespace lictor::admin
