// What the leader's admin face reports of the queue: stats and events.

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/faces.h"
#include "cli/json_output.h"
#include "cli/process.h"
#include "wire/json_text.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr auto kAskEvery = 500ms;
constexpr auto kShowEvery = 2s;

// What the leader answers. Errors: nobody leads, or the leader cannot be asked from here.
Result<json> ask(const Client& client, const std::string& target, std::string* node = nullptr) {
  LeaderFace leader = leader_face(client);
  if (!leader.face) return fail(leader.code, leader.why_not);
  if (node != nullptr) *node = leader.node;
  auto body = leader.face->get(target);
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

// "2026-11-21T12:00:03.120Z  failed  task-7  Mail  attempt 2  again in 5s: exit status 1"
std::string line_of(const json& event) {
  std::string line = text_of(event, "at") + "  " + text_of(event, "event");
  for (const char* name : {"task", "type"}) {
    if (const std::string text = text_of(event, name); !text.empty()) line += "  " + text;
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

}  // namespace

Result<int> stats(const Client& client) {
  std::string node;
  LICTOR_TRY(const auto status, ask(client, "/v1/status", &node));
  json queue;
  for (const json& each : status.value("queues", json::array())) {
    if (text_of(each, "name") == client.queue) queue = each;
  }
  if (!queue.is_object() || text_of(queue, "role") == "following") {
    return fail(ErrorCode::kFailed,
                node + " no longer leads queue \"" + client.queue + "\"; run this again");
  }
  if (client.json) {
    ordered_json told{{"queue", client.queue}, {"leader", node}};
    for (const auto& [name, value] : queue.items()) {
      if (name != "name") told[name] = value;
    }
    client.console.print(json_document(told));
    return kDone;
  }
  Table table{{"WHAT", "VALUE"}};
  table.add_row({{"leader"}, {node}});
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
  return kDone;
}

Result<int> watch(Console& console, const std::function<Result<int>()>& show) {
  for (;;) {
    if (console.out_terminal().is_terminal) console.print_bytes("\x1b[H\x1b[2J");
    const auto shown = show();
    if (!shown) console.complain(shown.error().message);  // it may pass
    if (auto handed = console.hand_out(); !handed) return tl::unexpected(handed.error());
    if (console.reader_gone()) return kDone;
    std::this_thread::sleep_for(kShowEvery);
  }
}

Result<int> events(const Client& client, const EventsOptions& options) {
  const std::string target =
      "/v1/events?format=json&queue=" + wire::query_value(client.queue) + "&after=";
  std::string last;
  std::string trouble;
  std::string followed;  // the leader that the last event is from
  std::string newest;    // its time
  for (;;) {             // with --follow until a signal ends the process
    std::string node;
    const auto answer = ask(client, target + wire::query_value(last), &node);
    if (!answer && !options.follow) return tl::unexpected(answer.error());
    // While nobody leads there is nothing to follow; say so once.
    if (!answer && answer.error().message != std::exchange(trouble, answer.error().message)) {
      client.console.complain(trouble + "; still trying");
    }
    if (answer) {
      trouble.clear();
      // A new leader also has events from before it led; skip those that are older.
      const std::string since = std::exchange(followed, node) == node ? "" : newest;
      for (const json& event : answer->value("events", json::array())) {
        const std::string at = text_of(event, "at");
        if (at < since) continue;
        newest = std::max(newest, at);
        if (client.json) {
          client.console.print_line(event.dump(-1, ' ', true, json::error_handler_t::replace));
        } else {
          client.console.print_line(line_of(event));
        }
      }
      last = text_of(*answer, "next");
      if (auto handed = client.console.hand_out(); !handed) return tl::unexpected(handed.error());
    }
    if (!options.follow || client.console.reader_gone()) return kDone;
    std::this_thread::sleep_for(kAskEvery);
  }
}

}  // namespace lictor::cli
