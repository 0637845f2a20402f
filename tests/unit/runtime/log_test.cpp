#include "runtime/log.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/host_name.h"
#include "base/unique_fd.h"
#include "exec/runner.h"
#include "runtime/fact_log.h"
#include "temporary_folder.h"

namespace lictor::runtime {
namespace {

using namespace std::chrono_literals;
using Kind = core::Fact::Kind;

// Captures standard error.
class Captured {
 public:
  Captured() : before_(dup(STDERR_FILENO)) {
    REQUIRE(pipe2(ends_.data(), O_CLOEXEC) == 0);
    REQUIRE(fcntl(ends_[0], F_SETFL, O_NONBLOCK) == 0);  // the other end blocks, as a daemon's does
    dup2(ends_[1], STDERR_FILENO);
    set_up_log(LogStyle::kText, Level::kInfo);
  }
  ~Captured() {
    dup2(before_, STDERR_FILENO);
    for (const int fd : {before_, ends_[0], ends_[1]}) close(fd);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  std::string read_all() {
    std::string text;
    for (std::string some = read_some(); !some.empty(); some = read_some()) text += some;
    return text;
  }
  // Reads one write's bytes at most, so that it shows which lines were written together.
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

// journalctl shows a time of its own, and filters by the level in the prefix (-p warning).
TEST_CASE("a line for the journal has no time of its own, and its level as a prefix") {
  Captured captured;
  struct stat error {};
  REQUIRE(fstat(STDERR_FILENO, &error) == 0);
  const std::string stream = std::to_string(error.st_dev) + ':' + std::to_string(error.st_ino);
  setenv("JOURNAL_STREAM", stream.c_str(), 1);
  set_up_log(LogStyle::kText, Level::kDebug);
  log(Level::kError, "denied", {{"queue", "q"}, {"error", "403 (Permission denied)"}});
  log(Level::kWarn, "failed");
  log(Level::kInfo, "done");
  log(Level::kDebug, "claimed");
  const std::string lines = captured.read_all();
  // Standard error goes elsewhere now.
  setenv("JOURNAL_STREAM", "1:1", 1);
  set_up_log(LogStyle::kText, Level::kInfo);
  log(Level::kInfo, "done");
  const std::string other = captured.read_all();
  unsetenv("JOURNAL_STREAM");
  set_up_log(LogStyle::kText, Level::kInfo);
  CHECK(lines ==
        "<3>denied queue=q error=\"403 (Permission denied)\"\n<4>failed\n<6>done\n<7>claimed\n");
  CHECK(other.ends_with(" info  done\n"));
}

TEST_CASE("the line of a start has type, attempt and host, and a program's has its pid") {
  Captured captured;
  set_up_log(LogStyle::kJson, Level::kInfo);
  core::Fact fact;
  fact.kind = Kind::kStarted;
  fact.key = "tasks/7";
  fact.attempt = 2;
  fact.token = 31;
  fact.text = "Mail";
  log_fact("q", fact);
  auto told = nlohmann::json::parse(captured.read_all());
  told.erase("time");
  nlohmann::json expected{{"level", "info"},   {"message", "started"}, {"queue", "q"},
                          {"task", "tasks/7"}, {"attempt", 2},         {"token", 31},
                          {"type", "Mail"},    {"host", host_name()}};
  CHECK(told == expected);

  exec::Attempt attempt{};
  attempt.queue = "q";
  attempt.task_key = "tasks/7";
  attempt.task_type = "Mail";
  attempt.number = 2;
  attempt.fencing_token = 31;
  log_started(attempt, 4711);
  told = nlohmann::json::parse(captured.read_all());
  told.erase("time");
  expected["pid"] = 4711;
  CHECK(told == expected);
  set_up_log(LogStyle::kText, Level::kInfo);
}

TEST_CASE("as JSON a count is a number, an id a text, and a level has one name in both styles") {
  Captured captured;
  log(Level::kWarn, "failed", {{"task", "7"}, {"attempt", "2"}});
  CHECK(captured.read_all().find(" warn  failed task=7 attempt=2\n") != std::string::npos);
  set_up_log(LogStyle::kJson, Level::kInfo);
  log(Level::kWarn, "failed", {{"task", "7"}, {"attempt", "2"}});
  const auto told = nlohmann::json::parse(captured.read_all());
  CHECK(told["level"] == "warn");
  CHECK(told["task"] == "7");
  CHECK(told["attempt"] == 2);
}

TEST_CASE("a field ends where its quotes end, whatever it holds") {
  Captured captured;
  for (const std::string value : {R"(a" level=error x=")", R"(a\" level=error x="b)", R"(\)",
                                  R"(\\")", "a\nb", "\xff \x01"}) {
    CAPTURE(value);
    log(Level::kInfo, "done", {{"task", value}, {"took", "5ms"}});
    const std::string line = captured.read_some();
    CHECK(lines_of(line) == 1);
    const std::size_t begin = line.find("task=") + 5, end = line.rfind(" took=5ms\n");
    REQUIRE(end != std::string::npos);
    const auto read = nlohmann::json::parse(line.substr(begin, end - begin), nullptr, false);
    CHECK(read == (value[0] == '\xff' ? "\ufffd \x01" : value));
  }
}

TEST_CASE("text from others cannot act on the terminal that shows the log") {
  const std::string evil = "\x1b[2J\u202e\u2066\u061c\u009b\u2028\x7f\r\nforged\xff";
  Captured captured;
  for (const LogStyle style : {LogStyle::kText, LogStyle::kJson}) {
    set_up_log(style, Level::kInfo);
    log(Level::kWarn, "message " + evil, {{"node", evil}});
    const std::string line = captured.read_all();
    CAPTURE(line);
    CHECK(std::count(line.begin(), line.end(), '\n') == 1);
    for (const char* part :
         {"\x1b", "\u202e", "\u2066", "\u061c", "\u009b", "\u2028", "\x7f", "\r", "\xff"}) {
      CHECK(line.find(part) == std::string::npos);
    }
    CHECK(line.find("\\u202e") != std::string::npos);
    if (style == LogStyle::kJson) CHECK(nlohmann::json::accept(line));
  }
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

TEST_CASE("an important line does not wait for a batch to end, nor does another thread's") {
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
  const std::string text = captured.read_all();
  CHECK(lines_of(text) == 3);
  CHECK(text.find("before") < text.find("long"));
  CHECK(text.find("long") < text.find("after"));
  CHECK(text.size() > 3 * value.size());
}

TEST_CASE("a reader that stops holds up nobody, and gets the number of lost lines") {
  Captured captured;
  constexpr long kLines = 3'000;
  long in_turn = 1;
  SUBCASE("one by one") {}
  SUBCASE("a few together") { in_turn = 7; }
  SUBCASE("more than fit into a piece") { in_turn = 100; }
  for (long i = 0; i < kLines;) {
    const LogBatch together;
    for (const long end = std::min(i + in_turn, kLines); i < end; ++i)
      log(Level::kInfo, "done", {{"task", std::to_string(i)}});
  }
  const long arrived = lines_of(captured.read_all());
  CHECK(arrived > 100);
  CHECK(arrived < kLines);
  log(Level::kInfo, "read again");
  const std::string after = captured.read_some();
  const std::string lost = "could not be written lines=" + std::to_string(kLines - arrived) + '\n';
  CHECK(after.find(lost) != std::string::npos);
  CHECK(after.ends_with("read again\n"));
  log(Level::kInfo, "told once");
  CHECK(lines_of(captured.read_some()) == 1);
}

TEST_CASE("a slow reader is not waited for all the time; each line is read or counted as lost") {
  Captured captured;
  constexpr std::size_t kLines = 20'000;  // a minute at its speed
  std::string text;
  std::atomic<bool> over = false;
  std::thread reader{[&] {
    for (; !over; std::this_thread::sleep_for(100ms)) text += captured.read_some();
  }};
  for (std::size_t i = 0; i < kLines; ++i) log(Level::kInfo, "done", {{"task", "abcdefghijklm"}});
  over = true;
  reader.join();
  text += captured.read_all();
  log(Level::kInfo, "read again");
  text += captured.read_all();
  std::size_t done = 0;
  std::size_t lost = 0;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t told = line.find(" lines=");
    if (told != std::string::npos) lost += std::stoul(line.substr(told + 7));
    done += line.find(" done ") != std::string::npos ? 1 : 0;
  }
  CHECK(lost > 0);
  CHECK(done + lost == kLines);
}

TEST_CASE("a journal that does not read holds up nobody, and gets the number of lost lines") {
  const unit::TemporaryFolder folder;
  const std::string path = folder / "journal";
  const UniqueFd reader{socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(bind(reader.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  const auto read_all = [&] {
    std::vector<std::string> entries;
    std::string text(65536, '\0');
    for (ssize_t n = 0; (n = recv(reader.get(), text.data(), text.size(), 0)) > 0;) {
      entries.push_back(text.substr(0, static_cast<std::size_t>(n)));
    }
    return entries;
  };
  set_up_log(LogStyle::kJournal, Level::kInfo, path);
  log(Level::kWarn, "odd", {{"task", "7\n8"}});
  const std::vector<std::string> first = read_all();
  REQUIRE(first.size() == 1);
  const std::string length{"\x03\0\0\0\0\0\0\0", 8};
  CHECK(first.front().starts_with("MESSAGE=odd task=\"7\\n8\"\nPRIORITY=4\n"));
  CHECK(first.front().ends_with("\nLICTOR_TASK\n" + length + "7\n8\n"));

  constexpr std::size_t kLines = 2'000;
  for (std::size_t i = 0; i < kLines; ++i) log(Level::kInfo, "done");
  const std::size_t arrived = read_all().size();
  CHECK(arrived > 0);
  CHECK(arrived < kLines);
  log(Level::kInfo, "read again");
  const std::vector<std::string> after = read_all();
  REQUIRE(after.size() == 2);
  CHECK(after[0].find("LICTOR_LINES=" + std::to_string(kLines - arrived) + '\n') !=
        std::string::npos);
  CHECK(after[1].starts_with("MESSAGE=read again\n"));
  // A long field is cut.
  log(Level::kInfo, "long", {{"error", std::string(1U << 20U, 'x')}});
  const std::vector<std::string> longer = read_all();
  REQUIRE(longer.size() == 1);
  CHECK(longer.front().ends_with("\nLICTOR_ERROR=" + std::string(2'000, 'x') + '\n'));
  set_up_log(LogStyle::kText, Level::kInfo);
}

TEST_CASE("a line that a full disk has cut is ended before the next one") {
  const unit::TemporaryFolder folder;
  const std::string file = folder.write("log", "");
  const int before = dup(STDERR_FILENO);
  const int log_fd = open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const auto ignored = signal(SIGXFSZ, SIG_IGN);
  dup2(log_fd, STDERR_FILENO);
  set_up_log(LogStyle::kJson, Level::kInfo);
  log(Level::kInfo, "first");
  const rlimit full{std::filesystem::file_size(file) + 10, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  for (int i = 0; i < 3; ++i) log(Level::kInfo, "lost");
  setrlimit(RLIMIT_FSIZE, &limit);
  log(Level::kInfo, "last");
  dup2(before, STDERR_FILENO);
  signal(SIGXFSZ, ignored);
  for (const int fd : {before, log_fd}) close(fd);

  std::ifstream lines{file};
  std::vector<std::string> told;
  for (std::string line; std::getline(lines, line);) told.push_back(line);
  REQUIRE(told.size() == 4);
  CHECK(told[1].size() == 10);
  CHECK(nlohmann::json::parse(told[2]).at("lines") == 3);
  CHECK(nlohmann::json::parse(told[3]).at("message") == "last");
}

TEST_CASE("a request that fails again and again gets a line a minute, another one its own") {
  TroubleLog troubles;
  const Instant now{1h};
  CHECK(troubles.is_news(now, {Kind::kStoreTrouble, {}, "listing the tasks: answered 429"}));
  CHECK_FALSE(troubles.is_news(now + 1s, {Kind::kStoreTrouble, {}, "listing the tasks: 503"}));
  CHECK_FALSE(troubles.is_news(now + 59s, {Kind::kStoreTrouble, {}, "listing the tasks: 429"}));
  CHECK(troubles.is_news(now + 1s, {Kind::kStoreTrouble, {}, "renewing the session: 429"}));
  const std::string refused = "listing the tasks: answered 403 (Permission denied)";
  CHECK(troubles.is_news(now + 2s, {Kind::kStoreTrouble, {}, refused}));
  CHECK_FALSE(troubles.is_news(now + 3s, {Kind::kStoreTrouble, {}, refused}));
  CHECK(troubles.is_news(now + 60s, {Kind::kStoreTrouble, {}, "listing the tasks: 429"}));
}

TEST_CASE("a fact about a task, or about no failed request, is always logged") {
  TroubleLog troubles;
  const Instant now{1h};
  for (int i = 0; i < 2; ++i) {
    CHECK(troubles.is_news(now, {Kind::kStoreTrouble, "tasks/a", "refused: too large"}));
    CHECK(troubles.is_news(now, {Kind::kLeaseLost, {}, "the same"}));
  }
}

}  // namespace
}  // namespace lictor::runtime
