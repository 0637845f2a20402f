#pragma once

#include <functional>
#include <string>
#include <vector>

#include "admin/address.h"
#include "base/unique_fd.h"
#include "lictor/result.h"

namespace lictor::admin {

/// A socket that is listened on; a unix socket's file goes with it.
struct Listener {
  Listener() = default;
  Listener(Listener&&) = default;
  Listener& operator=(Listener&&) = default;
  ~Listener();

  UniqueFd fd;
  std::string url;       ///< to ask it by: "http://127.0.0.1:8642", "unix:///run/lictor/admin.sock"
  std::string host;      ///< name or address that it was configured with; empty: a unix socket
  bool trusted = false;  ///< loopback or a unix socket
  std::string unix_path;
};

/// Where to listen, and what to do when that is taken.
struct ListenOptions {
  std::vector<std::string> addresses;  ///< as parse_listen_address() takes them
  /// Nobody chose them: where a port is taken, by another daemon of this host say, a free one does.
  bool any_port_will_do = false;
  /// What an address that stands for all is called for others: 0.0.0.0 is no place to ask.
  std::string host_name;
  std::function<void(const std::string&)> on_warning;
};

/// Binds each. Resolves names, and blocks for it. Errors: kInvalid, kPermissionDenied, kConflict
/// (in use), kFailed.
[[nodiscard]] Result<std::vector<Listener>> open_listeners(const ListenOptions& options);

}  // namespace lictor::admin
