#include "runtime/session_file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "temporary_folder.h"

namespace lictor::runtime {

using namespace std::chrono_literals;

TEST_CASE("a session is taken up with the timing that it was saved with; unreadable is none") {
  const unit::TemporaryFolder folder;
  const SessionFile file{folder.path(), "q", "a", 15s, 30s};
  CHECK_FALSE(file.load());
  file.save("5e55-1");
  CHECK(file.load() == "5e55-1");
  const SessionFile other{folder.path(), "q", "a", 15s, 10s};
  CHECK_FALSE(other.load());
  // A copy of the folder, as of a cloned host or container, is another daemon's.
  const std::string path = folder / "session-q.json";
  std::filesystem::copy_file(path, path + ".copy");
  std::filesystem::rename(path + ".copy", path);
  CHECK_FALSE(file.load());
  file.save("5e55-1");
  CHECK(file.load() == "5e55-1");
  file.save("");
  CHECK_FALSE(file.load());
  std::filesystem::create_directory(folder / "session-q.json");
  CHECK_FALSE(file.load());
}

TEST_CASE("a session is not taken up by a daemon that holds another file as its lock") {
  const unit::TemporaryFolder folder;
  std::ofstream{folder / "lock"};
  const SessionFile first{folder.path(), "q", "a", 15s, 30s};
  first.save("5e55-1");
  CHECK(SessionFile{folder.path(), "q", "a", 15s, 30s}.load() == "5e55-1");  // after a restart
  // A user removes the lock of a running daemon, and starts another daemon.
  std::filesystem::rename(folder / "lock", folder / "removed");
  std::ofstream{folder / "lock"};
  const SessionFile second{folder.path(), "q", "a", 15s, 30s};
  CHECK_FALSE(second.load());
  second.save("5e55-2");
  CHECK(second.load() == "5e55-2");
  first.save("5e55-3");  // the first one's next session
  CHECK_FALSE(second.load());
}

TEST_CASE("the indexes at which locks were held outlive the session, for as many partitions") {
  const unit::TemporaryFolder folder;
  const SessionFile file{folder.path(), "q", "a", 15s, 30s};
  CHECK(file.load_held(2) == std::vector<std::uint64_t>{0, 0});
  file.save_held({7, 18446744073709551615ULL});
  file.save("5e55-1");
  file.save("");
  CHECK(file.load_held(2) == std::vector<std::uint64_t>{7, 18446744073709551615ULL});
  CHECK(file.load_held(1) == std::vector<std::uint64_t>{0});
  for (const char* nonsense : {"", "{}", "[-1,\"x\"]", "[1,"}) {
    std::ofstream{folder / "session-q.json.held"} << nonsense;
    CHECK(file.load_held(2) == std::vector<std::uint64_t>{0, 0});
  }
}

}  // namespace lictor::runtime
