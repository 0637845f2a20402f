#pragma once

#include <string>

#include "lictor/result.h"
#include "net/transport.h"

namespace lictor::net {

/// Reads at most `limit` bytes. Errors: kInvalid, `what` and the path in the message.
[[nodiscard]] Result<std::string> read_small_file(const std::string& what, const std::string& path,
                                                  std::size_t limit = 4U << 20U);

/// Checks that the TLS files of `options` are there, readable and of their kind, and returns the
/// certificates of ca_path, one after the other (empty without ca_path). OpenSSL wants hashed names
/// in such a folder where the consul command takes any file, so it is read here.
/// Errors: kInvalid; the message names setting and file.
[[nodiscard]] Result<std::string> load_tls_files(const Options& options);

}  // namespace lictor::net
