#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/host_name.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/member_list.h"
#include "cli/process.h"
#include "exec/output_log.h"
#include "exec/stored_logs.h"
#include "wire/json_text.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using nlohmann::ordered_json;

// One attempt's output.
struct LogEntry {
  std::uint32_t attempt = 0;
  std::uint64_t token = 0;  // the fencing token: the newest attempt has the highest
  std::uint64_t size = 0;   // bytes until now
  bool running = false;
  std::string modified;  // RFC 3339; empty: nothing was printed yet
};

// The output logs of one task on one host. Every call blocks.
class LogSource {
 public:
  virtual ~LogSource() = default;

  // Oldest first. Errors: kUnavailable, kTimeout, kPermissionDenied, kFailed.
  [[nodiscard]] virtual Result<std::vector<LogEntry>> list() = 0;
  // What there is from `offset` on, at most about a megabyte; where there is nothing and the
  // attempt runs, waits up to `wait` for more.
  [[nodiscard]] virtual Result<std::string> read(const LogEntry& log, std::uint64_t offset,
                                                 std::chrono::seconds wait) = 0;
};

constexpr auto kLookEvery = 200ms;
constexpr std::size_t kMaxBytes = 1U << 20U;

class RemoteLogs : public LogSource {
 public:
  RemoteLogs(AdminClient face, std::string target)
      : face_(std::move(face)), target_(std::move(target)) {}

  Result<std::vector<LogEntry>> list() override {
    LICTOR_TRY(auto body, face_.get(target_));
    const auto answer = wire::parse_json(body);
    const json logs = answer && answer->is_object() ? answer->value("logs", json{}) : json{};
    if (!logs.is_array())
      return fail(ErrorCode::kFailed, "expected a list of logs, got another answer");
    std::vector<LogEntry> entries;
    for (const json& log : logs) {
      const auto number = [&](const char* name) -> std::uint64_t {
        const auto it = log.find(name);
        return it != log.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
      };
      if (!log.is_object()) continue;
      const json running = log.value("running", json{});
      const json modified = log.value("modified", json{});
      entries.push_back({static_cast<std::uint32_t>(number("attempt")), number("token"),
                         number("size"), running.is_boolean() && running.get<bool>(),
                         modified.is_string() ? modified.get<std::string>() : std::string{}});
    }
    return entries;
  }

  Result<std::string> read(const LogEntry& log, std::uint64_t offset,
                           std::chrono::seconds wait) override {
    return face_.get(target_ + "&attempt=" + std::to_string(log.attempt) + "&token=" +
                         std::to_string(log.token) + "&offset=" + std::to_string(offset) +
                         "&wait=" + std::to_string(wait.count()),
                     wait);
  }

 private:
  AdminClient face_;
  const std::string target_;
};

class LocalLogs : public LogSource {
 public:
  LocalLogs(std::string directory, std::string queue, std::string id)
      : directory_(std::move(directory)), queue_(std::move(queue)), id_(std::move(id)) {}

  Result<std::vector<LogEntry>> list() override {
    LICTOR_TRY(auto logs, exec::stored_logs(directory_, queue_, id_, nullptr));
    std::vector<LogEntry> entries;
    for (const exec::StoredLog& log : logs) {
      entries.push_back({log.attempt, log.token, log.size, false, format_rfc3339(log.modified)});
    }
    return entries;
  }

  Result<std::string> read(const LogEntry& log, std::uint64_t offset,
                           std::chrono::seconds wait) override {
    const std::string path = exec::output_log_path(directory_, queue_, id_, log.attempt, log.token);
    auto bytes = exec::read_log(path, offset, kMaxBytes);
    if (bytes && bytes->empty() && wait > 0s) {
      std::this_thread::sleep_for(kLookEvery);
      bytes = exec::read_log(path, offset, kMaxBytes);
    }
    return bytes;
  }

 private:
  const std::string directory_, queue_, id_;
};

Result<std::unique_ptr<LogSource>> remote_logs(std::vector<std::string> addresses,
                                               const std::string& queue, const std::string& id) {
  LICTOR_TRY(auto face, AdminClient::open(std::move(addresses)));
  return std::make_unique<RemoteLogs>(
      std::move(face),
      "/v1/logs?queue=" + wire::query_value(queue) + "&id=" + wire::query_value(id));
}

// Reports nothing as running.
std::unique_ptr<LogSource> local_logs(const std::string& state_dir, const std::string& queue,
                                      const std::string& id) {
  return std::make_unique<LocalLogs>(state_dir + "/logs", queue, id);
}

constexpr auto kFollowWait = 10s;  // for more output, in one request
constexpr std::chrono::milliseconds kStartWait = 2s;

// What Consul says of the task.
struct Whereabouts {
  bool known = true;           // a task or dead letter exists, or the token may not look
  bool waits_or_runs = false;  // its key is there
  bool claimed = false;
  std::uint32_t attempt = 0;
  std::string node;  // that runs it or ended it; empty: unknown
  std::uint64_t index = 0;
};

Result<Whereabouts> find_task(const Client& client, const std::string& id) {
  Whereabouts where;
  const auto found = client.api.show(id);
  // Without that right, ask all members.
  if (!found && (found.error().code == ErrorCode::kNotFound ||
                 found.error().code == ErrorCode::kPermissionDenied)) {
    where.known = found.error().code != ErrorCode::kNotFound;
    return where;
  }
  if (!found) return tl::unexpected(found.error());
  const TaskInfo& task = found->front();
  if (task.state < TaskState::kDead) {
    where.waits_or_runs = true;
    where.node = task.node;
    where.claimed = !task.node.empty();
    where.attempt = task.attempt;
    where.index = task.modify_index;
    return where;
  }
  const auto newest =
      std::max_element(found->begin(), found->end(),
                       [](const TaskInfo& a, const TaskInfo& b) { return a.since < b.since; });
  where.node = newest->node;
  return where;
}

// A member's logs of the task.
struct Place {
  std::string node;
  std::unique_ptr<LogSource> source;
  std::vector<LogEntry> logs;
  bool local = false;  // read from this host's disk; whether it runs is unknown
};

class Search {
 public:
  Search(const Client& client, const LogsOptions& options) : client_(client), options_(options) {}

  /// Asks the members, `known_node` first.
  Result<void> run(const std::string& known_node) {
    places_.clear();
    tried_.clear();
    unheard_.clear();
    likeliest_.clear();
    LICTOR_TRY(auto members, read_members(client_));
    const auto listed = [&](const std::string& node) {
      return std::any_of(members.begin(), members.end(),
                         [&](const Member& member) { return member.node == node; });
    };
    const std::string& wanted = options_.node.empty() ? known_node : options_.node;
    if (!wanted.empty() && !listed(wanted) && wanted != options_.own_node) {
      tried_.push_back(wanted + ": no member now");
      likeliest_ = tried_.back();
    }
    // This host's daemon is down, but its logs are on disk.
    if (!listed(options_.own_node))
      members.push_back({options_.own_node, host_name(), {}, {}, {}, {}, {}});
    std::stable_partition(members.begin(), members.end(),
                          [&](const Member& member) { return member.node == wanted; });
    for (const Member& member : members) {
      if (!options_.node.empty() && member.node != options_.node) continue;
      const bool asked = ask(member);
      if (!asked && member.node == wanted) likeliest_ = tried_.back();
      // That node has the newest attempt; --json lists all.
      const bool found = !places_.empty() && newest(places_.back()) != nullptr;
      if (found && member.node == wanted && !client_.json) break;
    }
    return {};
  }

  /// The attempt that was asked for, else the newest; null: not found.
  [[nodiscard]] std::pair<const Place*, const LogEntry*> best() const {
    std::pair<const Place*, const LogEntry*> best{};
    for (const Place& place : places_) {
      const LogEntry* log = newest(place);
      if (log != nullptr && (best.second == nullptr || log->token > best.second->token)) {
        best = {&place, log};
      }
    }
    return best;
  }

  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  /// The members that could not be asked, and why. Empty: all answered.
  [[nodiscard]] const std::string& unheard() const { return unheard_; }
  /// The same of the node that ran it last, if that could not be asked; else unheard().
  [[nodiscard]] const std::string& likeliest() const {
    return likeliest_.empty() ? unheard_ : likeliest_;
  }
  [[nodiscard]] std::string tried() const {
    std::string text;
    for (const std::string& one : tried_) text += (text.empty() ? "" : "; ") + one;
    return text;
  }

 private:
  [[nodiscard]] const LogEntry* newest(const Place& place) const {
    const auto it = std::find_if(place.logs.rbegin(), place.logs.rend(), [&](const LogEntry& log) {
      return !options_.attempt || log.attempt == *options_.attempt;
    });
    return it == place.logs.rend() ? nullptr : &*it;
  }

  // False: it could not be asked; tried_.back() says why.
  bool ask(const Member& member) {
    const Reach reach = reach_of(member, host_name());
    std::string why = reach.why_not;
    if (!reach.addresses.empty()) {
      auto source = remote_logs(reach.addresses, client_.queue, options_.id);
      why = source ? take(member, std::move(*source), false) : source.error().message;
      if (why.empty()) return true;
    }
    if (member.node == options_.own_node && member.host == host_name()) {
      auto source = local_logs(options_.state_dir, client_.queue, options_.id);
      why = take(member, std::move(source), true);
      if (why.empty()) return true;
    }
    tried_.push_back(member.node + ": " + why);
    unheard_ += (unheard_.empty() ? "" : "; ") + tried_.back();
    return false;
  }

  // The error; empty: none.
  std::string take(const Member& member, std::unique_ptr<LogSource> source, bool local) {
    auto logs = source->list();
    if (!logs) return logs.error().message;
    tried_.push_back(member.node + (logs->empty() ? ": has none" : ": has other attempts") +
                     (local ? " in " + options_.state_dir : ""));
    places_.push_back({member.node, std::move(source), std::move(*logs), local});
    return {};
  }

  const Client& client_;
  const LogsOptions& options_;
  std::vector<Place> places_;
  std::vector<std::string> tried_;
  std::string unheard_, likeliest_;
};

// Prints output in pieces, which may split a character.
class Printer {
 public:
  explicit Printer(Console& console) : console_(console) {}

  void print(std::string_view bytes) {
    if (!console_.out_terminal().is_terminal) return console_.print_bytes(bytes);
    const std::string text = held_ + std::string{bytes};
    const std::size_t whole = text.size() - unfinished(text);
    console_.print(std::string_view{text}.substr(0, whole));
    held_ = text.substr(whole);
  }
  void end() {
    console_.print(held_);
    held_.clear();
  }

 private:
  // The size of an incomplete character at the end.
  static std::size_t unfinished(std::string_view text) {
    for (std::size_t n = 1; n <= std::min<std::size_t>(3, text.size()); ++n) {
      const auto byte = static_cast<unsigned char>(text[text.size() - n]);
      if ((byte & 0xc0U) == 0x80U) continue;  // inside a character
      const std::size_t length = byte >= 0xf0U ? 4 : byte >= 0xe0U ? 3 : byte >= 0xc0U ? 2 : 1;
      return length > n ? n : 0;
    }
    return 0;
  }

  Console& console_;
  std::string held_;
};

class Show {
 public:
  Show(const Client& client, const LogsOptions& options, const Place& place, LogEntry log)
      : client_(client), options_(options), place_(place), log_(std::move(log)) {}

  Result<int> run() {
    Printer printer{client_.console};
    std::uint64_t offset = 0;
    while (true) {
      // Asked before reading: if it has ended, this read gets everything.
      const bool running = options_.follow && runs();
      auto wait = 0s;
      while (true) {
        auto bytes = place_.source->read(log_, offset, wait);
        // An empty log is removed when the attempt ends.
        if (!bytes && bytes.error().code == ErrorCode::kNotFound && offset == 0 && log_.size == 0) {
          return printed_nothing(false);
        }
        if (!bytes) return broken_off(printer, std::move(bytes.error()));
        offset += bytes->size();
        printer.print(*bytes);
        if (auto flushed = options_.follow ? client_.console.flush() : Result<void>{}; !flushed) {
          return tl::unexpected(std::move(flushed.error()));
        }
        if (client_.console.reader_gone()) return kDone;
        if (wait > 0s || (bytes->empty() && !running)) break;
        if (bytes->empty()) wait = kFollowWait;
      }
      if (!running) break;
    }
    printer.end();
    return offset == 0 ? printed_nothing(log_.running && !options_.follow) : kDone;
  }

 private:
  [[nodiscard]] int printed_nothing(bool yet) const {
    client_.console.note("lictor: attempt " + std::to_string(log_.attempt) + " on " + place_.node +
                         " has printed nothing" + (yet ? " yet; -f waits for it" : ""));
    return kDone;
  }

  // The daemon that is asked may stop as soon as the job has ended.
  Result<int> broken_off(Printer& printer, Error error) {
    printer.end();
    error.message = place_.node + ": " + error.message;
    if (!options_.follow || is_claimed()) return tl::unexpected(std::move(error));
    client_.console.complain(error.message +
                             "; the attempt has ended, its last lines may be missing");
    return kDone;
  }

  [[nodiscard]] bool is_claimed() const {
    const auto where = find_task(client_, options_.id);
    return where && where->claimed && where->node == place_.node && where->attempt == log_.attempt;
  }

  [[nodiscard]] bool runs() const {
    if (place_.local) return is_claimed();
    const auto logs = place_.source->list();
    return logs && std::any_of(logs->begin(), logs->end(), [&](const LogEntry& log) {
             return log.token == log_.token && log.attempt == log_.attempt && log.running;
           });
  }

  const Client& client_;
  const LogsOptions& options_;
  const Place& place_;
  const LogEntry log_;
};

ordered_json json_of(const Search& search) {
  ordered_json all = ordered_json::array();
  for (const Place& place : search.places()) {
    for (const LogEntry& log : place.logs) {
      all.push_back({{"node", place.node},
                     {"attempt", log.attempt},
                     {"token", log.token},
                     {"size", log.size},
                     {"running", place.local ? ordered_json{} : ordered_json(log.running)},
                     {"modified", text_or_null(log.modified)}});
    }
  }
  return all;
}

constexpr const char* kNoLog =
    "it has printed nothing, its log was removed (\"logs\" in the configuration), or it is no "
    "program: only these have logs";

tl::unexpected<Error> nothing_found(const Client& client, const LogsOptions& options,
                                    const Whereabouts& where, const Search& search) {
  const std::string task = "task " + options.id;
  if (where.waits_or_runs && where.attempt == 0) {
    return fail(ErrorCode::kNotFound, task + " in queue \"" + client.queue +
                                          "\" was never started; \"lictor why " + options.id +
                                          "\" says what it waits for");
  }
  const std::string likeliest =
      search.likeliest().empty()
          ? std::string{}
          : "most likely it lies where it could not be asked for: " + search.likeliest();
  if (!where.known && !options.attempt && options.node.empty()) {
    return fail(ErrorCode::kNotFound,
                "queue \"" + client.queue + "\" has no " + task +
                    ", and no output of one was found (tried " + search.tried() + ")" +
                    (likeliest.empty() ? "" : "; " + likeliest) +
                    "; what is done leaves the queue, and its log is removed in time (\"logs\" in "
                    "the configuration)");
  }
  // What is claimed has a number before it is started.
  const std::string why =
      std::string{where.waits_or_runs || options.attempt ? "it was not begun yet, " : ""} + kNoLog;
  std::string what = "no output of ";
  if (options.attempt) what += "attempt " + std::to_string(*options.attempt) + " of ";
  return fail(ErrorCode::kNotFound, what + task + " in queue \"" + client.queue +
                                        "\" was found (tried " + search.tried() + "); " +
                                        (likeliest.empty() ? why : likeliest));
}

}  // namespace

Result<int> logs(const Client& client, const LogsOptions& options) {
  Search search{client, options};
  while (true) {
    LICTOR_TRY(auto where, find_task(client, options.id));
    if (auto asked = search.run(where.node); !asked) return tl::unexpected(asked.error());
    const auto [place, log] = search.best();
    if (log != nullptr && !search.unheard().empty()) {
      client.console.complain("there may be other attempts: " + search.unheard());
    }
    const bool may_come = options.follow && where.waits_or_runs;
    if (client.json && (log != nullptr || !may_come)) {
      client.console.print(
          json_document({{"queue", client.queue}, {"id", options.id}, {"logs", json_of(search)}}));
      return log != nullptr ? Result<int>{kDone}
                            : Result<int>{nothing_found(client, options, where, search)};
    }
    if (log != nullptr) {
      client.console.end_progress();
      return Show{client, options, *place, *log}.run();
    }
    if (!may_come) return nothing_found(client, options, where, search);
    client.console.progress(options.id + " has printed nothing yet");
    if (auto watched =
            client.store.watch(client.layout.task_key(options.id), where.index, kStartWait);
        !watched) {
      return tl::unexpected(watched.error());
    }
  }
}

}  // namespace lictor::cli
