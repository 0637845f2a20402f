#include "admin/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace lictor::admin {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using Kind = core::Fact::Kind;
using Labels = std::map<std::string, std::string>;

const Histogram::BucketBoundaries kLatency{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                           0.5,   1,      2.5,   5,    10,    30,   60};
const Histogram::BucketBoundaries kJobTime{0.005, 0.025, 0.1, 0.5, 1,    2.5,   5,    15,
                                           30,    60,    300, 900, 3600, 14400, 86400};
const Histogram::BucketBoundaries kOperations{1, 2, 4, 8, 16, 32, 64, 128};

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// Blocking queries wait for a change; their time says nothing about Consul.
bool is_watch(std::string_view request) { return request.starts_with("watch_"); }

// The set of outcomes is bounded, with one for each thing that an operator can do about it.
const char* reply_outcome(const http::Response& response) {
  switch (response.delivery) {
    case http::Delivery::kNotSent:
      return "unreachable";
    case http::Delivery::kLost:
      return "lost";
    case http::Delivery::kCancelled:
      return "cancelled";
    case http::Delivery::kReplied:
      break;
  }
  // 404 means that the key is missing, 409 that a condition of the transaction does not hold.
  if (response.status < 400 || response.status == 404) return "ok";
  if (response.status == 409) return "conflict";
  if (response.status == 403) return "denied";
  if (http::over_limit(response)) return "throttled";
  return response.status < 500 ? "refused" : "error";
}

using prometheus::MetricType;

// The families that are made for each scrape, since a follower has no values for most of them.
class Snapshot {
 public:
  void add(const char* name, const char* help, double value,
           std::initializer_list<prometheus::ClientMetric::Label> labels = {},
           MetricType type = MetricType::Gauge) {
    if (families_.empty() || families_.back().name != name) {
      families_.push_back({name, help, type, {}});
    }
    prometheus::ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = labels;
    metric.gauge.value = metric.counter.value = value;
  }
  [[nodiscard]] std::vector<prometheus::MetricFamily> take() { return std::move(families_); }

 private:
  std::vector<prometheus::MetricFamily> families_;
};

// A queue's families come one after the other over all queues: the exposition wants all samples of
// a family together, which Snapshot::add() relies on.
void add_queues(const Status& status, Snapshot& to) {
  for (const QueueStatus& queue : status.queues) {
    to.add("lictor_leading", "1 while this daemon leads the queue or a partition of it, else 0.",
           queue.role == QueueStatus::Role::kFollowing ? 0 : 1, {{"queue", queue.name}});
  }
  for (const QueueStatus& queue : status.queues) {
    if (queue.partitions == 0) continue;
    to.add(
        "lictor_partitions",
        "Partitions of the queue; missing while the daemon does not know. The same on all hosts: "
        "take the max.",
        queue.partitions, {{"queue", queue.name}});
  }
  for (const QueueStatus& queue : status.queues) {
    to.add("lictor_partitions_led",
           "Partitions that this daemon leads. The sum over hosts is lictor_partitions, or some "
           "partition has no leader.",
           static_cast<double>(queue.leads.size()), {{"queue", queue.name}});
  }
  for (const Gauge& gauge : gauges()) {
    const auto type = gauge.kind == Gauge::Kind::kCounter ? MetricType::Counter : MetricType::Gauge;
    for (const QueueStatus& queue : status.queues) {
      if (gauge.metric == nullptr || !gauge.is_known(queue)) continue;
      if (gauge.by_state == nullptr) {
        to.add(gauge.metric, gauge.help, queue.value(gauge), {{"queue", queue.name}}, type);
        continue;
      }
      for (const auto& [state, count] : queue.*gauge.by_state) {
        to.add(gauge.metric, gauge.help, static_cast<double>(count),
               {{"queue", queue.name}, {"state", state}});
      }
    }
  }
}

void add_workers(const Status& status, Snapshot& to) {
  const auto for_workers = [&](const char* name, const char* help, const char* label, auto counts,
                               MetricType type) {
    for (const QueueStatus& queue : status.queues) {
      for (const WorkerStatus& worker : queue.workers) {
        for (const auto& [value, count] : worker.*counts) {
          to.add(name, help, static_cast<double>(count),
                 {{"queue", queue.name}, {"type", worker.type}, {label, value}}, type);
        }
      }
    }
  };
  for_workers("lictor_worker_processes", "Processes of a worker on this host, by state.", "state",
              &WorkerStatus::states, MetricType::Gauge);
  for_workers("lictor_worker_ends_total",
              "Processes of a worker that ended on this host, by reason.", "reason",
              &WorkerStatus::ends, MetricType::Counter);
}

// Names follow Prometheus' client libraries.
void add_process(Snapshot& to) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);  // it cannot fail
  const auto spent = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  to.add("process_cpu_seconds_total", "Processor time of the daemon, without its jobs.",
         spent(used.ru_utime) + spent(used.ru_stime), {}, MetricType::Counter);
  unsigned long skipped = 0, pages = 0;
  if (std::ifstream{"/proc/self/statm"} >> skipped >> pages) {
    to.add("process_resident_memory_bytes", "Resident memory of the daemon, without its jobs.",
           static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  }
  std::error_code error;
  double open_files = -1;  // the folder itself is one of them
  std::filesystem::directory_iterator files{"/proc/self/fd", error};
  for (; !error && files != std::filesystem::directory_iterator{}; files.increment(error)) {
    ++open_files;
  }
  if (!error) to.add("process_open_fds", "Open file descriptors of the daemon.", open_files);
}

// The outcome labels of a fact: for the attempt, and for the task if it ended; null: not counted.
struct Outcome {
  const char* attempt = nullptr;
  const char* task = nullptr;
};

// Every label that ending_outcome() and tick_outcome() return: .at() relies on it.
constexpr std::array kAttemptOutcomes{"done",        "failed",     "lost",
                                      "not_started", "given_back", "withdrawn"};
constexpr std::array kTaskOutcomes{"done", "dead", "withdrawn"};
constexpr std::array kTickOutcomes{"made", "late", "missed", "overlap"};

// A task may end without an attempt: it expires, cannot be read, is deleted while it waits, or was
// lost too often. Only an attempt of this leader has a token.
Outcome ending_outcome(const core::Fact& fact) {
  const bool begun = fact.attempt != 0 && fact.token != 0;
  switch (fact.kind) {
    case Kind::kDone:
      return {"done", "done"};
    case Kind::kFailed:
      return {"failed", nullptr};
    case Kind::kDead:
      return {begun ? "failed" : nullptr, "dead"};
    case Kind::kLost:
      return {"lost", nullptr};
    case Kind::kNotStarted:
      return {"not_started", nullptr};
    case Kind::kGivenBack:
      return {"given_back", nullptr};
    case Kind::kWithdrawn:
      return {begun ? "withdrawn" : nullptr, "withdrawn"};
    default:
      return {};
  }
}

using ByOutcome = std::map<std::string_view, Counter*>;

// Makes a counter for each outcome, 0 at first.
ByOutcome by_outcome(Family<Counter>& family, Labels labels,
                     std::span<const char* const> outcomes) {
  ByOutcome counters;
  for (const char* outcome : outcomes) {
    labels["outcome"] = outcome;
    counters[outcome] = &family.Add(labels);
  }
  return counters;
}

// Null: the fact is not about a tick.
const char* tick_outcome(const core::Fact& fact) {
  constexpr Duration kLate = std::chrono::seconds{5};
  switch (fact.kind) {
    case Kind::kTickMade:
      return fact.late > kLate ? "late" : "made";
    case Kind::kTicksMissed:
      return "missed";
    case Kind::kTicksOverlap:
      return "overlap";
    default:
      return nullptr;
  }
}

}  // namespace

// All counted families, in one registry. The names are an interface: operating.md lists them.
struct Metrics::Families {
  prometheus::Registry registry;

  Family<Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Family<Histogram>& histograms(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  Family<Counter>& tasks = counters("lictor_tasks_total", "Tasks that ended, by outcome.");
  Family<Counter>& attempts = counters("lictor_attempts_total", "Attempts that ended, by outcome.");
  Family<Counter>& ticks = counters(
      "lictor_ticks_total",
      "Ticks of recurring tasks: made in time, made late (more than 5 s after the tick), missed "
      "(nobody led, or the schedule was paused), overlap (its last task waited or ran).");
  Family<Counter>& started = counters("lictor_attempts_started_total", "Attempts that started.");
  Family<Counter>& terms =
      counters("lictor_leader_changes_total",
               "How often this daemon became the leader: once for each partition that it took.");
  Family<Counter>& losses =
      counters("lictor_leases_lost_total",
               "How often this daemon lost the lock of a partition or its lease ran out.");
  Family<Counter>& releases =
      counters("lictor_partitions_released_total",
               "How often this daemon released a partition: it stopped, stepped down or handed the "
               "partition over.");
  Family<Counter>& requests = counters("lictor_consul_requests_total",
                                       "Requests to Consul, by what was asked and the outcome.");
  Family<Histogram>& request_time =
      histograms("lictor_consul_request_duration_seconds",
                 "Time until Consul answered, without blocking queries.");
  Family<Histogram>& operations =
      histograms("lictor_transaction_operations", "Operations in a transaction.");
  Family<Histogram>& takeover = histograms(
      "lictor_takeover_seconds", "How long the lock was free before this daemon took it over.");
  Family<Histogram>& job_time =
      histograms("lictor_job_duration_seconds", "How long jobs ran that ended well.");
  Family<Histogram>& pickup = histograms(
      "lictor_pickup_seconds", "From when a task was due and known to the leader to its start.");
  Family<Histogram>& lateness = histograms("lictor_lateness_seconds",
                                           "From executeAt or the time of the retry to the start.");
};

// Created once a type, so a fact costs two look-ups. All series exist from the start: Prometheus
// takes a series that begins at 1 for one that did not grow.
struct Metrics::OfType {
  Families& families;
  const Labels labels;
  Counter& started = families.started.Add(labels);
  Histogram& job_time = families.job_time.Add(labels, kJobTime);
  Histogram& pickup = families.pickup.Add(labels, kLatency);
  Histogram& lateness = families.lateness.Add(labels, kLatency);
  ByOutcome attempts = by_outcome(families.attempts, labels, kAttemptOutcomes);
  ByOutcome tasks = by_outcome(families.tasks, labels, kTaskOutcomes);
};

struct Metrics::OfQueue {
  inline static const std::string kOther = "other";

  Families& families;
  const std::string name;
  Labels labels{{"queue", name}};
  Counter& terms = families.terms.Add(labels);
  Counter& losses = families.losses.Add(labels);
  Counter& releases = families.releases.Add(labels);
  Histogram& operations = families.operations.Add(labels, kOperations);
  Histogram& takeover = families.takeover.Add(labels, kLatency);
  ByOutcome ticks = by_outcome(families.ticks, labels, kTickOutcomes);
  std::set<std::string> types{};
  std::map<std::string, OfType> by_type{};

  // A type that is not in the configuration counts as "other": producers may invent types without
  // end.
  OfType& of_type(const std::string& type) {
    const std::string& label = types.contains(type) ? type : kOther;
    const auto found = by_type.find(label);
    if (found != by_type.end()) return found->second;
    return by_type.emplace(label, OfType{families, {{"queue", name}, {"type", label}}})
        .first->second;
  }
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}

Metrics::~Metrics() = default;

Metrics::OfQueue& Metrics::queue(const std::string& name) {
  auto& found = queues_[name];
  if (!found) found = std::make_unique<OfQueue>(OfQueue{*families_, name});
  return *found;
}

void Metrics::set_types(const std::string& name, const std::set<std::string>& types) {
  const std::lock_guard lock{mutex_};
  OfQueue& of_queue = queue(name);
  of_queue.types.insert(types.begin(), types.end());
  for (const std::string& type : of_queue.types) static_cast<void>(of_queue.of_type(type));
  static_cast<void>(of_queue.of_type(OfQueue::kOther));  // any queue can get a task of another type
}

void Metrics::on_fact(const std::string& name, const core::Fact& fact) {
  const std::lock_guard lock{mutex_};
  OfQueue& of_queue = queue(name);
  if (fact.kind == Kind::kLeading) {
    of_queue.terms.Increment();
    of_queue.takeover.Observe(seconds(fact.took));
  } else if (fact.kind == Kind::kLeaseLost || fact.kind == Kind::kLeaseExpired) {
    of_queue.losses.Increment();
  } else if (fact.kind == Kind::kSteppedDown) {
    of_queue.releases.Increment();
  } else if (fact.kind == Kind::kStarted && fact.task) {
    OfType& of_type = of_queue.of_type(fact.task->type);
    of_type.started.Increment();
    of_type.pickup.Observe(seconds(fact.waited));
    if (fact.late) of_type.lateness.Observe(std::max(0.0, seconds(*fact.late)));
  } else if (const char* of_tick = tick_outcome(fact)) {
    of_queue.ticks.at(of_tick)->Increment(
        static_cast<double>(std::max<std::uint64_t>(1, fact.count)));
  } else if (const Outcome outcome = ending_outcome(fact);
             outcome.attempt != nullptr || outcome.task != nullptr) {
    // A task that was never read has no known type.
    OfType& of_type = of_queue.of_type(fact.task ? fact.task->type : OfQueue::kOther);
    if (outcome.attempt != nullptr) of_type.attempts.at(outcome.attempt)->Increment();
    if (outcome.task != nullptr) of_type.tasks.at(outcome.task)->Increment();
    if (fact.kind == Kind::kDone) of_type.job_time.Observe(seconds(fact.took));
  }
}

void Metrics::on_commit(const std::string& name, std::size_t operations) {
  const std::lock_guard lock{mutex_};
  queue(name).operations.Observe(static_cast<double>(operations));
}

void Metrics::on_reply(const std::string& name, std::string_view request,
                       const http::Response& response, Duration took) {
  const Labels labels{{"queue", name}, {"request", std::string{request}}};
  Labels with_outcome = labels;
  with_outcome["outcome"] = reply_outcome(response);
  families_->requests.Add(with_outcome).Increment();
  if (is_watch(request) || response.delivery != http::Delivery::kReplied) return;
  families_->request_time.Add(labels, kLatency).Observe(seconds(took));
}

// Needs no mutex_: the registry has its own locks, and the caller owns `status`.
std::string Metrics::text(const Status& status) const {
  Snapshot now;
  now.add("lictor_build_info", "The version of the daemon; always 1.", 1,
          {{"version", status.version}});
  add_queues(status, now);
  add_workers(status, now);
  now.add("process_start_time_seconds", "When the daemon started, in seconds since the epoch.",
          std::chrono::duration<double>(status.since.time_since_epoch()).count());
  add_process(now);
  std::vector<prometheus::MetricFamily> families = now.take();
  for (prometheus::MetricFamily& family : families_->registry.Collect()) {
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer{}.Serialize(families);
}

void add_metrics_route(Router& router, Backend& backend, const Metrics& metrics) {
  router.add(
      "GET", "/metrics", Access::kPublic,
      [&backend, &metrics](const Call&) -> std::optional<Response> {
        const auto status = backend.status();
        if (!status) return error_response(503, kNoAnswer);
        return Response{200, "text/plain; version=0.0.4; charset=utf-8", metrics.text(*status), {}};
      });
}

}  // namespace lictor::admin
