#pragma once

#include <sys/stat.h>

#include <mutex>
#include <string>

#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::net {

/// The ACL token of the next request: fixed, or from a file that may be replaced at any time (Vault
/// agent does). Thread safe. Its errors never contain a token.
class TokenSource {
 public:
  /// `file` wins over `token`; both may be empty. The file is checked at most once in `check_every`.
  /// Errors: kInvalid, when the file cannot be read, is empty, or what it holds cannot be a header.
  [[nodiscard]] Result<void> open(const std::string& token, std::string file, Duration check_every);

  /// Empty: none. A file that has vanished or is unusable leaves the last token in force: it is
  /// most likely being replaced.
  [[nodiscard]] std::string current(Instant now);

  /// From now on `token`, and no longer the file. A text that cannot be a header's value is
  /// ignored.
  void set(const std::string& token);

 private:
  [[nodiscard]] Result<void> read_file();

  std::mutex mutex_;
  std::string token_;
  std::string file_;
  Duration check_every_{};
  Instant next_check_{};
  struct stat seen_ {};
};

}  // namespace lictor::net
