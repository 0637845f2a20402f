#include <algorithm>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/host_name.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json_output.h"
#include "cli/log_source.h"
#include "cli/member_list.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

constexpr auto kFollowWait = 10s;  // for more output, in one request
constexpr std::chrono::milliseconds kStartWait = 2s;

// What Consul says of the task.
struct Whereabouts {
  bool known = true;           // there is such a task, or a dead letter of it, or we may not look
  bool waits_or_runs = false;  // its key is there
  bool claimed = false;
  std::uint32_t attempt = 0;
  std::string node;  // that runs it, or that buried it; empty: nobody knows
  std::uint64_t index = 0;
};

Result<Whereabouts> find_task(const Client& client, const std::string& id) {
  Whereabouts where;
  const auto found = client.api.show(id);
  // Who may not look is still helped by asking everybody.
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
  bool local = false;  // read from this host's disk, which cannot tell what runs
};

class Search {
 public:
  Search(const Client& client, const LogsOptions& options) : client_(client), options_(options) {}

  /// Asks who may have them: first of all the node that is known to.
  Result<void> run(const std::string& known_node) {
    places_.clear();
    tried_.clear();
    unheard_.clear();
    likeliest_.clear();
    auto members = read_members(client_);
    if (!members) return tl::unexpected(std::move(members.error()));
    const auto listed = [&](const std::string& node) {
      return std::any_of(members->begin(), members->end(),
                         [&](const Member& member) { return member.node == node; });
    };
    const std::string& wanted = options_.node.empty() ? known_node : options_.node;
    if (!wanted.empty() && !listed(wanted) && wanted != options_.own_node) {
      tried_.push_back(wanted + ": no member now");
      likeliest_ = tried_.back();
    }
    // Its daemon is down, and what it wrote is still here.
    if (!listed(options_.own_node))
      members->push_back({options_.own_node, host_name(), {}, {}, {}, {}, {}});
    std::stable_partition(members->begin(), members->end(),
                          [&](const Member& member) { return member.node == wanted; });
    for (const Member& member : *members) {
      if (!options_.node.empty() && member.node != options_.node) continue;
      const bool asked = ask(member);
      if (!asked && member.node == wanted) likeliest_ = tried_.back();
      // Where it runs, or ended, the newest attempt is; the list is of all.
      const bool found = !places_.empty() && newest(places_.back()) != nullptr;
      if (found && member.node == wanted && !client_.json) break;
    }
    return {};
  }

  /// The attempt that was asked for, else the newest: nothing, if nobody has it.
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
  /// Those who could not be asked, and why: they may have what is newer. Empty: all answered.
  [[nodiscard]] const std::string& unheard() const { return unheard_; }
  /// The same of those who most likely have it: who ran it last, if that could not be asked.
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

  // False: it could not be asked, as is the last that was tried then.
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

  // What went wrong; empty: nothing.
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

// Output as it comes in pieces, which may split a character.
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
  // How many bytes at the end begin a character of which more may come.
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
      // Asked before reading: of one that has ended, all that is read then is all there is.
      const bool running = options_.follow && runs();
      auto wait = 0s;
      while (true) {
        auto bytes = place_.source->read(log_, offset, wait);
        // The log of who printed nothing goes with its end.
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
      all.push_back(
          {{"node", place.node},
           {"attempt", log.attempt},
           {"token", log.token},
           {"size", log.size},
           {"running", place.local ? ordered_json{} : ordered_json(log.running)},
           {"modified", log.modified.empty() ? ordered_json{} : ordered_json(log.modified)}});
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
    auto where = find_task(client, options.id);
    if (!where) return tl::unexpected(std::move(where.error()));
    if (auto asked = search.run(where->node); !asked) return tl::unexpected(asked.error());
    const auto [place, log] = search.best();
    if (log != nullptr && !search.unheard().empty()) {
      client.console.complain("there may be other attempts: " + search.unheard());
    }
    const bool may_come = options.follow && where->waits_or_runs;
    if (client.json && (log != nullptr || !may_come)) {
      client.console.print(
          json_document({{"queue", client.queue}, {"id", options.id}, {"logs", json_of(search)}}));
      return log != nullptr ? Result<int>{kDone}
                            : Result<int>{nothing_found(client, options, *where, search)};
    }
    if (log != nullptr) {
      client.console.end_progress();
      return Show{client, options, *place, *log}.run();
    }
    if (!may_come) return nothing_found(client, options, *where, search);
    client.console.progress(options.id + " has printed nothing yet");
    if (auto watched =
            client.store.watch(client.layout.task_key(options.id), where->index, kStartWait);
        !watched) {
      return tl::unexpected(watched.error());
    }
  }
}

}  // namespace lictor::cli
