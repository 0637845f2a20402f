#pragma once

#include <string>

#include "lictor/result.h"
#include "net/transport.h"

namespace lictor::net {

/// Checks that ca_file, client_cert and client_key of `options` are readable and of the right kind.
/// Errors: kInvalid; the message names setting and file.
[[nodiscard]] Result<void> check_tls_files(const Options& options);

/// The certificates in a folder, concatenated: OpenSSL would need hashed file names there, while
/// the consul command takes any file. Errors: as above; kFailed, the folder cannot be read.
[[nodiscard]] Result<std::string> read_ca_path(const std::string& folder);

}  // namespace lictor::net
