#pragma once

#include <memory>

#include "admin/router.h"

namespace lictor::admin {

/// HTTP over connected sockets, by cpp-httplib: the one place that knows the library. It reads
/// requests and writes answers; sockets and threads are ours, so that they are bounded and end when
/// we say so. Thread safe.
class HttpFace {
 public:
  /// `router` must outlive it.
  explicit HttpFace(const Router& router);
  ~HttpFace();
  HttpFace(const HttpFace&) = delete;
  HttpFace& operator=(const HttpFace&) = delete;

  /// Answers one request of the non-blocking socket `fd` and says that the connection is to be
  /// closed, which is left to the caller. Blocks: ten seconds at most for a client that does not
  /// send its request or does not take its answer, kMaxWait for an answer that waits. ::shutdown()
  /// of the socket ends it at once.
  void serve(int fd, bool trusted_listener);

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace lictor::admin
