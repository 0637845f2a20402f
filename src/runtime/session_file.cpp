#include "runtime/session_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/errno_text.h"
#include "base/json_text.h"
#include "base/read_file.h"
#include "base/time_text.h"
#include "base/unique_fd.h"
#include "runtime/log.h"

namespace lictor::runtime {

using nlohmann::json;

namespace {

// Writes a file aside and renames it: a crash leaves the old file or the new one, never half of
// one. `make_value`: from the open file. Returns errno; 0: success.
template <class MakeValue>
int replace_file(const std::string& path, const MakeValue& make_value) {
  const std::string aside = path + ".new";
  const UniqueFd file{
      open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640)};
  if (!file) return errno;
  const std::string text = make_value(file.get()).dump() + "\n";
  errno = 0;
  const bool written =
      write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (written && std::rename(aside.c_str(), path.c_str()) == 0) return 0;
  const int error = errno != 0 ? errno : ENOSPC;  // only a part was written
  unlink(aside.c_str());
  return error;
}

// Null: there is no file, or its content is no JSON. `identity`: of the file, if asked for.
json read_json(const std::string& path, std::string* identity = nullptr) {
  constexpr std::size_t kMostBytes = 16384;
  const UniqueFd file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  const auto text = file ? read_up_to(file.get(), kMostBytes) : std::nullopt;
  if (identity != nullptr) *identity = file_identity(file.get());
  return json::parse(text.value_or("null"), nullptr, false);
}

std::string identity_of(const std::string& path) {
  const UniqueFd file{open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW)};
  return file_identity(file.get());
}

}  // namespace

SessionFile::SessionFile(const std::string& state_dir, const std::string& name, std::string node,
                         Duration ttl, Duration lock_delay)
    : path_(state_dir + "/session-" + name + ".json"),
      lock_(identity_of(state_dir + "/lock")),
      node_(std::move(node)),
      ttl_(ttl),
      lock_delay_(lock_delay) {}

// Every member must match. "file" names this very file on this boot, so a copy of state_dir resumes
// nothing. "lock" names the file that the daemon locks: if somebody has removed that, the daemon
// which saved this may live.
std::optional<std::string> SessionFile::load() const {
  std::string identity;
  const json saved = read_json(path_, &identity);
  std::string session = text_member(saved, "session");
  if (session.empty() || text_member(saved, "file") != identity ||
      text_member(saved, "lock") != lock_ || text_member(saved, "node") != node_ ||
      text_member(saved, "session_ttl") != format_duration(ttl_) ||
      text_member(saved, "lock_delay") != format_duration(lock_delay_)) {
    return std::nullopt;
  }
  return session;
}

void SessionFile::save(const std::string& session) const {
  if (session.empty()) {
    unlink(path_.c_str());
    return;
  }
  const int error = replace_file(path_, [&](int file) {
    return json{{"session", session},
                {"file", file_identity(file)},
                {"lock", lock_},
                {"node", node_},
                {"session_ttl", format_duration(ttl_)},
                {"lock_delay", format_duration(lock_delay_)}};
  });
  if (error == 0) return;
  log(Level::kWarn, "cannot keep the session's id; a restarted daemon cannot resume its session",
      {{"file", path_}, {"error", errno_text(error)}});
}

// A file of another number of partitions says nothing about the present locks.
std::vector<std::uint64_t> SessionFile::load_held(std::size_t partitions) const {
  std::vector<std::uint64_t> indexes(partitions);
  const json saved = read_json(held_path());
  if (!saved.is_array() || saved.size() != partitions) return indexes;
  for (std::size_t i = 0; i < partitions; ++i) {
    if (saved[i].is_number_unsigned()) indexes[i] = saved[i].get<std::uint64_t>();
  }
  return indexes;
}

void SessionFile::save_held(const std::vector<std::uint64_t>& indexes) const {
  const int error = replace_file(held_path(), [&](int) { return json(indexes); });
  if (error == 0) return;
  log(Level::kWarn, "cannot keep who leads; a restored snapshot could let this daemon lead at once",
      {{"file", held_path()}, {"error", errno_text(error)}});
}

}  // namespace lictor::runtime
