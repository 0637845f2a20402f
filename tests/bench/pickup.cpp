#include <algorithm>
#include <memory>
#include <stdexcept>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "bench.h"
#include "journal.h"

namespace lictor::bench {

using nlohmann::json;

Latency summary(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  if (ms.empty()) throw std::runtime_error{"nothing was measured"};
  return {ms[ms.size() / 2], ms[std::min(ms.size() - 1, ms.size() * 99 / 100)]};
}

Latency pickup(const live::ConsulAgent& consul, std::size_t count, bool exec) {
  const Worker worker{consul, "{}"};
  const live::Journal journal{worker.journal()};
  live::Kv watcher{consul.address()};
  std::vector<double> ms;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = "lictor/default/tasks/pick-" + std::to_string(i);
    const std::string record = task_record(i, exec ? "Program" : "Mark");
    const std::int64_t begin = live::monotonic_ns();
    live::Kv{consul.address()}.put(key, record);
    if (!live::eventually([&] { return !watcher.has(key); })) {
      throw std::runtime_error{"task " + key + " was not done"};
    }
    std::int64_t began = 0;
    if (exec) {
      const auto run = journal.run("bench-" + std::to_string(i));
      if (run) began = run->begin_ns;
    } else {
      const auto marks = worker.marks();
      if (!marks.empty()) began = marks.back();
    }
    if (began < begin) throw std::runtime_error{"the begin of " + key + " was not noted"};
    ms.push_back(static_cast<double>(began - begin) / 1e6);
  }
  return summary(std::move(ms));
}

Latency consul_wakeup_and_claim(const live::ConsulAgent& consul, std::size_t count) {
  live::Kv writer{consul.address()};
  live::Kv reader{consul.address()};
  const std::string session = writer.create_session("bench", "1s");
  if (!writer.acquire("bench/leader", session, "x")) throw std::runtime_error{"cannot acquire"};
  std::uint64_t index = writer.set("bench/tasks/", "");
  std::vector<double> ms;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = "bench/tasks/" + std::to_string(i);
    const std::string record = task_record(i, "Noop");
    std::int64_t woken = 0;
    std::thread waiting{[&] {
      static_cast<void>(reader.request(
          "GET", "/v1/kv/bench/tasks/?recurse&wait=30s&index=" + std::to_string(index)));
      woken = live::monotonic_ns();
    }};
    // The query must be there before the write; Consul tells nobody whether it is.
    std::this_thread::sleep_for(std::chrono::milliseconds{3});
    const std::int64_t begin = live::monotonic_ns();
    live::Kv{consul.address()}.put(key, record);
    waiting.join();
    const std::uint64_t modified = writer.get(key)->modify_index;

    const std::int64_t claim_begin = live::monotonic_ns();
    const json claim = json::array(
        {{{"KV", {{"Verb", "check-session"}, {"Key", "bench/leader"}, {"Session", session}}}},
         {{"KV",
           {{"Verb", "cas"},
            {"Key", key},
            {"Index", modified},
            {"Value", base64_encode(record)}}}}});
    if (writer.request("PUT", "/v1/txn", claim.dump()).status != 200) {
      throw std::runtime_error{"the claim failed"};
    }
    const std::int64_t claimed = live::monotonic_ns();
    ms.push_back(static_cast<double>((woken - begin) + (claimed - claim_begin)) / 1e6);
    writer.remove(key);
    index = std::max(modified, writer.set("bench/tasks/", std::to_string(i)));
  }
  writer.destroy_session(session);
  return summary(std::move(ms));
}

}  // namespace lictor::bench
