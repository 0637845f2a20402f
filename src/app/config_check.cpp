// Checks how settings fit together. Each value may be right by itself and wrong beside another.
// Such a fault would show only in the first outage, as lost leadership or as a task that runs
// twice. So the daemon refuses it at its start, with the numbers that would fit.
//
//   a proof of leadership is sent
//   |<-------------------- lock_delay: nobody else can lead -------------------->|
//   |<------- lease: jobs may run ------->|<---- kill_grace ---->|<-- margin --->|
//   |  proof    proof    proof    proof   |  TERM           KILL |  clock drift, |
//   |  (each quarter of the lease)        |                      |  scheduling   |
//
// Besides, renewals fit into the session's TTL twice, a request ends before the next renewal, all
// jobs that may end at once fit into max_unacked, no KV path lies within another, and the warden
// finds a daemon that hangs before the lease would end.

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "app/config_internal.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "core/requests.h"

namespace lictor::app {
namespace {

using namespace std::chrono_literals;

// A turn of the loop takes milliseconds; with a long list and a slow disk, tenths of a second.
constexpr Duration kLeastHangTimeout = 1s;

Duration down_to_ms(Duration duration) {
  return std::chrono::floor<std::chrono::milliseconds>(duration);
}

// "renew_interval 5s", and whether it is the default.
std::string shown(const ConfigNode& place, std::string_view setting, const std::string& value) {
  return fmt::format("{} {}{}", setting, value, place.has(setting) ? "" : " (the default)");
}
std::string shown(const ConfigNode& place, std::string_view setting, Duration value) {
  return shown(place, setting, format_duration(value));
}

// Half the TTL at most: when a renewal is lost, the next one still comes before Consul may end the
// session. And each renewal is answered or times out before the next one is due.
Result<void> check_renewal(const ConfigNode& place, const core::QueueOptions& options) {
  if (options.renew_interval > options.session_ttl / 2) {
    return place.refuse_at(
        {"renew_interval", "session_ttl"},
        fmt::format("{} is more than half of {}, so one lost renewal could end the session; set "
                    "renew_interval to {} or less, or session_ttl to {} or more",
                    shown(place, "renew_interval", options.renew_interval),
                    shown(place, "session_ttl", options.session_ttl),
                    format_duration(down_to_ms(options.session_ttl / 2)),
                    format_duration(options.renew_interval * 2)));
  }
  if (options.request_timeout >= options.renew_interval) {
    return place.refuse_at(
        {"request_timeout", "renew_interval", "session_ttl"},
        fmt::format(
            "{} is not less than {}, so a renewal could still be in flight when the next is "
            "due; set request_timeout below {}, or renew_interval above {}",
            shown(place, "request_timeout", options.request_timeout),
            shown(place, "renew_interval", options.renew_interval),
            format_duration(options.renew_interval), format_duration(options.request_timeout)));
  }
  return {};
}

// Leadership is proved once a proof_interval. The lease must outlive one lost proof: the interval,
// the time-out of the lost proof, the pause, and the answer to the next.
Result<void> check_lease(const ConfigNode& place, const core::QueueOptions& options) {
  const Duration span = options.lease_span();
  const Duration needed =
      options.proof_interval() + 2 * options.request_timeout + core::kRetryPause;
  if (span > Duration::zero() && needed <= span) return {};

  // interval = span / 4, so 2 * request_timeout + pause <= span * 3 / 4.
  const Duration least = std::chrono::ceil<std::chrono::milliseconds>(
      (2 * options.request_timeout + core::kRetryPause) * 4 / 3);
  return place.refuse_at(
      {"request_timeout", "lock_delay", "kill_grace"},
      fmt::format(
          "{} less {} and the margin of {} leaves a lease of {}, too short for two tries of "
          "{} to prove it; it must be {} or more: raise lock_delay (to {} at most), or lower "
          "kill_grace or request_timeout",
          shown(place, "lock_delay", options.lock_delay),
          shown(place, "kill_grace", options.kill_grace), format_duration(options.margin),
          format_duration(std::max(span, Duration::zero())),
          shown(place, "request_timeout", options.request_timeout), format_duration(least),
          format_duration(core::kMostLockDelay)));
}

Result<void> check_capacity(const ConfigNode& place, const core::QueueOptions& options) {
  if (options.max_unacked >= options.concurrency + options.prefetch) return {};
  const auto value = [](std::uint32_t number) { return std::to_string(number); };
  return place.refuse_at(
      {"max_unacked", "concurrency", "prefetch"},
      fmt::format(
          "{} is less than {}{}, all of which may end at once; set it to {} or more",
          shown(place, "max_unacked", value(options.max_unacked)),
          shown(place, "concurrency", value(options.concurrency)),
          options.prefetch == 0 ? "" : fmt::format(" and prefetch {} together", options.prefetch),
          options.concurrency + options.prefetch));
}

// The processes of all workers together.
std::uint64_t worker_processes(const std::vector<QueueConfig>& queues) {
  std::uint64_t all = 0;
  for (const auto& worker : executors_of<WorkerConfig>(queues)) all += worker.settings.processes;
  return all;
}

// A KV path of a queue.
struct Path {
  std::string path;
  std::size_t queue;
  std::string_view setting;

  [[nodiscard]] bool is_prefix() const { return path.ends_with('/'); }
};

// Includes paths that no setting names: they follow from the queue's name or its leader_key, and so
// does a clash.
std::vector<Path> all_paths(const std::vector<QueueConfig>& queues) {
  std::vector<Path> paths;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    for (const QueuePath& known : kQueuePaths) {
      paths.push_back({queues[i].layout.*known.path, i, known.setting});
    }
    paths.push_back({queues[i].layout.partitions_key, i, "name"});
    paths.push_back({queues[i].layout.rate_key, i, "name"});
    if (queues[i].options.partitions == 1) continue;
    paths.push_back({queues[i].layout.leader_key + '/', i, "leader_key"});  // of the locks
  }
  return paths;
}

// The error stands in the later of the two queues, the one that was added, and names both settings:
// the user may never have written either, since paths have defaults.
Result<void> refuse_overlap(const ConfigNode& place, const Path& a, const Path& b) {
  const auto& [first, second] =
      std::minmax(a, b, [](const Path& x, const Path& y) { return x.queue < y.queue; });
  const bool same_queue = first.queue == second.queue;
  const ConfigNode first_queue = place.item(first.queue);
  const ConfigNode second_queue = place.item(second.queue);
  const auto named = [](const ConfigNode& queue, const Path& path) {
    return shown(queue, path.setting, '"' + excerpt(path.path) + '"');
  };
  return second_queue.refuse_at(
      {second.setting, same_queue ? first.setting : second.setting},
      fmt::format("{} overlaps {}{}; give each a place of its own", named(second_queue, second),
                  named(first_queue, first), same_queue ? "" : " of " + first_queue.path()));
}

}  // namespace

Duration margin_for(Duration lock_delay) { return std::max<Duration>(1s, lock_delay / 50); }

Result<void> check_relations(const ConfigNode& place, const core::QueueOptions& options) {
  if (auto checked = check_renewal(place, options); !checked) return checked;
  if (auto checked = check_lease(place, options); !checked) return checked;
  return check_capacity(place, options);
}

Result<void> check_layout(const ConfigNode& place, const std::vector<QueueConfig>& queues) {
  std::map<std::string_view, std::size_t> names;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const auto [first, fresh] = names.emplace(queues[i].options.queue, i);
    if (!fresh) {
      const ConfigNode item = place.item(i);
      return item.refuse_at(
          {"name"}, fmt::format("{} is also the name of {}; give each queue a name of its own",
                                shown(item, "name", '"' + queues[i].options.queue + '"'),
                                place.item(first->second).path()));
    }
  }
  // In sorted order, a path under a prefix follows it directly.
  std::vector<Path> paths = all_paths(queues);
  std::stable_sort(paths.begin(), paths.end(),
                   [](const Path& a, const Path& b) { return a.path < b.path; });
  for (std::size_t i = 0; i + 1 < paths.size(); ++i) {
    const Path& path = paths[i];
    const Path& next = paths[i + 1];
    if (next.path == path.path || (path.is_prefix() && next.path.starts_with(path.path))) {
      return refuse_overlap(place, path, next);
    }
  }
  return {};
}

Result<void> check_workers(const ConfigNode& place, const std::vector<QueueConfig>& queues) {
  const std::uint64_t all = worker_processes(queues);
  if (all <= worker::kMostConfigured) return {};
  return place.refuse(fmt::format(
      "all workers together have up to {} processes, and a host may have {}; lower processes", all,
      worker::kMostConfigured));
}

Duration default_hang_timeout(const std::vector<QueueConfig>& queues) {
  Duration least = Duration::max();
  for (const QueueConfig& queue : queues) {
    least = std::min({least, queue.options.session_ttl / 3, queue.options.lease_span() / 2});
  }
  return down_to_ms(least);
}

Result<void> check_hang_timeout(const ConfigNode& place, Duration hang_timeout,
                                const std::vector<QueueConfig>& queues) {
  if (hang_timeout == Duration::zero()) return {};
  const std::string is = shown(place, "hang_timeout", hang_timeout);
  if (hang_timeout < kLeastHangTimeout) {
    return place.refuse_at(
        {"hang_timeout"},
        fmt::format("{} is less than {}, which a daemon with much to do may take; "
                    "set it to that or more, or to 0s to switch it off",
                    is, format_duration(kLeastHangTimeout)));
  }
  for (const QueueConfig& queue : queues) {
    const Duration span = queue.options.lease_span();
    if (hang_timeout < span) continue;
    return place.refuse_at(
        {"hang_timeout"},
        fmt::format(
            "{} is not less than the lease of queue {} ({}: lock_delay less kill_grace and "
            "margin), at whose end its jobs are ended anyway; lower hang_timeout, or set it "
            "to 0s to switch it off",
            is, queue.options.queue, format_duration(span)));
  }
  return {};
}

std::string descriptor_shortage(const Config& config, std::uint64_t most) {
  // The warden's descriptors, the larger of two: cgroups kept for reuse; for each program pidfd,
  // cgroup and pipe.
  constexpr std::uint64_t kAnyway = 320;
  constexpr std::uint64_t kEach = 3;
  std::uint64_t tasks = worker_processes(config.queues);
  for (const QueueConfig& queue : config.queues) tasks += queue.options.concurrency;
  const std::uint64_t needed = kAnyway + kEach * tasks;
  if (needed <= most) return {};
  return fmt::format(
      "concurrency: {} at once take up to {} open files, and this process may have {}: raise "
      "LimitNOFILE= of the service (ulimit -Hn), or lower concurrency",
      counted(tasks, "task"), needed, most);
}

}  // namespace lictor::app
