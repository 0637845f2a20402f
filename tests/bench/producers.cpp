// Writing and cancelling many tasks, beside raw transactions.

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

#include <lictor/client.h>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "wire/txn.h"

namespace lictor::bench {
namespace {

using Environment = std::map<std::string, std::string>;

double rate(std::size_t count, std::int64_t begin_ns) {
  return static_cast<double>(count) / live::seconds_between(begin_ns, live::monotonic_ns());
}

Client open_client(const live::ConsulAgent& consul) {
  ClientOptions options;
  options.addresses = {consul.address()};
  options.use_environment = false;
  auto client = Client::open(options);
  require(client.has_value(), "cannot open a client");
  return std::move(*client);
}

void expect_tasks(const live::ConsulAgent& consul, std::size_t count) {
  live::Kv kv{consul.address()};
  require(names_below(kv, kTasksPrefix).size() == count, "not as many tasks as there should be");
}

double submit_command(const live::ConsulAgent& consul, std::size_t count, SubmitOrder order) {
  const live::TemporaryFolder folder;
  std::string lines;
  for (std::size_t i = 0; i < count; ++i) lines += task_record(i, "Noop") + '\n';
  live::write_text(folder.file("tasks.ndjson"), lines);
  const std::int64_t begin = live::monotonic_ns();
  std::vector<std::string> command{"/proc/self/exe", "lictor", "submit", "--ndjson",
                                   folder.file("tasks.ndjson")};
  if (order == SubmitOrder::kAny) command.emplace_back("--any-order");
  const auto output = live::run(command, Environment{{"CONSUL_HTTP_ADDR", consul.address()}});
  const double result = rate(count, begin);
  require(output.exit_code == 0, "lictor submit failed: " + output.out.substr(0, 1000));
  expect_tasks(consul, count);
  return result;
}

double submit_many(const live::ConsulAgent& consul, std::size_t count, SubmitOrder order) {
  std::vector<NewTask> tasks;
  for (std::size_t i = 0; i < count; ++i) {
    NewTask task;
    task.type = "Noop";
    task.id = "bench-" + std::to_string(i);
    task.parameters = {{"instanceId", "db7"}, {"initSize", "8000"}, {"maxSize", "100000"}};
    tasks.push_back(std::move(task));
  }
  Client client = open_client(consul);
  const std::int64_t begin = live::monotonic_ns();
  const auto results = client.submit_many(tasks, {}, order);
  const double result = rate(count, begin);
  for (const auto& each : results) require(each.has_value(), "submit_many() refused a task");
  expect_tasks(consul, count);
  return result;
}

struct Way {
  const char* words;
  SubmitOrder order;
};
constexpr std::array kWays{Way{"", SubmitOrder::kAsGiven}, Way{" in any order", SubmitOrder::kAny}};

double raw_set(const live::ConsulAgent& consul, std::size_t count, std::size_t connections) {
  std::vector<std::string> bodies;
  for (std::size_t at = 0; at < count; at += 64) {
    wire::Txn txn;
    for (std::size_t i = at; i < std::min(count, at + 64); ++i) {
      txn.verb("set", kTasksPrefix + ("bench-" + std::to_string(i))).value(task_record(i, "Noop"));
    }
    bodies.push_back(std::move(txn).body());
  }
  const double seconds = send_all(consul, bodies, connections);
  expect_tasks(consul, count);
  return static_cast<double>(count) / seconds;
}

void load_tasks(const live::ConsulAgent& consul, std::size_t count) {
  load(consul, kTasksPrefix, count, [](std::size_t i) { return task_record(i, "Noop"); });
}

double cancel_command(const live::ConsulAgent& consul, std::size_t count) {
  load_tasks(consul, count);
  const std::int64_t begin = live::monotonic_ns();
  const auto output = live::run({"/proc/self/exe", "lictor", "cancel", "--all", "--yes"},
                                Environment{{"CONSUL_HTTP_ADDR", consul.address()}});
  const double result = rate(count, begin);
  require(output.exit_code == 0, "lictor cancel failed: " + output.out.substr(0, 1000));
  expect_tasks(consul, 0);
  return result;
}

double cancel_many(const live::ConsulAgent& consul, std::size_t count) {
  load_tasks(consul, count);
  Client client = open_client(consul);
  const std::int64_t begin = live::monotonic_ns();
  const auto result = client.cancel_all({});
  const double cancelled = rate(count, begin);
  require(result && result->tasks.size() == count, "cancel_all() did not cancel all");
  expect_tasks(consul, 0);
  return cancelled;
}

// Lists the tasks first, as any client that cancels must, then cancels 32 a transaction.
double raw_cancel(const live::ConsulAgent& consul, std::size_t count, std::size_t connections) {
  load_tasks(consul, count);
  live::Kv kv{consul.address()};
  const std::int64_t begin = live::monotonic_ns();
  const auto listed = kv.request("GET", std::string{"/v1/kv/"} + kTasksPrefix + "?recurse").json();
  std::vector<std::string> bodies;
  for (std::size_t at = 0; at < listed.size(); at += 32) {
    wire::Txn txn;
    for (std::size_t i = at; i < std::min(listed.size(), at + 32); ++i) {
      const std::string& key = listed[i].at("Key").get_ref<const std::string&>();
      const auto index = listed[i].at("ModifyIndex").get<std::uint64_t>();
      txn.verb("check-index", key).index(index).verb("delete-cas", key).index(index);
    }
    bodies.push_back(std::move(txn).body());
  }
  static_cast<void>(send_all(consul, bodies, connections));
  const double result = rate(count, begin);
  expect_tasks(consul, 0);
  return result;
}

// One request a task, as curl would, for in an hour: eight producers alone, and beside a leader
// that reads their tasks.
double put_singly(const live::ConsulAgent& consul, std::size_t count, bool led) {
  constexpr std::size_t kProducers = 8;
  constexpr std::int64_t kHourMs = 3'600'000;
  std::optional<Worker> leader;
  if (led) leader.emplace(consul);
  const std::int64_t due_ms = wall_ms() + kHourMs;
  const std::int64_t begin = live::monotonic_ns();
  {
    std::vector<std::jthread> producers;
    for (std::size_t first = 0; first < kProducers; ++first) {
      producers.emplace_back([&consul, first, count, due_ms] {
        live::Kv kv{consul.address()};
        for (std::size_t i = first; i < count; i += kProducers) {
          kv.put(task_key(kTasksPrefix, i), task_record(i, "Noop", due_ms));
        }
      });
    }
  }
  const double result = rate(count, begin);
  expect_tasks(consul, count);
  if (leader) leader->stop();
  return result;
}

struct Best {
  double rate = 0;
  std::size_t connections = 0;
};
Best best_of(const std::map<std::size_t, std::vector<double>>& rates) {
  Best best;
  for (const auto& [connections, each] : rates) {
    if (const double rate = median(each); rate > best.rate) best = {rate, connections};
  }
  return best;
}

}  // namespace

void measure_producers(Bench& bench) {
  const std::size_t count = bench.sizes().produced;
  std::vector<double> cancelled, cancelled_by_client, singly, singly_led;
  std::map<std::string, std::vector<double>> command, client;  // by the words
  std::map<std::size_t, std::vector<double>> set, removed;
  for (std::size_t run = 0; run < bench.sizes().runs; ++run) {
    bench.progress("producers, run " + std::to_string(run + 1));
    const auto on_consul = [&](auto measure) {
      return bench.on_consul([&](const auto& consul) { return measure(consul, count); });
    };
    for (const std::size_t connections : {1, 2, 4, 16}) {
      set[connections].push_back(
          bench.on_consul([&](const auto& consul) { return raw_set(consul, count, connections); }));
      removed[connections].push_back(bench.on_consul(
          [&](const auto& consul) { return raw_cancel(consul, count, connections); }));
    }
    for (const Way& way : kWays) {
      const auto in = [&way](auto submit) {
        return [&way, submit](const auto& consul, std::size_t tasks) {
          return submit(consul, tasks, way.order);
        };
      };
      command[way.words].push_back(on_consul(in(submit_command)));
      client[way.words].push_back(on_consul(in(submit_many)));
    }
    singly.push_back(
        bench.on_consul([&](const auto& consul) { return put_singly(consul, count, false); }));
    singly_led.push_back(
        bench.on_consul([&](const auto& consul) { return put_singly(consul, count, true); }));
    cancelled.push_back(on_consul(cancel_command));
    cancelled_by_client.push_back(on_consul(cancel_many));
  }
  const auto name = [&](const std::string& what) { return what + " " + std::to_string(count); };
  const auto connections = [](const Best& best) {
    return "; " + std::to_string(best.connections) + " connection(s)";
  };
  const Best written = best_of(set), gone = best_of(removed);
  const std::string by_set = "raw 64 set" + connections(written);
  const std::string by_delete = "list, raw 32 check-index + delete-cas" + connections(gone);
  constexpr auto kWanted = Row::Wanted::kRatioAtLeast;
  for (const Way& way : kWays) {
    const std::string words{way.words};
    bench.add({name("lictor submit --ndjson" + words + ","), "tasks/s", median(command[words]),
               written.rate, by_set, kWanted, 0.8});
    bench.add({name("Client::submit_many()" + words + ","), "tasks/s", median(client[words]),
               written.rate, by_set, kWanted, 0.8});
  }
  bench.add({name("one PUT a task beside a leader,"), "tasks/s", median(singly_led), median(singly),
             "the same with no leader; 8 connections", kWanted, 0.8});
  bench.add({name("lictor cancel --all,"), "tasks/s", median(cancelled), gone.rate, by_delete,
             kWanted, 0.8});
  bench.add({name("Client::cancel_all(),"), "tasks/s", median(cancelled_by_client), gone.rate,
             by_delete, kWanted, 0.8});
}

}  // namespace lictor::bench
