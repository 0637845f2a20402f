#include "runtime/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string>
#include <thread>

#include <doctest/doctest.h>

namespace lictor::runtime {
namespace {

// What goes to standard error meanwhile.
class Captured {
 public:
  Captured() : before_(dup(STDERR_FILENO)) {
    REQUIRE(pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    dup2(ends_[1], STDERR_FILENO);
    set_up_log(LogStyle::kText, Level::kInfo);
  }
  ~Captured() {
    dup2(before_, STDERR_FILENO);
    for (const int fd : {before_, ends_[0], ends_[1]}) close(fd);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  // One write's at most, so that it shows what was written together.
  std::string read_some() {
    std::string text(PIPE_BUF, '\0');
    const ssize_t n = read(ends_[0], text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    return text;
  }

 private:
  int before_;
  std::array<int, 2> ends_{};
};

long lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST_CASE("a line bears its fields, and is there at once") {
  Captured captured;
  log(Level::kInfo, "done", {{"task", "a b"}, {"token", ""}, {"took", "5ms"}});
  const std::string line = captured.read_some();
  CHECK(line.ends_with(" info  done task=\"a b\" took=5ms\n"));
  log(Level::kDebug, "unseen");
  CHECK(captured.read_some().empty());
}

TEST_CASE("the lines of a batch go out together, at its end") {
  Captured captured;
  {
    const LogBatch together;
    for (int i = 0; i < 3; ++i) log(Level::kInfo, "done");
    CHECK(captured.read_some().empty());
  }
  CHECK(lines_of(captured.read_some()) == 3);
  log(Level::kInfo, "after it");
  CHECK(lines_of(captured.read_some()) == 1);
}

TEST_CASE("what somebody is to look at does not wait for a batch to end, nor does another thread") {
  Captured captured;
  const LogBatch together;
  log(Level::kInfo, "done");
  SUBCASE("a warning") { log(Level::kWarn, "failed"); }
  SUBCASE("another thread") {
    std::thread{[] { log(Level::kInfo, "hello"); }}.join();
  }
  const std::string text = captured.read_some();
  CHECK(lines_of(text) == 2);
  CHECK(text.find("done") < text.find('\n'));  // in their order
}

TEST_CASE("a large batch goes out in pieces that nobody else's lines can come between") {
  Captured captured;
  constexpr long kLines = 1'000;
  long lines = 0;
  const auto read_all = [&] {
    for (std::string text = captured.read_some(); !text.empty(); text = captured.read_some()) {
      CHECK(text.ends_with('\n'));
      lines += lines_of(text);
    }
  };
  {
    const LogBatch together;
    for (long i = 0; i < kLines; ++i) {
      log(Level::kInfo, "done", {{"task", std::to_string(i)}});
      read_all();
    }
    CHECK(lines > kLines / 2);
    CHECK(lines < kLines);
  }
  read_all();
  CHECK(lines == kLines);
}

TEST_CASE("a line that is longer than a piece is written whole") {
  Captured captured;
  const std::string value(1'900, 'x');
  {
    const LogBatch together;
    log(Level::kInfo, "before");
    log(Level::kInfo, "long", {{"a", value}, {"b", value}, {"c", value}});
    log(Level::kInfo, "after");
  }
  std::string text;
  for (std::string some = captured.read_some(); !some.empty(); some = captured.read_some())
    text += some;
  CHECK(lines_of(text) == 3);
  CHECK(text.find("before") < text.find("long"));
  CHECK(text.find("long") < text.find("after"));
  CHECK(text.size() > 3 * value.size());
}

}  // namespace
}  // namespace lictor::runtime
