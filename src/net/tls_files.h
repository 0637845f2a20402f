#pragma once

#include <string>

#include "lictor/result.h"
#include "net/transport.h"

namespace lictor::net {

/// Checks that the TLS files of `options` are readable and of the right kind. Returns the
/// certificates of ca_path, concatenated (empty without ca_path): OpenSSL would need hashed file
/// names there, while the consul command takes any file. Errors: kInvalid; the message names
/// setting and file.
[[nodiscard]] Result<std::string> load_tls_files(const Options& options);

}  // namespace lictor::net
