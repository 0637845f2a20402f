#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>

#include <doctest/doctest.h>

#include "net/token_source.h"
#include "test_server.h"

using namespace lictor;
using namespace lictor::net;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("net");

TEST_CASE("a token file is trimmed, wins over the token, and is read again when it changes") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("token", "  first\r\n");
  struct stat info {};
  REQUIRE(::stat(file.c_str(), &info) == 0);
  const std::array<timespec, 2> written{info.st_atim, info.st_mtim};
  TokenSource source;
  REQUIRE(source.open("fixed", file, 1s));
  const Instant now{100s};
  CHECK(source.current(now) == "first");

  // Of the same size, within one step of the file system's clock.
  folder.write("token", "  other\r\n");
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), written.data(), 0) == 0);
  CHECK(source.current(now + 999ms) == "first");
  CHECK(source.current(now + 1s) == "other");

  folder.write("new", "third");
  REQUIRE(std::rename((folder / "new").c_str(), file.c_str()) == 0);
  CHECK(source.current(now + 2s) == "third");
}

TEST_CASE("a token file that vanishes or is emptied leaves the last token in force") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("token", "first");
  TokenSource source;
  REQUIRE(source.open("", file, 1s));
  folder.write("token", "");
  CHECK(source.current(Instant{10s}) == "first");
  REQUIRE(std::remove(file.c_str()) == 0);
  CHECK(source.current(Instant{20s}) == "first");
  folder.write("token", "second");
  CHECK(source.current(Instant{30s}) == "second");
}

TEST_CASE("an unusable token is refused without being shown") {
  const test::TemporaryFolder folder;
  const std::string split = folder.write("split", "hush\r\nX-Other: 1");
  const std::string empty = folder.write("empty", " \n");
  for (const auto& [token, file] : std::vector<std::pair<std::string, std::string>>{
           {"hush\nX-Other: 1", ""}, {"", split}, {"", empty}, {"", folder / "absent"}}) {
    TokenSource source;
    const auto opened = source.open(token, file, 1s);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ErrorCode::kInvalid);
    CHECK(opened.error().message.find("hush") == std::string::npos);
    CHECK(opened.error().message.find(file) != std::string::npos);
  }
}

TEST_CASE("a token that is set replaces the file's; one that cannot be a header is ignored") {
  const test::TemporaryFolder folder;
  TokenSource source;
  REQUIRE(source.open("", folder.write("token", "first"), 0s));
  source.set("second\n");
  CHECK(source.current(Instant{10s}) == "second");
  source.set("bad\r\nX-Other: 1");
  CHECK(source.current(Instant{20s}) == "second");
  source.set("");
  CHECK(source.current(Instant{30s}).empty());
}

TEST_SUITE_END();
