#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lictor/result.h"
#include "net/transport.h"

namespace lictor::cli {

/// Asks the admin face of a member. Never sends a Consul token.
class AdminClient {
 public:
  /// Tries `addresses` in turn, for `limit` altogether. `token`: of the admin faces
  /// (admin.token_file); empty: none is sent. Errors: kInvalid.
  [[nodiscard]] static Result<AdminClient> open(
      std::vector<std::string> addresses, std::chrono::milliseconds limit = std::chrono::seconds{5},
      std::string token = {});

  /// The body of a 200 answer. Blocks, for `wait` and the limit at most. Errors: kUnavailable, no
  /// connection; kTimeout, a connection but no answer; kNotFound (404), kPermissionDenied (401,
  /// 403), kFailed.
  [[nodiscard]] Result<std::string> get(std::string target,
                                        std::chrono::seconds wait = std::chrono::seconds{0});

 private:
  AdminClient(std::unique_ptr<net::Transport> transport, std::chrono::milliseconds limit,
              std::string token)
      : transport_(std::move(transport)), limit_(limit), token_(std::move(token)) {}

  std::unique_ptr<net::Transport> transport_;
  std::chrono::milliseconds limit_;
  std::string token_;
};

/// Calls `ask` with each number below `count`, several at once, from threads, and waits for all.
void ask_each(std::size_t count, const std::function<void(std::size_t)>& ask);

}  // namespace lictor::cli
