// Requests of the http executor over TLS: each on a connection of its own, and on kept ones.

#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>

#include "base/text.h"
#include "bench.h"
#include "exec/http_runner.h"

namespace lictor::bench {
namespace {

constexpr std::size_t kAtOnce = 8;

// A receiver in a process of its own, by Node.
class Receiver {
 public:
  Receiver() {
    key_ = folder_.file("key.pem");
    certificate_ = folder_.file("cert.pem");
    const std::string made =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
        "/CN=localhost -addext subjectAltName=DNS:localhost -keyout '" +
        key_ + "' -out '" + certificate_ + "' >/dev/null 2>&1";
    require(std::system(made.c_str()) == 0, "openssl makes no certificate");
    const std::string log = folder_.file("port");
    process_.emplace(
        std::vector<std::string>{"node", LICTOR_BENCH_FOLDER "/receiver.mjs", key_, certificate_},
        log);
    std::optional<int> port;
    require(live::eventually([&] {
              std::string line;
              std::getline(std::ifstream{log}, line);
              port = to_number<int>(line);
              return port.has_value();
            }),
            "the receiver does not start");
    url_ = "https://localhost:" + std::to_string(*port) + "/notify";
  }
  [[nodiscard]] exec::HttpCall call() const {
    exec::HttpCall call{exec::parse_http_target(url_).value(), {}, {}, {}};
    call.ca_file = certificate_;
    return call;
  }

 private:
  live::TemporaryFolder folder_;
  std::string key_, certificate_, url_;
  std::optional<live::Process> process_;
};

// Requests a second, kAtOnce at a time.
double rate_of(exec::HttpCall call, std::size_t count) {
  auto board = exec::LeaseBoard::create(1);
  require(board.has_value(), "no memory to share");
  auto runner = exec::HttpRunner::create(*board, std::move(call));
  require(runner.has_value(), "no runner");
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t running = 0, failed = 0;
  const auto on_exit = [&](const exec::Exit& exit) {
    const std::lock_guard lock{mutex};
    --running;
    if (exit.ending != exec::Ending::kDone) ++failed;
    ended.notify_one();
  };
  const std::int64_t begin = live::monotonic_ns();
  std::unique_lock lock{mutex};
  for (std::size_t i = 0; i < count; ++i) {
    ended.wait(lock, [&] { return running < kAtOnce; });
    ++running;
    lock.unlock();
    exec::Attempt attempt;
    attempt.id = AttemptId{i + 1};
    attempt.task_id = "bench-" + std::to_string(i);
    attempt.task_type = "Notify";
    attempt.record = std::make_shared<const std::string>(task_record(i, "Notify"));
    require((*runner)->start(std::move(attempt), Instant::max(), on_exit).has_value(),
            "cannot start");
    lock.lock();
  }
  ended.wait(lock, [&] { return running == 0; });
  require(failed == 0, "a request failed");
  return static_cast<double>(count) / live::seconds_between(begin, live::monotonic_ns());
}

}  // namespace

void measure_requests(Bench& bench) {
  const std::size_t count = bench.sizes().requests;
  const Receiver receiver;
  std::vector<double> kept, fresh;
  for (std::size_t run = 0; run < bench.sizes().runs; ++run) {
    bench.tell("requests, run " + std::to_string(run + 1));
    fresh.push_back(rate_of(receiver.call(), count));
    exec::HttpCall call = receiver.call();
    call.keep_alive = 20s;
    kept.push_back(rate_of(std::move(call), count));
  }
  bench.add({"http over TLS, " + std::to_string(count) + ", 8 at a time, keep_alive", "requests/s",
             median(kept), median(fresh), "keep_alive off", Row::Wanted::kRatioAtLeast, 5});
}

}  // namespace lictor::bench
