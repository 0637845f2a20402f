#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/http.h"

namespace lictor::admin {

/// Who may ask what. A browser on this host can be made to send requests here by any page that it
/// shows, so that listening on the loopback alone is no protection: a request is refused whose Host
/// is not a name of ours (DNS rebinding), and one that a page of another origin makes.
class Guard {
 public:
  struct Options {
    /// Names of ours beside the loopback's and the connection's own address: of the node, of the
    /// host, of the addresses that are listened on. Without a port.
    std::vector<std::string> hosts;
    /// What a change must bring as bearer token where the listener is not trusted; empty: there is
    /// none, and such changes are refused. Thread safe.
    std::function<std::string()> token;
  };

  explicit Guard(Options options) : options_(std::move(options)) {}

  /// The refusal; nothing: it may pass. Whatever is neither GET nor HEAD changes something. Thread
  /// safe.
  [[nodiscard]] std::optional<Response> refuse(const Request& request) const;

 private:
  [[nodiscard]] bool is_ours(std::string_view host, const Request& request) const;
  [[nodiscard]] std::optional<Response> refuse_change(const Request& request) const;

  Options options_;
};

}  // namespace lictor::admin
