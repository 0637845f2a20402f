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
  /// `addresses` are tried in turn. Errors: kInvalid.
  [[nodiscard]] static Result<AdminClient> open(std::vector<std::string> addresses);

  /// The body of the answer 200. Blocks, 5 s beyond `wait` at most. Errors: kUnavailable; kNotFound
  /// (404), kPermissionDenied (403), kFailed.
  [[nodiscard]] Result<std::string> get(std::string target,
                                        std::chrono::seconds wait = std::chrono::seconds{0});

 private:
  explicit AdminClient(std::unique_ptr<net::Transport> transport)
      : transport_(std::move(transport)) {}

  std::unique_ptr<net::Transport> transport_;
};

}  // namespace lictor::cli
