#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <curl/curl.h>

#include "exec/http_post.h"
#include "exec/lease_board.h"
#include "exec/runner.h"

namespace lictor::exec {

/// Posts each attempt's record to a URL (jobs.md). One thread for all requests; each has its own
/// connection, or one that is kept (HttpCall::keep_alive). The environment has no effect: no proxy,
/// no .netrc, none of Consul's variables.
///
///   start() --> arrivals_ --+
///                           +--the runner's thread--> libcurl --> on_exit
///   stop()  --> stops_ -----+
///
/// 2xx is done, with a JSON body as the result; 408, 425, 429, 5xx and a failure before the whole
/// head of the reply are retried; every other status is permanent. A failure before the request is
/// sent (name, connection, TLS, token file) counts as not started. stop() ends the request at once
/// and ignores its grace. The receiver may go on; it can compare fencing tokens.
class HttpRunner : public Runner {
 public:
  /// `slot`: the lease under which the attempts run. `board` must outlive the runner. Errors:
  /// kFailed, libcurl cannot be set up.
  [[nodiscard]] static Result<std::unique_ptr<HttpRunner>> create(LeaseBoard& board, HttpCall call,
                                                                  LeaseSlot slot = kNoLease);

  /// Stops all attempts.
  ~HttpRunner() override;
  HttpRunner(const HttpRunner&) = delete;
  HttpRunner& operator=(const HttpRunner&) = delete;

  /// Errors: kUnavailable, the lease has run out.
  [[nodiscard]] Result<void> start(Attempt attempt, Instant deadline,
                                   ExitCallback on_exit) override;
  void stop(AttemptId attempt, std::chrono::milliseconds grace) override;

 private:
  using Post = std::unique_ptr<HttpPost>;

  HttpRunner(LeaseBoard& board, HttpCall call, LeaseSlot slot, CurlMulti multi);

  void work();
  [[nodiscard]] bool take_orders();
  void send(Post arrival);
  void abort(AttemptId attempt);
  void collect();
  void finish(AttemptId attempt, Exit exit);

  LeaseBoard& board_;
  const HttpCall call_;
  const LeaseSlot first_slot_;
  SocketOwners owners_;  // only the thread uses it, until multi_ closes the remaining sockets
  const CurlMulti multi_;

  std::mutex mutex_;
  std::vector<Post> arrivals_;
  std::vector<AttemptId> stops_;
  bool closing_ = false;

  std::map<AttemptId, Post> posts_;  // only the thread uses it
  std::thread thread_;
};

}  // namespace lictor::exec
