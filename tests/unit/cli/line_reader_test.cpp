#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "cli/input.h"
#include "unit/refusal.h"

namespace lictor::cli {
namespace {

struct Pipe {
  std::array<int, 2> ends{};
  Pipe() { REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0); }
  ~Pipe() {
    close(ends[0]);
    end();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void say(std::string_view text) {
    REQUIRE(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void end() {
    if (ends[1] >= 0) close(ends[1]);
    ends[1] = -1;
  }
};

TEST_CASE("line numbers are those of an editor") {
  Pipe pipe;
  pipe.say("\xef\xbb\xbf{1}\n\n  \n{2}\r\n{3}");
  pipe.end();
  LineReader lines{pipe.ends[0]};
  CHECK(lines.next() == "{1}");
  CHECK(lines.number() == 1);
  CHECK(lines.next() == "{2}");
  CHECK(lines.number() == 4);
  CHECK(lines.next() == "{3}");
  CHECK(lines.number() == 5);
  CHECK_FALSE(lines.next());
  CHECK(lines.error() == 0);
}

TEST_CASE("a line may be longer than one read") {
  const std::string path = "line_reader_test";
  const std::string longer(200'000, 'x');
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  REQUIRE(file >= 0);
  unlink(path.c_str());
  const std::string text = "a\n" + longer + "\nb\n";
  REQUIRE(write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  lseek(file, 0, SEEK_SET);
  LineReader lines{file};
  CHECK(lines.next() == "a");
  CHECK(lines.next() == longer);
  CHECK(lines.next() == "b");
  CHECK_FALSE(lines.next());
  close(file);
}

TEST_CASE("a pause of the input calls on_pause once") {
  Pipe pipe;
  int pauses = 0;
  LineReader lines{pipe.ends[0], [&] {
                     ++pauses;
                     if (pauses == 1) pipe.say("{2}\n{3");
                     if (pauses == 2) pipe.say("}\n");
                     if (pauses == 3) pipe.end();
                     return true;
                   }};
  pipe.say("{1}\n");
  CHECK(lines.next() == "{1}");
  CHECK(pauses == 0);
  CHECK(lines.next() == "{2}");
  CHECK(pauses == 1);
  CHECK(lines.next() == "{3}");
  CHECK(pauses == 2);
  CHECK_FALSE(lines.next());
  CHECK(pauses == 3);
}

TEST_CASE("on_pause comes in time although lines keep coming") {
  using namespace std::chrono_literals;
  Pipe pipe;
  std::atomic<int> pauses = 0;
  LineReader lines{pipe.ends[0], [&] {
                     ++pauses;
                     return true;
                   }};
  std::thread producer{[&] {
    for (int i = 0; i < 1'000 && pauses < 3; ++i) {
      pipe.say("{}\n");
      std::this_thread::sleep_for(40ms);
    }
    pipe.end();
  }};
  while (lines.next()) {
  }
  producer.join();
  CHECK(pauses >= 3);
}

TEST_CASE("a false from on_pause ends the input at once") {
  Pipe pipe;
  LineReader lines{pipe.ends[0], [] { return false; }};
  pipe.say("{1}\n{2");
  CHECK(lines.next() == "{1}");
  CHECK_FALSE(lines.next());
  CHECK(lines.error() == 0);
}

TEST_CASE("stop_fd ends the input after the whole lines that were read") {
  Pipe pipe;
  Pipe stop;
  LineReader lines{pipe.ends[0], {}, stop.ends[0]};
  pipe.say("{1}\n{2}\n{3");
  CHECK(lines.next() == "{1}");
  stop.say("x");
  CHECK(lines.next() == "{2}");
  CHECK_FALSE(lines.stopped());
  CHECK_FALSE(lines.next());
  CHECK(lines.stopped());
  CHECK(lines.number() == 2);
  CHECK(lines.error() == 0);
}

TEST_CASE("the end of the input counts before a later stop") {
  Pipe pipe;
  Pipe stop;
  LineReader lines{pipe.ends[0], {}, stop.ends[0]};
  pipe.say("{1}\n");
  pipe.end();
  CHECK(lines.next() == "{1}");
  CHECK_FALSE(lines.next());
  stop.say("x");
  CHECK_FALSE(lines.next());
  CHECK_FALSE(lines.stopped());
}

TEST_CASE("the error for a file of an argument that cannot be read names the flag and the file") {
  for (const std::string name : {"/", "/nonexistent"}) {
    const auto read = read_argument("--para-json", "@" + name);
    CHECK(refusal_of(read, ErrorCode::kInvalid)
              .starts_with("--para-json: cannot read " + name + ": "));
  }
}

TEST_CASE("a read error is no end of input") {
  const int folder = open(".", O_RDONLY | O_CLOEXEC);
  LineReader lines{folder};
  CHECK_FALSE(lines.next());
  CHECK(lines.error() == EISDIR);
  close(folder);
}

}  // namespace
}  // namespace lictor::cli
