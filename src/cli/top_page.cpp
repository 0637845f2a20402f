// Draws the screen of top_page.h from top to bottom. Findings come before tasks, and tasks get the
// lines that findings leave.

#include "cli/top_page.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "cli/json_output.h"
#include "cluster/diagnosis.h"
#include "cluster/member.h"

namespace lictor::cli {
namespace {

using nlohmann::json;

std::string since_text(const std::string& time) {
  const auto at = parse_rfc3339(time);
  return at ? relative_time(*at, wall_now()) : std::string{};
}

std::string how_long(const std::string& time) {
  const auto at = parse_rfc3339(time);
  return at ? rounded_duration(std::max(wall_now() - *at, std::chrono::milliseconds{0}))
            : std::string{};
}

// `text` in lines of at most `width`, each after `indent`.
std::string indented(std::string_view text, std::size_t width, const std::string& indent) {
  std::string lines;
  const std::size_t room = width > indent.size() ? width - indent.size() : 1;
  for (const std::string& line : wrapped(text, room)) lines += indent + line + '\n';
  return lines;
}

// Empty if a daemon of another version sends another form.
cluster::Partitions partitions_in(const json& list) {
  cluster::Partitions partitions;
  for (const json& each : list.is_array() ? list : json::array()) {
    if (each.is_number_unsigned()) partitions.push_back(each.get<std::uint32_t>());
  }
  return partitions;
}

// The leaders of a queue with partitions, and whether each partition has one.
struct Leads {
  std::string text;  // empty: the queue has one partition
  bool complete = true;
};
Leads leads_of(const json& queue) {
  const json& leaders = json_member(queue, "leaders");
  if (!leaders.is_array() || leaders.size() < 2) return {};
  cluster::Partitions free;
  std::set<std::string> nodes;
  for (std::uint32_t i = 0; i < leaders.size(); ++i) {
    const std::string node = leaders[i].is_object() ? text_of(leaders[i], "node") : "";
    if (node.empty()) {
      free.push_back(i);
    } else {
      nodes.insert(node);
    }
  }
  if (!free.empty()) return {"nobody leads " + cluster::partitions_text(free), false};
  return {counted(leaders.size(), "partition") + ", led by " + counted(nodes.size(), "daemon")};
}

// Whether the daemons have an executor for the type, or say nothing of their executors.
bool has_executor(const json& queue, const std::string& type) {
  const json& types = json_member(queue, "types");
  return !types.is_array() || std::find(types.begin(), types.end(), "*") != types.end() ||
         std::find(types.begin(), types.end(), type) != types.end();
}

// `"Mail" (3), "Older" (1)`: the types of tasks that nobody runs.
// The finding counts the tasks without an executor; the list knows their types.
std::string idle_types(const TopView& view) {
  std::vector<std::string> idle;
  for (const auto& [type, count] : json_member(view.tasks, "types").items()) {
    if (type.empty() || has_executor(view.queue, type)) continue;  // unreadable tasks have none
    idle.push_back(fmt::format("\"{}\" ({})", type, count.dump()));
  }
  return cluster::some(idle);
}

class Drawing {
 public:
  explicit Drawing(const TopScene& scene) : scene_(scene) {}

  [[nodiscard]] Page page() const {
    Page page;
    head(page);
    const std::size_t used = findings(page);
    const std::size_t failures = top_rows(scene_.view.dead).size();
    // Head and foot take ten lines.
    const std::size_t rows = scene_.size.rows;
    const std::size_t room = rows > failures + used + 12 ? rows - failures - used - 12 : 1;
    std::string title;
    for (const char c : scene_.view.state) title += static_cast<char>(c - 'a' + 'A');
    page.add('\n' + title + '\n', Style::kBold);
    add_tasks(page, scene_.view.tasks, room, scene_.view.state);
    page.add("\nNEWEST FAILURES\n", Style::kBold);
    add_tasks(page, scene_.view.dead, failures, "dead");
    return page;
  }

 private:
  void head(Page& page) const {
    const json& queue = scene_.view.queue;
    page.add("queue " + scene_.client.queue, Style::kBold);
    const std::string leader = text_of(queue, "leader");
    const bool unknown = queue.empty() || !text_of(queue, "fleet_error").empty();
    const bool leads_here = json_member(queue, "leads_here") == true;
    const Leads leads = leads_of(queue);
    const bool partitioned = !leads.text.empty();
    page.add(unknown && leads_here ? "   the daemon asked leads, as far as it knows"
             : unknown             ? "   who leads is not known"
             : partitioned         ? "   " + leads.text
             : leader.empty()
                 ? "   nobody leads"
                 : "   " + leader + " leads, elected " + since_text(text_of(queue, "leads_since")),
             (partitioned ? !leads.complete : leader.empty()) ? Style::kRed : Style::kPlain);
    page.add(!json_member(queue, "paused").is_null() ? "   PAUSED\n" : "\n", Style::kYellow);
    std::string members = "members";
    for (const json& member : json_member(queue, "members")) {
      members += "  " + text_of(member, "node");
      const cluster::Partitions own = partitions_in(json_member(member, "partitions"));
      if (partitioned && !own.empty()) members += " (leads " + cluster::ranges(own) + ')';
      if (partitioned && json_member(member, "draining") == true) members += " (draining)";
      if (!text_of(member, "doubt").empty()) members += " (silent)";
    }
    page.add(printable(members) + '\n');
    const json& counts = json_member(scene_.view.tasks, "counts");
    std::string line = counts.is_object() ? "tasks" : "tasks  not read yet";
    for (const char* state : {"running", "waiting", "scheduled", "dead"}) {
      if (!counts.is_object()) break;
      line += std::string{"  "} + state + ' ' + std::to_string(count_member(counts, state));
    }
    page.add(line + '\n');
    const json& status = json_member(queue, "status");
    if (status.is_object() && status.contains("activity")) {
      const json& last = json_member(status["activity"], "last_minute");
      std::string rates = "last minute";
      for (const char* what : {"started", "done", "failed", "dead"}) {
        rates += std::string{"  "} + what + ' ' + std::to_string(count_member(last, what));
      }
      const auto lease = std::chrono::milliseconds{count_member(status, "lease_left_ms")};
      page.add(rates + "   lease left " +
               format_duration(std::chrono::floor<std::chrono::seconds>(lease)) + '\n');
    } else {
      page.add(text_of(queue, "leader_silent") + '\n', Style::kDim);
    }
    workers(page, json_member(status, "workers"));
  }

  // "workers  Invoice: 1 busy, 1 idle"
  static void workers(Page& page, const json& types) {
    std::multimap<std::pair<std::uint64_t, std::uint64_t>, std::string, std::greater<>> all;
    for (const auto& [type, counts] : types.items()) {
      std::vector<std::string> states;
      std::uint64_t total = 0;
      for (const char* state : {"busy", "idle", "starting", "ending"}) {
        const auto count = count_member(counts, state);
        if (count != 0) states.push_back(fmt::format("{} {}", count, state));
        total += count;
      }
      all.emplace(
          std::pair{count_member(counts, "busy"), total},
          fmt::format("{}: {}", printable(type),
                      states.empty() ? "none" : fmt::format("{}", fmt::join(states, ", "))));
    }
    std::vector<std::string> busiest_first;  // the line is cut at the width of the screen
    for (auto& [count, text] : all) busiest_first.push_back(std::move(text));
    if (!all.empty()) page.add(fmt::format("workers  {}\n", fmt::join(busiest_first, "   ")));
  }

  // Takes a third of the screen at most: the keys work on the tasks. Returns the number of lines.
  std::size_t findings(Page& page) const {
    const std::size_t most = std::max<std::size_t>(scene_.size.rows / 3, 2);
    std::size_t room = most;
    std::size_t left_out = 0;
    for (const json* of : {&scene_.view.queue, &scene_.view.tasks}) {
      for (const json& finding : json_member(*of, "findings")) {
        if (!add_finding(page, finding, room)) ++left_out;
      }
    }
    if (left_out == 0) return most - room;
    page.add(fmt::format("! {}: \"lictor check\" has them\n", counted(left_out, "more finding")),
             Style::kYellow);
    return most - room + 1;
  }

  // False: it does not fit into `room`, the lines that are left.
  bool add_finding(Page& page, const json& finding, std::size_t& room) const {
    const std::string types =
        text_of(finding, "kind") == "no_executor" ? idle_types(scene_.view) : std::string{};
    const std::string what = text_of(finding, "what") + (types.empty() ? "" : ": " + types);
    const bool error = text_of(finding, "severity") == "error";
    const std::size_t width = scene_.size.columns;
    std::string text = indented(printable(what), width, "  ");
    text.front() = '!';
    const std::string remedy = indented(
        printable(scene_.client.console.suggesting(text_of(finding, "remedy"))), width, "  ");
    const auto lines = [](const std::string& part) {
      return static_cast<std::size_t>(std::count(part.begin(), part.end(), '\n'));
    };
    if (lines(text) > room) return false;
    room -= lines(text);
    page.add(text, error ? Style::kRed : Style::kYellow);
    if (lines(remedy) > room) return true;
    room -= lines(remedy);
    page.add(remedy, Style::kDim);
    return true;
  }

  void add_tasks(Page& page, const json& list, std::size_t most, const std::string& state) const {
    const bool running = state == "running", dead = state == "dead";
    Table table{{"  ID", "TYPE",
                 running                ? "FOR"
                 : state == "scheduled" ? "DUE"
                                        : "WHEN",
                 "ATTEMPT", "NODE", running ? "" : "ERROR"}};
    std::size_t shown = 0;
    const json tasks = top_rows(list);
    for (const json& task : tasks) {
      if (shown++ == most) break;
      const bool is_chosen = text_of(task, "key") == scene_.chosen;
      const Style style = is_chosen ? Style::kBold : Style::kPlain;
      const std::string when = json_member(task, "orphan") == true ? "orphan"
                               : running            ? how_long(text_of(task, "since"))
                               : dead               ? since_text(text_of(task, "since"))
                               : state == "waiting" ? since_text(text_of(task, "time"))
                                                    : since_text(text_of(task, "due"));
      table.add_row({{(is_chosen ? "> " : "  ") + text_of(task, "id"), style},
                     {text_of(task, "type"), style},
                     {when, style},
                     {text_of(task, "attempt"), style},
                     {text_of(task, "node"), style},
                     {running ? "" : text_of(task, "error"), style}});
    }
    if (tasks.empty()) {
      page.add(list.contains("tasks") ? "  none\n" : "  not read yet\n", Style::kDim);
    } else {
      page.add(table.render(scene_.size.columns));
      const std::size_t found = std::max<std::size_t>(count_member(list, "found"), tasks.size());
      if (!dead && found > most) page.add(fmt::format("  and {} more\n", found - most));
    }
  }

  const TopScene& scene_;
};

}  // namespace

json top_rows(const json& list) { return json_member(list, "tasks"); }

Page top_page(const TopScene& scene) { return Drawing{scene}.page(); }

}  // namespace lictor::cli
