#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "lictor/result.h"
#include "net/transport.h"

namespace lictor::cli {

/// Asks the admin face of a member. Never shows it a token of Consul's.
class AdminClient {
 public:
  /// `addresses` are tried in turn, and waited for so long altogether. Errors: kInvalid.
  [[nodiscard]] static Result<AdminClient> open(
      std::vector<std::string> addresses,
      std::chrono::milliseconds limit = std::chrono::seconds{5});

  /// The body of the answer 200. Blocks, for the limit beyond `wait` at most. Errors: kUnavailable;
  /// kNotFound (404), kPermissionDenied (403), kFailed.
  [[nodiscard]] Result<std::string> get(std::string target,
                                        std::chrono::seconds wait = std::chrono::seconds{0});

 private:
  AdminClient(std::unique_ptr<net::Transport> transport, std::chrono::milliseconds limit)
      : transport_(std::move(transport)), limit_(limit) {}

  std::unique_ptr<net::Transport> transport_;
  std::chrono::milliseconds limit_;
};

}  // namespace lictor::cli
