#include "runtime/session_file.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "temporary_folder.h"

namespace lictor::runtime {
namespace {

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

}  // namespace
}  // namespace lictor::runtime
