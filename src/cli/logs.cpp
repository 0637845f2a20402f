// Prints the output of a task's program. Each daemon keeps the logs of the attempts that it ran, so
// Search asks the members, first the one that Consul names, and reads this host's logs from disk if
// its daemon does not answer. Show prints one attempt, the newest unless another was asked for.
// With --follow it waits for more output, then for the next attempt, until the task ends.
//
//   find_task() --> node, attempt --> Search: members --> best log --> Show: read, print, wait
//       ^                                  |                                  |
//       |                                  +-- none yet: watch the key --+    |
//       +----------------------------------------------------------------+----+ with --follow
//
// An attempt is known by its fencing token, which grows from attempt to attempt: the newest log has
// the highest, whichever host kept it. A task of the same id that is written later has another
// CreateIndex, and is not followed.

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/host_name.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "cluster/admin_client.h"
#include "exec/output_log.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using exec::StoredLog;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr auto kLookEvery = 500ms;
constexpr std::size_t kMaxBytes = 1U << 20U;
constexpr std::chrono::milliseconds kStartWait = 2s;

struct LogsOptions {
  std::string id;
  bool follow = false;
  std::optional<std::uint32_t> attempt;  // std::nullopt: the newest
  std::string node;                      // empty: any
};

// The output logs of one task on one host, read by a member's admin API or from this host's disk,
// which does not show whether the attempt runs. Every call blocks.
class LogSource {
 public:
  LogSource(cluster::AdminClient admin, const std::string& queue, const std::string& id)
      : admin_(std::move(admin)),
        target_("/v1/logs?queue=" + wire::query_value(queue) + "&id=" + wire::query_value(id)) {}
  LogSource(const std::string& state_dir, std::string queue, std::string id)
      : directory_(state_dir + "/logs"), queue_(std::move(queue)), id_(std::move(id)) {}

  [[nodiscard]] bool local() const { return !admin_; }

  // Oldest first; the newest attempt has the highest fencing token. Errors: kUnavailable, kTimeout,
  // kPermissionDenied, kFailed.
  [[nodiscard]] Result<std::vector<StoredLog>> list() {
    if (local()) return exec::stored_logs(directory_, queue_, id_, nullptr);
    LICTOR_TRY(const std::string body, admin_->get(target_));
    const auto answer = parse_json(body);
    const json logs = answer && answer->is_object() ? answer->value("logs", json{}) : json{};
    if (!logs.is_array()) return fail(ErrorCode::kFailed, "expected a list of logs");
    std::vector<StoredLog> entries;
    for (const json& log : logs) {
      if (!log.is_object()) continue;
      const auto number = [&](const char* name) {
        return to_number<std::uint64_t>(text_of(log, name)).value_or(0);
      };
      entries.push_back({{},
                         static_cast<std::uint32_t>(number("attempt")),
                         number("token"),
                         number("size"),
                         parse_rfc3339(text_of(log, "modified")).value_or(WallTime{}),
                         text_of(log, "running") == "true",
                         text_of(log, "error")});
    }
    return entries;
  }

  // The output from `offset` on, at most a megabyte.
  [[nodiscard]] Result<std::string> read(const StoredLog& log, std::uint64_t offset) {
    if (local()) return exec::read_log(log.path, offset, kMaxBytes);
    return admin_->get(
        fmt::format("{}&attempt={}&token={}&offset={}", target_, log.attempt, log.token, offset));
  }

 private:
  std::optional<cluster::AdminClient> admin_;
  std::string target_;
  std::string directory_, queue_, id_;
};

// The task as Consul has it.
struct Whereabouts {
  bool known = true;           // a task or dead letter exists, or the token may not look
  bool waits_or_runs = false;  // its key is there
  std::uint32_t attempt = 0;
  std::string node{};  // that runs it or ended it; empty: unknown
  std::uint64_t index = 0, created = 0;
  std::string end{};  // of a dead or done task: "dead (exit status 1)"
};

// Without the right to read the task, all members are asked.
Result<Whereabouts> find_task(const Client& client, const std::string& id) {
  const auto found = client.api.show(id);
  const ErrorCode code = found ? ErrorCode::kFailed : found.error().code;
  if (code == ErrorCode::kNotFound) return Whereabouts{.known = false};
  if (code == ErrorCode::kPermissionDenied) return Whereabouts{};  // ask all members
  if (!found) return tl::unexpected(found.error());
  const TaskInfo& task = newest(*found);
  if (task.state < TaskState::kDead) {
    return Whereabouts{true, true, task.attempt, task.node, task.modify_index, task.create_index};
  }
  // The record of a cancelled task names its canceller instead of a host.
  const bool ran = task.state != TaskState::kCancelled;
  return Whereabouts{.node = ran ? task.node : "", .end = client::described(task)};
}

// A member's logs of the task.
struct HostLogs {
  std::string node;
  LogSource source;
  std::vector<StoredLog> logs;
};

class Search {
 public:
  Search(const Client& client, const LogsOptions& options) : client_(client), options_(options) {}

  /// Asks the members, `known_node` first.
  Result<void> run(const std::string& known_node) {
    // The leaders don't matter here.
    LICTOR_TRY(auto members,
               cluster::read_members(client_.store, client_.layout, client::Locks::unknown()));
    const std::string& wanted = options_.node.empty() ? known_node : options_.node;
    if (!wanted.empty() && !cluster::find_member(members, wanted) && wanted != client_.node) {
      unheard_.push_back(wanted + ": no member now");
    }
    // This host's daemon is down, but its logs are on disk.
    if (!cluster::find_member(members, client_.node)) {
      members.push_back({client_.node, host_name()});
    }
    std::stable_partition(members.begin(), members.end(),
                          [&](const cluster::Member& member) { return member.node == wanted; });
    for (const cluster::Member& member : members) {
      if (!options_.node.empty() && member.node != options_.node) continue;
      ask(member);
      // That node has the newest attempt; --json lists all.
      const bool found = !places_.empty() && newest(places_.back()) != nullptr;
      if (found && member.node == wanted && !client_.json) break;
    }
    return {};
  }

  /// The attempt that was asked for, else the newest, if its token is above `after`; null: not
  /// found.
  [[nodiscard]] std::pair<HostLogs*, const StoredLog*> best(std::optional<std::uint64_t> after) {
    std::pair<HostLogs*, const StoredLog*> best{};
    for (HostLogs& place : places_) {
      const StoredLog* log = newest(place);
      if (log == nullptr || (after && log->token <= *after)) continue;
      if (best.second == nullptr || log->token > best.second->token) best = {&place, log};
    }
    return best;
  }

  [[nodiscard]] const std::vector<HostLogs>& places() const { return places_; }
  /// The members that could not be asked, and why; first the one that ran the task last. Empty if
  /// all answered.
  [[nodiscard]] std::string unheard() const { return fmt::format("{}", fmt::join(unheard_, "; ")); }
  /// " (tried a: has none)": the members that answered.
  [[nodiscard]] std::string heard() const {
    return heard_.empty() ? "" : fmt::format(" (tried {})", fmt::join(heard_, "; "));
  }

 private:
  [[nodiscard]] const StoredLog* newest(const HostLogs& place) const {
    const auto it = std::find_if(place.logs.rbegin(), place.logs.rend(), [&](const StoredLog& log) {
      return !options_.attempt || log.attempt == *options_.attempt;
    });
    return it == place.logs.rend() ? nullptr : &*it;
  }

  // This host's logs are on its disk. So a daemon that is down, or that asks for another token,
  // does not hide them from its own host.
  void ask(const cluster::Member& member) {
    auto admin = cluster::open_admin(member, std::chrono::seconds{5}, client_.admin_token);
    auto taken = admin ? take(member, {*std::move(admin), client_.queue, options_.id})
                       : tl::unexpected(admin.error());
    if (!taken && member.node == client_.node && member.host == host_name()) {
      LogSource disk{client_.state_dir, client_.queue, options_.id};
      // A daemon that refuses may keep its logs in another folder, so an empty one proves nothing.
      const bool proves = taken.error().code != ErrorCode::kPermissionDenied ||
                          !disk.list().value_or(std::vector<StoredLog>{}).empty();
      if (proves) taken = take(member, std::move(disk));
    }
    if (!taken) unheard_.push_back(member.node + ": " + taken.error().message);
  }

  Result<void> take(const cluster::Member& member, LogSource source) {
    LICTOR_TRY(auto logs, source.list());
    heard_.push_back(fmt::format("{}: {}{}", member.node,
                                 logs.empty() ? "has none" : "has other attempts",
                                 source.local() ? " in " + client_.state_dir : ""));
    places_.push_back({member.node, std::move(source), std::move(logs)});
    return {};
  }

  const Client& client_;
  const LogsOptions& options_;
  std::vector<HostLogs> places_;
  std::vector<std::string> heard_, unheard_;
};

class Show {
 public:
  Show(const Client& client, const LogsOptions& options, HostLogs& place, StoredLog log)
      : client_(client), options_(options), place_(place), log_(std::move(log)) {}

  Result<int> run() {
    std::uint64_t offset = 0;
    for (;;) {
      // Asked before reading: if the attempt has ended, this reading gets all of its output.
      const bool running = options_.follow && runs();
      for (bool more = true; more;) {
        const auto bytes = place_.source.read(log_, offset);
        // An empty log is removed when the attempt ends.
        if (!bytes && bytes.error().code == ErrorCode::kNotFound && offset == 0 && log_.size == 0) {
          return printed_nothing(false);
        }
        if (!bytes) return broken_off(bytes.error());
        more = !bytes->empty();
        offset += bytes->size();
        print(*bytes);
        if (options_.follow) {
          if (auto flushed = client_.console.flush(); !flushed) {
            return tl::unexpected(std::move(flushed.error()));
          }
        }
        if (client_.console.reader_gone()) return kDone;
      }
      if (!running) break;
      std::this_thread::sleep_for(kLookEvery);
    }
    if (offset == 0) return printed_nothing(log_.running && !options_.follow);
    if (const std::string error = lost_output(); !error.empty()) {
      client_.console.report_note(fmt::format("more output of attempt {} was lost on {}: {}",
                                              log_.attempt, place_.node, error));
    }
    return kDone;
  }

 private:
  // Why not all of the output could be kept; known once the attempt has ended.
  [[nodiscard]] std::string lost_output() const {
    const auto log = entry();
    return log ? log->error : log_.error;
  }

  [[nodiscard]] int printed_nothing(bool yet) const {
    if (const std::string error = lost_output(); !error.empty()) {
      client_.console.report_note(
          fmt::format("the output of attempt {} was lost on {}: {}; if the attempt failed, "
                      "\"lictor show "
                      "{}\" has the end of it",
                      log_.attempt, place_.node, error, shell_argument(options_.id)));
      return kDone;
    }
    client_.console.report_note(fmt::format("attempt {} on {} has printed nothing{}", log_.attempt,
                                            place_.node, yet ? " yet; -f waits for it" : ""));
    return kDone;
  }

  // On a terminal a character that two pieces share shows as the escapes of its bytes.
  void print(std::string_view bytes) const {
    Console& console = client_.console;
    console.out_terminal().is_terminal ? console.print(bytes) : console.print_bytes(bytes);
  }

  // The daemon that is asked may stop as soon as the job has ended.
  Result<int> broken_off(Error error) {
    error.message = place_.node + ": " + error.message;
    if (!options_.follow) return tl::unexpected(std::move(error));
    const bool claimed = is_claimed();
    if (claimed && options_.attempt) return tl::unexpected(std::move(error));
    client_.console.report_error(
        error.message +
        (claimed ? "; if that daemon has died, the task runs again elsewhere, and this follows it"
                 : "; the attempt has ended, its last lines may be missing"));
    return kDone;
  }

  // On disk nothing shows whether an attempt still writes, so its claim in Consul decides.
  [[nodiscard]] bool is_claimed() const {
    const auto where = find_task(client_, options_.id);
    return where && where->waits_or_runs && where->node == place_.node &&
           where->attempt == log_.attempt;
  }

  // The log's entry as the daemon of its host has it now.
  [[nodiscard]] std::optional<StoredLog> entry() const {
    if (place_.source.local()) return std::nullopt;
    const auto logs = place_.source.list();
    if (!logs) return std::nullopt;
    const auto found = std::find_if(logs->begin(), logs->end(), [&](const StoredLog& log) {
      return log.token == log_.token && log.attempt == log_.attempt;
    });
    return found == logs->end() ? std::nullopt : std::optional{*found};
  }

  [[nodiscard]] bool runs() const {
    if (place_.source.local()) return is_claimed();
    const auto now = entry();
    return now && now->running;
  }

  const Client& client_;
  const LogsOptions& options_;
  HostLogs& place_;
  const StoredLog log_;
};

ordered_json search_json(const Search& search) {
  ordered_json all = ordered_json::array();
  for (const HostLogs& place : search.places()) {
    for (const StoredLog& log : place.logs) {
      all.push_back(
          {{"node", place.node},
           {"attempt", log.attempt},
           {"token", log.token},
           {"size", log.size},
           {"running", place.source.local() ? ordered_json{} : ordered_json(log.running)},
           {"modified", log.modified == WallTime{} ? ordered_json{}
                                                   : ordered_json(format_rfc3339(log.modified))}});
    }
  }
  return all;
}

tl::unexpected<Error> nothing_found(const Client& client, const LogsOptions& options,
                                    const Whereabouts& where, const Search& search) {
  if (where.waits_or_runs && where.attempt == 0) {
    return fail(ErrorCode::kNotFound,
                fmt::format("task {} in queue \"{}\" was never started; \"lictor why {}\" says "
                            "what it waits for",
                            options.id, client.queue, shell_argument(options.id)));
  }
  std::string why = search.unheard();
  if (!why.empty()) why = "it is probably where nobody could be asked: " + why;
  if (!where.known && !options.attempt && options.node.empty()) {
    return fail(
        ErrorCode::kNotFound,
        fmt::format("queue \"{}\" has no task {}, and no output of one was "
                    "found{}{}{}; a task that is done leaves the queue, and its log is removed "
                    "in time (\"logs\" in the configuration)",
                    client.queue, options.id, search.heard(), why.empty() ? "" : "; ", why));
  }
  if (why.empty()) {
    // A claimed task has an attempt number before it is started.
    why = where.waits_or_runs || options.attempt ? "the attempt has not begun, " : "";
    why +=
        "it has printed nothing, its log was removed (\"logs\" in the configuration), or its "
        "executor is no program or worker. The host that ran it keeps the output of a worker with "
        "tasks_per_process above 1 in "
        "state_dir/logs/<queue>/<executor>.worker-<time>-<number>.log";
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("no output of {}task {} in queue \"{}\" was found{}; {}",
                          options.attempt ? fmt::format("attempt {} of ", *options.attempt) : "",
                          options.id, client.queue, search.heard(), why));
}

Result<int> logs(const Client& client, const LogsOptions& options) {
  const std::string key = client.layout.task_key(options.id);
  std::optional<std::uint64_t> shown;  // the token of the newest attempt that was shown
  std::uint64_t created = 0;           // the task's CreateIndex, once it is known
  while (true) {
    LICTOR_TRY(const auto where, find_task(client, options.id));
    // Another task of this id is not followed.
    const bool lives = where.waits_or_runs && (created == 0 || where.created == created);
    if (lives) created = where.created;
    Search search{client, options};
    if (auto asked = search.run(where.node); !asked) return tl::unexpected(asked.error());
    const auto [place, log] = search.best(shown);
    const bool is_first = !shown;
    if (is_first && log != nullptr && !search.unheard().empty()) {
      client.console.report_error("there may be other attempts: " + search.unheard());
    }
    const bool may_come = options.follow && lives && (is_first || !options.attempt);
    if (log == nullptr && may_come) {
      client.console.progress(options.id + (is_first ? " has printed nothing yet"
                                                     : ": waiting for its end or next attempt"));
      LICTOR_TRY([[maybe_unused]] const auto changed,
                 client.store.watch(key, where.index, kStartWait));
      continue;
    }
    if (client.json) {
      print_json(client, {{"id", options.id}, {"logs", search_json(search)}});
    }
    if (log == nullptr && !is_first) {
      client.console.end_progress();
      if (!where.end.empty() && !options.attempt) {
        client.console.report_note(fmt::format("task {} is {}", options.id, where.end));
      }
      return kDone;
    }
    if (log == nullptr) return nothing_found(client, options, where, search);
    if (client.json) return kDone;
    client.console.end_progress();
    if (!is_first)
      client.console.report_note(fmt::format("attempt {} on {}", log->attempt, place->node));
    LICTOR_TRY(const int code, Show{client, options, *place, *log}.run());
    if (!options.follow || options.attempt || client.console.reader_gone()) return code;
    // Its job may have ended before Consul knows: the key is gone then, or another attempt comes.
    shown = log->token;
  }
}

}  // namespace

void add_logs(Commands& to) {
  auto [command, options] = to.add(
      "logs", "Print what a task's program printed",
      R"(Prints a program's output, from the member that ran it, over the members' admin APIs. --follow
goes on to the task's end, over its retries and wherever it runs next; with --attempt to the end of
that attempt. --json lists the attempts that have logs, and where they are.

Examples:
  lictor logs 42
  lictor logs 42 --follow
  lictor logs 42 --attempt 1 --node host-a
)",
      logs);
  command.argument("ID", options.id, "The task's id").required();
  command.flag("-f,--follow", options.follow, "Print until the task ends");
  command.count("--attempt", options.attempt, "The output of this attempt (default: the newest)",
                1);
  command.text("--node", options.node, "Ask only this member", "NODE");
}

}  // namespace lictor::cli
