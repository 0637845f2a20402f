#include <atomic>
#include <cstdlib>
#include <functional>
#include <future>
#include <latch>

#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "bench.h"
#include "wire/txn.h"

namespace lictor::bench {
namespace {

wire::Txn fenced(const RawLock& lock) {
  wire::Txn txn;
  txn.verb("check-session", lock.key()).session(lock.session());
  return txn;
}

}  // namespace

std::size_t operations_taken(const live::ConsulAgent& consul) {
  wire::Txn txn;
  for (std::size_t i = 0; i <= limits::kLeastOperations; ++i) txn.verb("get-tree", "raw/none/");
  live::Kv kv{consul.address()};
  const int status = kv.request("PUT", "/v1/txn", std::move(txn).body()).status;
  require(status == 200 || status == 413,
          "Consul does not say how many operations a transaction takes");
  return status == 200 ? limits::kMostOperations : limits::kLeastOperations;
}

double in_parallel(const live::ConsulAgent& consul, std::size_t connections,
                   const std::function<void(live::Kv&)>& part) {
  std::latch ready{static_cast<std::ptrdiff_t>(connections) + 1};
  std::vector<std::future<void>> parts;
  for (std::size_t i = 0; i < connections; ++i) {
    parts.push_back(std::async(std::launch::async, [&] {
      live::Kv kv{consul.address()};
      static_cast<void>(kv.request("GET", "/v1/kv/raw/leader"));  // opens the connection
      ready.arrive_and_wait();
      part(kv);
    }));
  }
  ready.arrive_and_wait();
  const std::int64_t begin = live::monotonic_ns();
  for (auto& each : parts) each.get();
  return live::seconds_between(begin, live::monotonic_ns());
}

RawLock::RawLock(const live::ConsulAgent& consul) : kv_(consul.address()) {
  session_ = kv_.create_session("raw", "1s");
  require(kv_.acquire(key_, session_, "raw"), "cannot acquire " + key_);
}

RawLock::~RawLock() {
  static_cast<void>(kv_.request("PUT", "/v1/kv/" + key_ + "?release=" + session_));
  static_cast<void>(kv_.request("PUT", "/v1/session/destroy/" + session_));
}

std::string claimed(std::string record, const std::string& session) {
  const std::string taken = R"("taskTaken":"false")";
  if (const auto at = record.find(taken); at != std::string::npos) {
    record.replace(at, taken.size(), R"("taskTaken":"true")");
  }
  record.pop_back();
  return record + R"(,"taskAttempt":1,"taskClaim":{"node":"bench-1","session":")" + session +
         R"(","nonce":"0123456789abcdef-12345","since":"2026-01-01T00:00:00.000Z"}})";
}

std::uint64_t written_index(const live::HttpAnswer& answer) {
  require(answer.status == 200, "a raw transaction was refused: " + answer.body);
  constexpr std::string_view kField = "\"ModifyIndex\":";
  const std::size_t at = answer.body.rfind(kField);
  require(at != std::string::npos, "no ModifyIndex in " + answer.body);
  return std::strtoull(answer.body.c_str() + at + kField.size(), nullptr, 10);
}

std::vector<RawTask> raw_tasks(const live::ConsulAgent& consul, const std::string& prefix) {
  live::Kv kv{consul.address()};
  std::vector<RawTask> tasks;
  for (const auto& entry : kv.list(prefix)) tasks.push_back({entry.key, entry.modify_index});
  return tasks;
}

double send_all(const live::ConsulAgent& consul, const std::vector<std::string>& bodies,
                std::size_t connections) {
  std::atomic<std::size_t> next = 0;
  return in_parallel(consul, connections, [&](live::Kv& kv) {
    for (std::size_t i = 0; (i = next.fetch_add(1)) < bodies.size();) {
      const auto answer = kv.request("PUT", "/v1/txn", bodies[i]);
      require(answer.status == 200, "a raw transaction was refused: " + answer.body);
    }
  });
}

Drained raw_drain(const live::ConsulAgent& consul, std::size_t count, std::size_t connections) {
  load(consul, kRawPrefix, count, [](std::size_t i) { return task_record(i, "Noop"); });
  const RawLock lock{consul};
  const std::vector<RawTask> tasks = raw_tasks(consul, kRawPrefix);
  require(tasks.size() == count, "the raw tasks are not all there");
  const std::size_t in_one = operations_taken(consul) - 1;  // and the fence
  std::vector<std::string> claims;
  for (std::size_t at = 0; at < count; at += in_one) {
    wire::Txn txn = fenced(lock);
    for (std::size_t i = at; i < std::min(count, at + in_one); ++i) {
      txn.verb("cas", tasks[i].key)
          .index(tasks[i].index)
          .value(claimed(task_record(i, "Noop"), lock.session()));
    }
    claims.push_back(std::move(txn).body());
  }
  std::atomic<std::size_t> next = 0;
  const std::int64_t cpu_before = cpu_ns(consul.pid());
  const double seconds = in_parallel(consul, connections, [&](live::Kv& kv) {
    for (std::size_t batch = 0; (batch = next.fetch_add(1)) < claims.size();) {
      const std::uint64_t index = written_index(kv.request("PUT", "/v1/txn", claims[batch]));
      wire::Txn txn = fenced(lock);
      for (std::size_t i = batch * in_one; i < std::min(count, (batch + 1) * in_one); ++i) {
        txn.verb("delete-cas", tasks[i].key).index(index);
      }
      const auto answer = kv.request("PUT", "/v1/txn", std::move(txn).body());
      require(answer.status == 200, "a raw transaction was refused: " + answer.body);
    }
  });
  const std::int64_t cpu_spent = cpu_ns(consul.pid()) - cpu_before;
  require(raw_tasks(consul, kRawPrefix).empty(), "raw tasks are left");
  const auto tasks_done = static_cast<double>(count);
  return {tasks_done / seconds, static_cast<double>(cpu_spent) / 1e3 / tasks_done};
}

double raw_single_rate(const live::ConsulAgent& consul, std::size_t count) {
  load(consul, kRawPrefix, count, [](std::size_t i) { return task_record(i, "Noop"); });
  const RawLock lock{consul};
  const std::vector<RawTask> tasks = raw_tasks(consul, kRawPrefix);
  require(tasks.size() == count, "the raw tasks are not all there");
  const double seconds = in_parallel(consul, 1, [&](live::Kv& kv) {
    std::uint64_t before = 0;
    for (std::size_t i = 0; i <= count; ++i) {
      wire::Txn txn = fenced(lock);
      // The deletion comes first: the transaction's last write then shows the claim's index.
      if (i > 0) txn.verb("delete-cas", tasks[i - 1].key).index(before);
      if (i < count) {
        txn.verb("cas", tasks[i].key)
            .index(tasks[i].index)
            .value(claimed(task_record(i, "Noop"), lock.session()));
      }
      before = written_index(kv.request("PUT", "/v1/txn", std::move(txn).body()));
    }
  });
  require(raw_tasks(consul, kRawPrefix).empty(), "raw tasks are left");
  return static_cast<double>(count) / seconds;
}

double plain_loop_rate(const live::ConsulAgent& consul, std::size_t count) {
  load(consul, "plain/tasks/", count, [](std::size_t i) { return task_record(i, "Noop"); });
  live::Kv kv{consul.address()};
  const std::string session = kv.create_session("plain loop", "1s");
  const std::int64_t begin = live::monotonic_ns();
  for (const live::KvEntry& entry : kv.list("plain/tasks/")) {
    auto record = nlohmann::json::parse(entry.value);
    record["taskTaken"] = "true";
    const std::string path = "/v1/kv/" + entry.key;
    const std::string index = std::to_string(entry.modify_index);
    const auto answer = kv.request("PUT", path + "?cas=" + index, record.dump());
    require(answer.body.starts_with("true"), "the plain loop could not claim");
    // The job: nothing.
    static_cast<void>(kv.request("DELETE", path));
    static_cast<void>(kv.request("PUT", "/v1/session/renew/" + session));
  }
  const double seconds = live::seconds_between(begin, live::monotonic_ns());
  kv.destroy_session(session);
  return static_cast<double>(count) / seconds;
}

}  // namespace lictor::bench
