// What the leaders' admin at_work report of the queue: stats and events.

#include <algorithm>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/process.h"
#include "cluster/admin_client.h"
#include "wire/json_text.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr auto kAskEvery = 500ms;
constexpr auto kShowEvery = 2s;

// What the leader answers. Errors: nobody leads, or the leader cannot be asked from here.
Result<json> ask(cluster::LeaderClient& leader, const std::string& target) {
  if (!leader.admin) {
    const auto& [code, why] = leader.admin.error();
    return fail(code, why + (code == ErrorCode::kNotFound ? "; \"lictor leader\" says why" : ""));
  }
  auto body = leader.admin->get(target);
  if (!body) return fail(ErrorCode::kFailed, leader.node + ": " + body.error().message);
  auto answer = wire::parse_json(*body);
  if (!answer || !answer->is_object()) {
    return fail(ErrorCode::kFailed, leader.node + " answered something other than a JSON object");
  }
  return *std::move(answer);
}

std::string duration_text(const json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number_integer()) return {};
  return format_duration(std::chrono::milliseconds{it->get<std::int64_t>()});
}

// "2026-11-21T12:00:03.120Z  leading  partition 3", and
// "2026-11-21T12:00:03.120Z  failed  task-7  Mail  attempt 2  again in 5s: exit status 1"
std::string line_of(const json& event) {
  std::string line = text_of(event, "at") + "  " + text_of(event, "event");
  if (const std::string partition = text_of(event, "partition"); !partition.empty()) {
    line += "  partition " + partition;
  }
  const std::string id = text_of(event, "task_id");
  for (const std::string& text :
       {id.empty() ? text_of(event, "task") : id, text_of(event, "type")}) {
    if (!text.empty()) line += "  " + text;
  }
  if (const std::string attempt = text_of(event, "attempt"); !attempt.empty()) {
    line += "  attempt " + attempt;
  }
  for (const auto& [name, words] : {std::pair{"took_ms", "took"},
                                    {"again_in_ms", "again in"},
                                    {"claimed_for_ms", "claimed for"},
                                    {"left_ms", "left"}}) {
    const std::string length = duration_text(event, name);
    if (!length.empty()) line += fmt::format("  {} {}", words, length);
  }
  if (const std::string text = text_of(event, "text"); !text.empty()) line += ": " + text;
  return line;
}

// Of the queue, by one of its leaders.
Result<json> status_of(const Client& client, cluster::LeaderClient& leader) {
  LICTOR_TRY(const auto status, ask(leader, "/v1/status"));
  for (const json& each : status.value("queues", json::array())) {
    if (text_of(each, "name") != client.queue || text_of(each, "role") == "following") continue;
    return each;
  }
  return fail(ErrorCode::kFailed,
              leader.node + " no longer leads queue \"" + client.queue + "\"; run this again");
}

std::uint64_t count_in(const json& object, const std::string& name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
}

// Adds what another leader counts: sums, the longest times, the shortest lease.
void add_status(json& into, const json& from) {
  for (const auto& [name, value] : from.items()) {
    json& own = into[name];
    if (own.is_null() || value == true || value == "leading") {  // paused, role
      own = value;
    } else if (name == "lease_left_ms") {
      own = std::min(own, value);
    } else if (name.ends_with("_ms")) {
      own = std::max(own, value);
    } else if (own.is_object() && value.is_object()) {
      for (const auto& [state, count] : value.items()) {
        own[state] = count_in(own, state) + count_in(value, state);
      }
    } else if (own.is_array() && value.is_array()) {
      own.insert(own.end(), value.begin(), value.end());
      std::sort(own.begin(), own.end());
    } else if (own.is_number_unsigned() && name != "partitions") {
      own = count_in(into, name) + count_in(from, name);
    }
  }
}

}  // namespace

Result<int> stats(const Client& client) {
  cluster::LeaderClients at_work{client.stored(), client.admin_token};
  const std::vector<cluster::LeaderClient*> leaders = at_work.all();
  std::vector<Result<json>> answers(leaders.size());
  cluster::ask_each(leaders.size(),
                    [&](std::size_t i) { answers[i] = status_of(client, *leaders[i]); });
  json queue;
  std::vector<std::string> nodes, silent;
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    if (!answers[i]) {
      silent.push_back(answers[i].error().message);
      continue;
    }
    nodes.push_back(leaders[i]->node);
    if (queue.is_null()) {
      queue = *std::move(answers[i]);
    } else {
      add_status(queue, *answers[i]);
    }
  }
  if (nodes.empty()) return tl::unexpected(std::move(answers.front().error()));
  const cluster::Partitions free = cluster::free_partitions(at_work.locks());
  if (client.json) {
    ordered_json told{{"queue", client.queue},
                      {"leader", nodes.size() == 1 ? ordered_json(nodes.front()) : ordered_json{}},
                      {"leaders", nodes}};
    for (const auto& [name, value] : queue.items()) {
      if (name != "name") told[name] = value;
    }
    told["free"] = free;
    told["not_counted"] = silent;
    client.console.print(json_document(told));
    return kDone;
  }
  Table table{{"WHAT", "VALUE"}};
  table.add_row(
      {{nodes.size() == 1 ? "leader" : "leaders"}, {fmt::format("{}", fmt::join(nodes, ", "))}});
  table.add_row({{"paused"}, {queue.value("paused", false) ? "yes" : "no"}});
  table.add_row({{"lease left"}, {duration_text(queue, "lease_left_ms")}});
  table.add_row({{"first due task waits for"}, {duration_text(queue, "oldest_due_ms")}});
  table.add_row({{"jobs running"}, {text_of(queue, "running")}});
  table.add_row({{"claimed, not started"}, {text_of(queue, "claimed_ahead")}});
  table.add_row({{"ended, not yet written"}, {text_of(queue, "unacked")}});
  const json states = queue.value("states", json::object());
  for (const auto& [state, count] : states.items()) {
    table.add_row({{"tasks " + state}, {count.dump()}});
  }
  client.console.print(table.render(client.console.width()));
  for (const std::string& why : silent) client.console.note("not counted: " + why);
  if (!free.empty()) {
    client.console.note(fmt::format("not counted: nobody leads {}; see \"lictor leader\"",
                                    cluster::partitions_text(free)));
  }
  return kDone;
}

Result<int> watch(Console& console, const std::function<Result<int>()>& show) {
  for (;;) {
    if (console.out_terminal().moves) console.print_bytes("\x1b[H\x1b[2J");
    const auto shown = show();
    if (!shown) console.complain(shown.error().message);  // it may pass
    if (auto handed = console.hand_out(); !handed) return tl::unexpected(handed.error());
    if (console.reader_gone()) return kDone;
    std::this_thread::sleep_for(kShowEvery);
  }
}

namespace {

// The events of all leaders, in the order of time.
class EventReader {
 public:
  EventReader(const Client& client, const EventsOptions& options)
      : client_(client),
        options_(options),
        last_(options.last),
        target_("/v1/events?format=json&queue=" + wire::query_value(client.queue) + "&after=") {}

  // Shows what is new. Errors: some leader could not be asked; the events of the others are shown.
  Result<void> read() {
    cluster::LeaderClients at_work{client_.stored(), client_.admin_token};
    const Instant now = boot_now();
    std::vector<cluster::LeaderClient*> asked = at_work.all();
    const std::size_t leading = asked.size();
    for (const cluster::LeaderClient* leader : asked) {
      if (!leader->node.empty()) leaders_[leader->node].led_at = now;
    }
    std::erase_if(leaders_,
                  [&](const auto& each) { return each.second.led_at + kFollowFormer < now; });
    for (const auto& [node, leader] : leaders_) {
      if (leader.led_at != now) asked.push_back(&at_work.former(node));
    }
    std::vector<Result<json>> answers(asked.size());
    cluster::ask_each(asked.size(), [&](std::size_t i) {
      const auto known = leaders_.find(asked[i]->node);
      const std::string after = known == leaders_.end() ? "" : known->second.next;
      answers[i] = ask(*asked[i], target_ + wire::query_value(after));
    });

    const std::string since = newest_;
    std::vector<json> events;
    std::optional<Error> trouble;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (answers[i]) {
        take(*answers[i], leaders_[asked[i]->node].next, since, events);
      } else if (i < leading) {
        trouble = std::move(answers[i].error());
      }
    }
    std::erase_if(events, [&](json& event) { return !wanted(event); });
    std::stable_sort(events.begin(), events.end(), [](const json& a, const json& b) {
      return text_of(a, "at") < text_of(b, "at");
    });
    if (last_ && events.size() > *last_) {
      events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(*last_));
    }
    last_.reset();  // what comes later is shown
    shown_ = shown_ || !events.empty();
    for (json& event : events) {
      if (at_work.locks().count() == 1 && event.is_object()) event.erase("partition");
      show(event);
    }
    if (trouble) return tl::unexpected(*std::move(trouble));
    return {};
  }

  [[nodiscard]] bool shown() const { return shown_; }

 private:
  // A leader's last events come after it has released its lock.
  static constexpr auto kFollowFormer = 10s;

  struct Leader {
    std::string next;  // the cursor; empty: it has not answered yet
    Instant led_at{};  // when we last saw it lead
  };

  // A new leader also has events from before it led; leaves out those that are older than `since`.
  void take(json& answer, std::string& next, const std::string& since, std::vector<json>& events) {
    const bool is_new = next.empty();
    for (json& event : answer["events"]) {
      const std::string at = text_of(event, "at");
      newest_ = std::max(newest_, at);
      if (!is_new || at >= since) events.push_back(std::move(event));
    }
    next = text_of(answer, "next");
  }

  // Daemons of an earlier version tell the key alone.
  [[nodiscard]] bool wanted(json& event) const {
    if (!event.is_object()) return true;
    const std::string key = text_of(event, "task");
    if (const auto id = client_.layout.task_id(key); id && !event.contains("task_id")) {
      event["task_id"] = *id;
    }
    if (!options_.task.empty() && text_of(event, "task_id") != options_.task) return false;
    if (!options_.type.empty() && text_of(event, "type") != options_.type) return false;
    return !options_.since || parse_rfc3339(text_of(event, "at")) >= options_.since;
  }

  void show(const json& event) {
    client_.console.print_line(
        client_.json ? event.dump(-1, ' ', true, json::error_handler_t::replace) : line_of(event));
  }

  const Client& client_;
  const EventsOptions& options_;
  std::optional<std::size_t> last_;
  bool shown_ = false;  // some event was
  const std::string target_;
  std::map<std::string, Leader> leaders_;  // that lead, or led a little while ago
  std::string newest_;                     // the time of the newest event
};

}  // namespace

Result<int> events(const Client& client, const EventsOptions& options) {
  EventReader reader{client, options};
  std::string trouble;
  for (;;) {  // with --follow until a signal ends the process
    const auto read = reader.read();
    if (!read && !options.follow) return tl::unexpected(read.error());
    // While nobody leads there is nothing to follow; say so once.
    const std::string before = std::exchange(trouble, read ? "" : read.error().message);
    if (!trouble.empty() && trouble != before) client.console.complain(trouble + "; still trying");
    if (auto handed = client.console.hand_out(); !handed) return tl::unexpected(handed.error());
    if (!options.follow && !reader.shown() && !client.json) {
      client.console.note(
          "no such event is kept: a daemon keeps the newest 1,000 of its own, and a new leader has "
          "none of the leader before it");
    }
    if (!options.follow || client.console.reader_gone()) return kDone;
    std::this_thread::sleep_for(kAskEvery);
  }
}

}  // namespace lictor::cli
