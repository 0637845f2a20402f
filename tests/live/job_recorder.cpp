// The job of the live tests: writes down when it begins, while it runs, and when it ends, and
// notices by a lock whether another job runs beside it.
//
//   job_recorder JOURNAL HOST LOCK
//
// LOCK is "queue" (no two jobs of this journal at once), "task" (no two of one task) or "none". The
// lock is a flock: its holder cannot be mistaken, since it ends with the last process that has it.
// Lines: EVENT TASK ATTEMPT TOKEN HOST PID NANOSECONDS BYTES VERSION, on CLOCK_MONOTONIC; BYTES is
// the size of the task on standard input.
//
// Parameters of the task: sleep, sleep_first (milliseconds, the latter instead the first time),
// exit (code), fail_until (fails before this attempt), child (starts a process that ignores TERM),
// print (text for standard output), version (noted), commit and result (handed over).

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>

namespace {

int journal_fd = -1;
std::size_t input_bytes = 0;
std::string task;
std::string host;

std::string variable(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

// A word without spaces.
std::string encoded(std::string_view text) {
  std::string word;
  for (const char c : text) {
    if (std::isgraph(static_cast<unsigned char>(c)) != 0 && c != '%' && c != '/') {
      word += c;
    } else {
      std::array<char, 4> hex{};
      std::snprintf(hex.data(), hex.size(), "%%%02X",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      word += hex.data();
    }
  }
  return word;
}

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void note(const char* event) {
  const std::string line = std::string{event} + ' ' + task + ' ' + variable("LICTOR_ATTEMPT", "0") +
                           ' ' + variable("LICTOR_FENCING_TOKEN", "0") + ' ' + host + ' ' +
                           std::to_string(getpid()) + ' ' + std::to_string(monotonic_ns()) + ' ' +
                           std::to_string(input_bytes) + ' ' +
                           encoded(variable("LICTOR_PARA_version", "-")) + '\n';
  if (write(journal_fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(70);
}

// Whether the journal has an earlier run. A job that its own daemon had to stop is no attempt, so
// among the runs of attempt 1 only the journal shows which is the first.
bool began_before(const std::string& journal) {
  std::ifstream lines{journal};
  const std::string begin = "begin " + task + ' ';
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, begin.size(), begin) == 0) return true;
  }
  return false;
}

void pause_ms(long span_ms) {
  timespec span{span_ms / 1000, (span_ms % 1000) * 1'000'000};
  while (nanosleep(&span, &span) != 0) {
  }
}

void hand_over(const char* parameter, const char* file) {
  const std::string text = variable(parameter);
  if (text.empty()) return;
  FILE* out = std::fopen(variable(file).c_str(), "w");
  if (out == nullptr) _exit(70);
  std::fputs(text.c_str(), out);
  std::fclose(out);
}

void start_child() {
  if (fork() != 0) return;
  signal(SIGTERM, SIG_IGN);
  note("child");
  while (true) pause_ms(1000);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  const std::string journal = argv[1];
  host = argv[2];
  const std::string lock = argv[3];
  task = encoded(variable("LICTOR_TASK_ID"));
  std::array<char, 65'536> buffer{};
  for (ssize_t n = 0; (n = read(0, buffer.data(), buffer.size())) > 0;) {
    input_bytes += static_cast<std::size_t>(n);
  }
  // Open for every child, on purpose: the job lasts as long as any of them.
  journal_fd = open(journal.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (journal_fd < 0) return 66;
  if (lock != "none") {
    const std::string file = journal + ".lock" + (lock == "task" ? "-" + task.substr(0, 100) : "");
    const int fd = open(file.c_str(), O_RDWR | O_CREAT, 0644);
    if (fd < 0) return 66;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) note("overlap");
  }
  const long attempt = std::atol(variable("LICTOR_ATTEMPT").c_str());
  const bool is_first = attempt <= 1 && !began_before(journal);
  note("begin");
  if (!variable("LICTOR_PARA_child").empty()) start_child();
  const std::string text = variable("LICTOR_PARA_print");
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);

  std::string span = variable("LICTOR_PARA_sleep", "0");
  if (is_first) span = variable("LICTOR_PARA_sleep_first", span.c_str());
  const std::int64_t until = monotonic_ns() + std::atoll(span.c_str()) * 1'000'000;
  while (monotonic_ns() < until) {
    const std::int64_t left_ms = (until - monotonic_ns()) / 1'000'000;
    pause_ms(static_cast<long>(left_ms < 20 ? (left_ms > 0 ? left_ms : 1) : 20));
    note("beat");
  }
  hand_over("LICTOR_PARA_commit", "LICTOR_COMMIT");
  hand_over("LICTOR_PARA_result", "LICTOR_RESULT");
  note("end");
  if (attempt < std::atol(variable("LICTOR_PARA_fail_until").c_str())) return 1;
  return std::atoi(variable("LICTOR_PARA_exit", "0").c_str());
}
