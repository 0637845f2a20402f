#include "lictor/worker.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "bench.h"

namespace lictor::bench {

using nlohmann::json;

std::string task_record(std::size_t i, const std::string& type) {
  return json{
      {"taskId", "bench-" + std::to_string(i)},
      {"taskTime", std::to_string(1'445'599'887 + i)},
      {"taskTaken", "false"},
      {"taskType", type},
      {"taskPara",
       {{"instanceId", "db7"}, {"initSize", "8000"}, {"maxSize", "100000"}, {"stepSize", "2000"}}}}
      .dump();
}

void load(live::Kv& kv, const std::string& prefix, std::size_t count, const std::string& type) {
  json operations = json::array();
  for (std::size_t i = 0; i < count; ++i) {
    std::array<char, 24> name{};
    std::snprintf(name.data(), name.size(), "%08zu", i);
    operations.push_back({{"KV",
                           {{"Verb", "set"},
                            {"Key", prefix + name.data()},
                            {"Value", base64_encode(task_record(i, type))}}}});
    if (operations.size() < 64 && i + 1 < count) continue;
    if (kv.request("PUT", "/v1/txn", operations.dump()).status != 200) {
      throw std::runtime_error{"cannot write the tasks"};
    }
    operations.clear();
  }
}

Worker::Worker(const live::ConsulAgent& consul, const std::string& queue) {
  json settings = json::parse(queue);
  settings["name"] = "default";
  settings["executors"]["Program"] = {
      {"exec", {LICTOR_JOB_RECORDER, folder_.file("journal"), "bench", "none"}}};
  live::write_text(folder_.file("lictor.json"),
                   json{{"state_dir", folder_.file("state")},
                        {"log", {{"level", "warn"}}},
                        {"consul", {{"addresses", {consul.address()}}, {"register", false}}},
                        {"queues", {settings}}}
                       .dump(2));
  process_ = std::make_unique<live::Process>(
      std::vector<std::string>{"/proc/self/exe", "run", "--config", folder_.file("lictor.json")},
      folder_.file("log"),
      std::map<std::string, std::string>{{"BENCH_MARKS", folder_.file("marks")}});
  live::Kv kv{consul.address()};
  const bool leads = live::eventually([&] {
    const auto leader = kv.get("lictor/default/leader");
    return leader && !leader->session.empty();
  });
  if (!leads)
    throw std::runtime_error{"the worker does not lead:\n" + live::read_text(folder_.file("log"))};
}

std::vector<std::int64_t> Worker::marks() const {
  std::ifstream file{folder_.file("marks"), std::ios::binary};
  std::vector<std::int64_t> marks;
  for (std::int64_t mark = 0; file.read(reinterpret_cast<char*>(&mark), sizeof mark);) {
    marks.push_back(mark);
  }
  return marks;
}

int run_worker(int argc, char** argv) {
  lictor::Worker worker;
  worker.add("Noop", [](const Context&) { return JobResult::done(); });
  const char* path = std::getenv("BENCH_MARKS");
  const int fd = path == nullptr ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  worker.add("Mark", [fd](const Context&) {
    const std::int64_t now = live::monotonic_ns();
    return write(fd, &now, sizeof now) == sizeof now
               ? JobResult::done()
               : JobResult::permanent("cannot write the mark");
  });
  return worker.main(argc, argv);
}

}  // namespace lictor::bench
