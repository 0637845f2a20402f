#include <atomic>
#include <cstdio>
#include <future>
#include <memory>
#include <thread>

#include <doctest/doctest.h>

#include "base/read_file.h"
#include "net/token_source.h"
#include "test_server.h"
#include "unit/contains.h"
#include "unit/refusal.h"

using namespace lictor;
using namespace lictor::net;
using namespace std::chrono_literals;

namespace {

// The first token that is not `last`.
std::string next_token(TokenSource& source, const std::string& last) {
  const auto limit = std::chrono::steady_clock::now() + 10s;
  std::string token = source.current();
  while (token == last && std::chrono::steady_clock::now() < limit) {
    std::this_thread::yield();
    token = source.current();
  }
  return token;
}

}  // namespace

TEST_CASE("a token file is trimmed, wins over the token, and is read again when it changes") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("token", "  first\r\n");
  TokenSource source;
  std::atomic<int> news = 0;
  REQUIRE(source.open("fixed", file, 1ms, [&](const std::string& of) { news += of == file; }));
  CHECK(source.current() == "first");

  folder.write("token", "  other\r\n");
  CHECK(next_token(source, "first") == "other");

  folder.write("new", "third");
  REQUIRE(std::rename((folder / "new").c_str(), file.c_str()) == 0);
  CHECK(next_token(source, "other") == "third");
  const auto limit = std::chrono::steady_clock::now() + 10s;
  while (news < 2 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  CHECK(news == 2);
}

TEST_CASE("a token file that vanishes or is emptied leaves the last token in force") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("token", "first");
  const auto looks = std::make_shared<std::atomic<int>>(0);
  TokenSource source{[looks](const std::string& path) {
    ++*looks;
    return read_token_file(path);
  }};
  REQUIRE(source.open("", file, 1ms));
  // Until the file was looked at twice more: the first look may have begun before the change.
  const auto looked_at = [&] {
    const auto limit = std::chrono::steady_clock::now() + 10s;
    const int enough = *looks + 2;
    while (*looks < enough && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    return *looks >= enough;
  };
  folder.write("token", "");
  CHECK(looked_at());
  CHECK(source.current() == "first");
  REQUIRE(std::remove(file.c_str()) == 0);
  CHECK(source.current() == "first");
  folder.write("token", "second");
  CHECK(next_token(source, "first") == "second");
}

TEST_CASE("a file system that does not answer holds up neither requests nor the end") {
  struct SlowFile {
    std::promise<void> asked, answer;
    std::shared_future<void> answered{answer.get_future()};
    int reads = 0;
  };
  const auto slow = std::make_shared<SlowFile>();  // the thread may outlive this case
  const test::TemporaryFolder folder;
  auto source = std::make_unique<TokenSource>([slow](const std::string&) -> Result<std::string> {
    if (++slow->reads == 1) return "first";
    if (slow->reads == 2) slow->asked.set_value();
    const bool in_time = slow->answered.wait_for(10s) == std::future_status::ready;
    return in_time ? "second" : "late";  // as if somebody had waited for this
  });
  REQUIRE(source->open("", folder.write("token", "unread"), 1ms));
  CHECK(source->current() == "first");
  slow->asked.get_future().wait();
  CHECK(source->current() == "first");
  SUBCASE("its answer counts once it comes") {
    slow->answer.set_value();
    CHECK(next_token(*source, "first") == "second");
  }
  SUBCASE("it may never come") {
    const auto begin = std::chrono::steady_clock::now();
    source.reset();
    CHECK(std::chrono::steady_clock::now() - begin < 5s);
    slow->answer.set_value();
  }
}

TEST_CASE("an unusable token is refused without being shown") {
  const test::TemporaryFolder folder;
  const std::string split = folder.write("split", "hush\r\nX-Other: 1");
  const std::string empty = folder.write("empty", " \n");
  for (const auto& [token, file] : std::vector<std::pair<std::string, std::string>>{
           {"hush\nX-Other: 1", ""}, {"", split}, {"", empty}, {"", folder / "absent"}}) {
    TokenSource source;
    const Error error = refusal_of(source.open(token, file, 1ms));
    const bool is_missing = file == empty || file == folder / "absent";
    CHECK(error.code == (is_missing ? ErrorCode::kFailed : ErrorCode::kInvalid));
    CHECK_FALSE(contains(error.message, "hush"));
    CHECK(contains(error.message, file));
  }
}
