#pragma once

// Secrets that change while the daemon runs. Vault's agent replaces a token file at any time, and a
// folder of CAs changes when a certificate is renewed; neither may need a restart.
//
//   open(): the file is read --> a thread reads it every check_every --usable--------> current()
//                                     ^                             --unusable, gone-> as before
//                                     +--------------------------------------------------+
//
// No caller of current() waits for a file, since current() is called for each request. A file
// system that is dead holds only the thread, which is detached and keeps its own state alive.

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/read_file.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::net {

/// A thread that no signal interrupts: signals are for the main thread, and nothing needs the
/// SIGPIPE of a closed connection.
[[nodiscard]] std::thread start_thread(std::function<void()> run);

/// The ACL token of the next request, fixed or from a file, or the certificates of a folder. Thread
/// safe except for open(). Errors never contain a token.
class TokenSource {
 public:
  using Read = std::function<Result<std::string>(const std::string& path)>;
  /// `trouble`: why the file has been unusable for several readings; empty: it has another token,
  /// or is usable again.
  using OnChange = std::function<void(const std::string& file, const std::string& trouble)>;

  explicit TokenSource(Read read = read_token_file);
  /// Does not wait for a read under way: a dead file system never ends it.
  ~TokenSource();
  TokenSource(const TokenSource&) = delete;
  TokenSource& operator=(const TokenSource&) = delete;

  /// `file` wins over `token`; both may be empty. Reads the file, and blocks for that. Then a
  /// thread reads it every `check_every`, and calls `on_change` without a lock.
  /// Errors: kInvalid, the file is unreadable or empty, or its content cannot be a header.
  [[nodiscard]] Result<void> open(const std::string& token, std::string file, Duration check_every,
                                  OnChange on_change = {});

  /// The token; empty: none. Does not block. If a file has vanished or is unusable, the last token
  /// stays in force: the file is most likely being replaced.
  [[nodiscard]] std::string current() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with the thread, which may outlive this
};

}  // namespace lictor::net
