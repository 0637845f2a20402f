// Events of the queue, from the admin APIs of its leaders.
//
// Each daemon keeps the newest events of its own, so the leaders have the events of a queue. Each
// reading asks all leaders at once, from the cursor that each gave last, and joins the answers by
// time. A leader's last events come after it has released its lock: it is asked for kFollowFormer
// longer.
//
//   locks --> leaders now, and of the last 10 s --> /v1/events?after=<cursor of each>
//                                               --> joined by time, filtered, printed
//                                               --> half a second later again, with --follow
//
// A new leader also has events from before it led. Events older than the newest one shown are left
// out, so that the printed times never go back.

#include <algorithm>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "cluster/admin_client.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kAskEvery = 500ms;

struct EventsOptions {
  bool follow = false;              // until a signal
  std::string task, type;           // only of this id, this type; empty: all
  std::optional<WallTime> since;    // only from then on
  std::optional<std::size_t> last;  // the newest N of the kept events
};

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

// The events of all leaders, in the order of time.
class EventReader {
 public:
  EventReader(const Client& client, const EventsOptions& options)
      : client_(client),
        options_(options),
        last_(options.last),
        target_("/v1/events?format=json&queue=" + wire::query_value(client.queue) + "&after=") {}

  // Shows new events. Errors: some leader could not be asked; the events of the others are shown.
  Result<void> read() {
    cluster::LeaderClients at_work{client_.stored(), client_.admin_token};
    const Instant now = boot_now();
    std::vector<cluster::LeaderClient> asked = at_work.all();
    const std::size_t leading = asked.size();
    for (const cluster::LeaderClient& leader : asked) {
      if (!leader.node.empty()) leaders_[leader.node].led_at = now;
    }
    std::erase_if(leaders_,
                  [&](const auto& each) { return each.second.led_at + kFollowFormer < now; });
    for (const auto& [node, leader] : leaders_) {
      if (leader.led_at != now) asked.push_back(at_work.member(node));
    }
    std::vector<Result<json>> answers(asked.size());
    cluster::ask_each(asked.size(), [&](std::size_t i) {
      const auto known = leaders_.find(asked[i].node);
      const std::string after = known == leaders_.end() ? "" : known->second.next;
      answers[i] = asked[i].get(target_ + wire::query_value(after));
    });

    const std::string since = newest_;
    std::vector<json> events;
    std::optional<Error> trouble;
    bool answered = false;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (answers[i]) {
        answered = true;
        take(*answers[i], leaders_[asked[i].node].next, since, events);
      } else if (i < leading) {
        trouble = std::move(answers[i].error());
      }
    }
    std::erase_if(events, [&](const json& event) { return !wanted(event); });
    std::stable_sort(events.begin(), events.end(), [](const json& a, const json& b) {
      return text_of(a, "at") < text_of(b, "at");
    });
    if (last_ && events.size() > *last_) {
      events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(*last_));
    }
    if (answered) last_.reset();  // what comes later is shown
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

  // A new leader also has events from before it led; leaves out events older than `since`.
  void take(json& answer, std::string& next, const std::string& since, std::vector<json>& events) {
    const bool is_new = next.empty();
    if (const auto missed = count_member(answer, "missed"); missed != 0) {
      client_.console.report_note(fmt::format(
          "up to {} came too fast to be shown: a daemon keeps the newest 1,000 of its queues",
          counted(missed, "event")));
    }
    for (json& event : answer["events"]) {
      const std::string at = text_of(event, "at");
      newest_ = std::max(newest_, at);
      if (!is_new || at >= since) events.push_back(std::move(event));
    }
    next = text_of(answer, "next");
  }

  // An event in another form than this version knows is shown rather than hidden.
  [[nodiscard]] bool wanted(const json& event) const {
    if (!event.is_object()) return true;
    if (!options_.task.empty() && text_of(event, "task_id") != options_.task) return false;
    if (!options_.type.empty() && text_of(event, "type") != options_.type) return false;
    return !options_.since || parse_rfc3339(text_of(event, "at")) >= options_.since;
  }

  // With --json, prints an event a line as the daemon gave it, so that a program can read the
  // stream.
  void show(const json& event) {
    client_.console.print_line(
        client_.json ? event.dump(-1, ' ', true, json::error_handler_t::replace) : line_of(event));
  }

  const Client& client_;
  const EventsOptions& options_;
  std::optional<std::size_t> last_;
  bool shown_ = false;  // some event was shown
  const std::string target_;
  std::map<std::string, Leader> leaders_;  // that lead, or led a little while ago
  std::string newest_;                     // the time of the newest event
};

// With --follow an error is reported once, and reading goes on: a leader may be elected soon.
Result<int> events(const Client& client, const EventsOptions& options) {
  EventReader reader{client, options};
  std::string trouble;
  for (;;) {  // with --follow until a signal ends the process
    const auto read = reader.read();
    if (!read && !options.follow) return tl::unexpected(read.error());
    // While nobody leads there is nothing to follow; say so once.
    const std::string before = std::exchange(trouble, read ? "" : read.error().message);
    if (!trouble.empty() && trouble != before)
      client.console.report_error(trouble + "; still trying");
    if (auto handed = client.console.flush_keep_progress(); !handed)
      return tl::unexpected(handed.error());
    if (!options.follow && !reader.shown() && !client.json) {
      client.console.note(
          "no such event is kept: a daemon keeps the newest 1,000 of its own, and a new leader has "
          "none of the leader before it");
    }
    if (!options.follow || client.console.reader_gone()) return kDone;
    std::this_thread::sleep_for(kAskEvery);
  }
}

}  // namespace

void add_events(Commands& to) {
  auto [command, options] = to.add(
      "events", "Show what happened in a queue: claims, starts, ends, failures, leaders",
      R"(Asks the queue's leaders, which keep the last 1,000 events of their daemons. --follow also
prints new events until Ctrl-C, and goes on with a new leader. Daemons keep no event of a queue that
they do not serve, and none from before their start.

Examples:
  lictor events --task 42
  lictor events --since 10m --type Notify -n 20
  lictor events --follow --json | jq -r 'select(.event == "failed") | .task_id'
)",
      events);
  command.flag("-f,--follow", options.follow, "Also print new events, until Ctrl-C");
  command.text("--task", options.task, "Only those of this task", "ID");
  command.text("--type", options.type, "Only those of tasks of this type", "TYPE");
  command.since("--since", options.since,
                "Only from this time on: RFC 3339, or a duration until now (10m)");
  command.count("-n", options.last, "Of those that are kept only the newest N", 1);
}

}  // namespace lictor::cli
