// Reads one queue, in an order that the settings force:
//
//   1  its own settings          executors and schedules are only kept
//   2  settings without a value  paths from root and name, times from other times
//   3  check_relations()         on the derived values, too
//   4  executors                 each begins with the queue's policy as its default
//   5  schedules
//
// After all queues: their paths and the number of their workers' processes, together.

#include <algorithm>
#include <optional>

#include "app/config_internal.h"
#include "base/try.h"
#include "client/schedules.h"

namespace lictor::app {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPrefetchHorizon = 20ms;
constexpr std::size_t kMaxQueues = 1000;
constexpr std::size_t kMaxSessionChecks = 64;

struct RateParts {
  std::uint32_t tasks = 0;
  std::uint32_t burst = 0;
  Duration per = 1s;
};

Settings rate_settings(RateParts& parts) {
  return {{"tasks", derived(whole(parts.tasks, 1, 1'000'000))},
          {"per", duration(parts.per, 1ms, 24h)},
          {"burst", derived(whole(parts.burst, 1, 1'000'000))}};
}

Reader rate(std::optional<core::Rate>& target) {
  const std::string form = R"(an object such as {"tasks": 100, "per": "1s"})";
  auto read = [&target, form](const ConfigNode& place) -> Result<void> {
    RateParts parts;
    if (auto rest = read_settings(place, rate_settings(parts), form); !rest) return rest;
    if (parts.tasks == 0) return place.refuse("has no \"tasks\"; expected " + form);
    // A tenth at once by default: enough to fill a transaction, too little to be noticed as a peak.
    target = core::Rate{parts.per / parts.tasks,
                        parts.burst != 0 ? parts.burst : std::max(1U, parts.tasks / 10)};
    return {};
  };
  RateParts defaults;
  return {std::move(read), form, "", forms_of(rate_settings(defaults))};
}

Settings history_settings(core::HistoryLimits& limits) {
  return {{"keep", whole(limits.keep, 1, 100'000)},
          {"max_age", duration(limits.max_age, 0s, 10 * 365 * 24h)}};
}

// true means the defaults, false none: the usual case needs no object.
Reader history(std::optional<core::HistoryLimits>& target) {
  const std::string form = R"(true, false or an object such as {"keep": 1000, "max_age": "168h"})";
  auto read = [&target, form](const ConfigNode& place) -> Result<void> {
    if (place.value().is_boolean()) {
      if (place.value().get<bool>()) target.emplace();
      return {};
    }
    return read_settings(place, history_settings(target.emplace()), form);
  };
  core::HistoryLimits defaults;
  return {std::move(read), form, "false", forms_of(history_settings(defaults))};
}

// Fills in the settings that were not set. `place` is the queue's; null: there is no file, so
// nothing was set. Two keys have no setting and always lie below `root`.
void derive(const ConfigNode* place, const std::string& root, QueueConfig& queue) {
  core::QueueOptions& options = queue.options;
  const wire::Layout home = wire::Layout::under(root, options.queue);
  for (const QueuePath& known : kQueuePaths) {
    std::string& path = queue.layout.*known.path;
    if (path.empty()) path = home.*known.path;
  }
  queue.layout.partitions_key = home.partitions_key;
  queue.layout.rate_key = home.rate_key;

  const auto is_set = [&](std::string_view key) { return place != nullptr && place->has(key); };
  // Three renewals fit into one TTL, so that two may be lost.
  if (!is_set("renew_interval")) options.renew_interval = options.session_ttl / 3;
  if (!is_set("prefetch")) options.prefetch_horizon = kPrefetchHorizon;
  if (!is_set("max_unacked")) {
    options.max_unacked = std::max(options.max_unacked, options.concurrency + options.prefetch);
  }
  options.margin = margin_for(options.lock_delay);
}

Result<void> read_schedules(const ConfigNode& place, QueueConfig& queue) {
  if (!place.value().is_object()) return place.expected("an object");
  for (const auto& [name, value] : place.value().items()) {
    const ConfigNode member = place.member(name);
    if (!value.is_object()) {
      return member.expected(
          R"(a schedule such as {"cron": "0 3 * * *", "task": {"taskType": "Backup"}})");
    }
    LICTOR_TRY(auto schedule,
               member.checked(client::configured_schedule(queue.layout, name, value.dump())));
    queue.options.schedules.insert_or_assign(name, std::move(schedule));
  }
  return {};
}

// If a worker is the queue's only executor, its limit becomes the queue's: tasks of an executor
// with a limit of its own are not claimed ahead, tasks of a queue are, which is several times as
// fast. A program that embeds lictor adds executors later.
void fit_to_worker(Mode mode, QueueConfig& queue) {
  if (mode == Mode::kEmbedded || queue.executors.size() != 1) return;
  const auto& [type, executor] = *queue.executors.begin();
  if (!std::holds_alternative<WorkerConfig>(executor)) return;
  core::QueueOptions& options = queue.options;
  core::TypePolicy& policy = type == "*" ? *options.any_type : options.types.find(type)->second;
  if (policy.concurrency == 0) return;
  options.concurrency = std::min(options.concurrency, policy.concurrency);
  policy.concurrency = 0;
}

Result<void> read_queue(const ConfigNode& place, const LoadRequest& request, const Config& config,
                        QueueConfig& queue) {
  core::TypePolicy policy;
  QueueMembers members;
  auto read = read_settings(place, queue_settings(queue, policy, members));
  if (!read) return read;
  queue.options.node = config.node;
  const bool counts_attempts = place.has("max_attempts");
  queue.defaults = policy;
  limit_at_most_once(queue.defaults, counts_attempts);
  derive(&place, config.root, queue);
  if (auto checked = check_relations(place, queue.options); !checked) return checked;
  if (members.executors) {
    read = read_executors(*members.executors, request, policy, counts_attempts, queue);
    if (!read) return read;
    fit_to_worker(request.mode, queue);
  }
  if (members.schedules) {
    read = read_schedules(*members.schedules, queue);
    if (!read) return read;
  }
  if (request.mode == Mode::kDaemon && queue.executors.empty()) {
    return place.refuse_at({"executors"},
                           "has no executors, so it could run nothing; add for instance "
                           R"("executors": {"*": {"exec": ["/opt/jobs/any"]}})");
  }
  return {};
}

}  // namespace

Settings queue_settings(QueueConfig& queue, core::TypePolicy& policy, QueueMembers& members) {
  core::QueueOptions& options = queue.options;
  Settings settings{
      {"name", name(options.queue), false},
      {"serialize_by", json_pointer(queue.layout.serialize_by), false},
      {"concurrency", whole(options.concurrency, 1, kMostConcurrency)},
      {"prefetch", derived(whole(options.prefetch, 0, 10'000))},
      {"preload", duration(options.preload, 0s, 1h)},
      {"max_unacked", whole(options.max_unacked, 1, 100'000)},
      {"serialize_retries", boolean(options.serialize_retries)},
      {"rate_limit", rate(options.rate_limit)},
      {"history", history(options.history)},
      {"max_losses", whole(options.max_losses, 1, 1000)},
      {"session_ttl", duration(options.session_ttl, 10s, 24h, "Consul's own limits"), false},
      {"session_checks", texts(queue.session_checks, kMaxSessionChecks), false},
      {"renew_interval", duration(options.renew_interval, 10ms, 12h), false},
      {"lock_delay",
       duration(options.lock_delay, 0s, core::kMostLockDelay,
                "Consul bars a lock no longer, whatever it was asked"),
       false},
      {"request_timeout", duration(options.request_timeout, 10ms, 1min), false},
      {"kill_grace", duration(options.kill_grace, 0s, 10min), false},
      {"drain_timeout", duration(options.drain_timeout, 0s, 24h)},
      {"partitions", whole(options.partitions, 1, core::kMostPartitions)},
      {"weight", whole(queue.weight, 1, 100)},
      // Read last: they inherit from the queue, wherever in it they stand.
      {"schedules", kept(members.schedules, "an object")},
      {"executors", kept(members.executors, "an object")}};
  for (const QueuePath& known : kQueuePaths) {
    std::string& path = queue.layout.*known.path;
    settings.push_back({known.setting, known.is_prefix() ? kv_prefix(path) : kv_key(path), false});
  }
  const Settings defaults = policy_settings(policy);
  settings.insert(settings.end(), defaults.begin(), defaults.end());
  return settings;
}

QueueConfig default_queue(const std::string& name, const std::string& root,
                          const std::string& node) {
  QueueConfig queue;
  queue.options.queue = name;
  queue.options.node = node;
  derive(nullptr, root, queue);
  return queue;
}

Result<void> read_queues(const ConfigNode& place, const LoadRequest& request, Config& config) {
  const Reader element{[&](const ConfigNode& item) {
                         return read_queue(item, request, config, config.queues.emplace_back());
                       },
                       "an object"};
  if (auto read = list(kMaxQueues, element)(place); !read) return read;
  if (config.queues.empty()) return place.expected("at least one queue");
  if (auto fit = check_workers(place, config.queues); !fit) return fit;
  return check_layout(place, config.queues);
}

}  // namespace lictor::app
