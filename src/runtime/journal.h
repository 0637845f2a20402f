#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace lictor::runtime {

/// Sends entries to systemd's journal, as sd_journal_sendv(3) does, but never waits for it.
/// Thread-safe.
class Journal {
 public:
  /// `socket`: where journald listens.
  explicit Journal(std::string socket = "/run/systemd/journal/socket");

  enum class Sent { kSent, kFull, kAbsent };

  /// `fields`: names and values. kFull: the journal does not read now. kAbsent: there is none.
  [[nodiscard]] Sent send(const std::vector<std::pair<std::string, std::string>>& fields) const;

 private:
  const std::string path_;
  const UniqueFd socket_;
};

}  // namespace lictor::runtime
