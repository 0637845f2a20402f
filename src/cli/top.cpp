// The queue on a full screen, by the admin face of a daemon of this host, else of the leader.

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "cli/commands.h"
#include "cli/faces.h"
#include "cli/json_output.h"
#include "cli/process.h"
#include "cli/screen.h"
#include "wire/layout.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kEvery = 1s;
constexpr auto kDrawEvery = 200ms;
constexpr auto kLate = 3s;
constexpr auto kMessageStays = 10s;
constexpr std::size_t kShownFailures = 8;

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

// The partitions of `told`, which has none of them if it is of another version.
Partitions partitions_in(const json& told) {
  Partitions partitions;
  for (const json& each : told.is_array() ? told : json::array()) {
    if (each.is_number_unsigned()) partitions.push_back(each.get<std::uint32_t>());
  }
  return partitions;
}

// Who leads a queue of several partitions, and whether somebody leads each.
struct Leads {
  std::string text;  // empty: the queue has one
  bool complete = true;
};
Leads leads_of(const json& queue) {
  const json leaders = queue.value("leaders", json::array());
  if (!leaders.is_array() || leaders.size() < 2) return {};
  Partitions free;
  std::set<std::string> nodes;
  for (std::uint32_t i = 0; i < leaders.size(); ++i) {
    const std::string node = leaders[i].is_object() ? text_of(leaders[i], "node") : "";
    if (node.empty()) {
      free.push_back(i);
    } else {
      nodes.insert(node);
    }
  }
  if (!free.empty()) return {"nobody leads " + partitions_text(free), false};
  return {counted(leaders.size(), "partition") + ", led by " + counted(nodes.size(), "daemon")};
}

// What is shown, and why it may be old.
struct View {
  json queue = json::object();
  json running = json::object();
  json dead = json::object();
  std::string trouble;
};

// Asks on a thread of its own, so that keys work while a daemon or Consul does not answer.
class Top {
 public:
  Top(const Client& client, Screen& screen)
      : client_(client),
        screen_(screen),
        daemons_(client.store, client.layout, client.queue, client.admin_token,
                 client.admin_addresses),
        asker_([this] { ask(); }) {}

  ~Top() {
    end();
    if (asker_.joinable()) asker_.join();
  }
  Top(const Top&) = delete;
  Top& operator=(const Top&) = delete;

  // Returns whether a request is still under way.
  [[nodiscard]] bool run() {
    for (;;) {
      std::unique_lock lock{mutex_};
      if (chosen_.empty()) move(0);
      draw();
      lock.unlock();
      const Screen::Input input = screen_.read(kDrawEvery);
      lock.lock();
      if (input.key == Screen::Key::kQuit && question_.empty()) break;
      if (input.key != Screen::Key::kNone) on_key(input);
    }
    return end();
  }

 private:
  bool end() {
    const std::lock_guard lock{mutex_};
    ending_ = true;
    changed_.notify_one();
    return asking_;
  }

  void ask() {
    std::unique_lock lock{mutex_};
    for (Instant next{}; !ending_;) {
      if (!order_ && boot_now() < next) {
        changed_.wait_for(lock, next - boot_now());
        continue;
      }
      const std::function<std::string()> order = std::exchange(order_, nullptr);
      View view = view_;
      asking_ = true;
      asked_at_ = boot_now();
      lock.unlock();
      const std::string answer = order ? order() : std::string{};
      refresh(view);
      next = boot_now() + kEvery;
      lock.lock();
      asking_ = false;
      view_ = std::move(view);
      if (order) say(answer);
    }
  }

  // The asker carries it out; what it returns is shown.
  void give(std::function<std::string()> order) {
    order_ = std::move(order);
    changed_.notify_one();
  }

  void say(std::string message) {
    message_ = std::move(message);
    said_at_ = boot_now();
  }

  void on_key(const Screen::Input& input) {
    using Key = Screen::Key;
    if (!question_.empty()) {
      question_.clear();
      if (input.character != 'y') return;
      return give([this, id = chosen_] {
        const auto cancelled = client_.api.cancel(id);
        return cancelled ? "cancelled " + id : cancelled.error().message;
      });
    }
    message_.clear();
    if (input.key == Key::kUp || input.key == Key::kDown) move(input.key == Key::kUp ? -1 : 1);
    switch (input.character) {
      case 'p':
        return pause_or_resume();
      case 'w':
        return ask_why();
      case 'c':
        if (!chosen_.empty() && is_running(chosen_)) {
          question_ = "cancel " + chosen_ + "? Its job is stopped. y/n";
        } else {
          say("choose a running task first");
        }
        return;
      default:
        return;
    }
  }

  [[nodiscard]] std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    for (const json* page : {&view_.running, &view_.dead}) {
      for (const json& task : page->value("tasks", json::array()))
        ids.push_back(text_of(task, "id"));
    }
    return ids;
  }
  [[nodiscard]] bool is_running(const std::string& id) const {
    const json tasks = view_.running.value("tasks", json::array());
    return std::any_of(tasks.begin(), tasks.end(),
                       [&](const json& task) { return text_of(task, "id") == id; });
  }

  void move(int by) {
    const std::vector<std::string> all = ids();
    if (all.empty()) return chosen_.clear();
    const auto at = std::find(all.begin(), all.end(), chosen_);
    const auto last = static_cast<std::ptrdiff_t>(all.size()) - 1;
    const std::ptrdiff_t index = at == all.end() ? 0 : at - all.begin() + by;
    chosen_ = all[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(index, 0, last))];
  }

  void pause_or_resume() {
    const bool paused = view_.queue.contains("paused") && !view_.queue["paused"].is_null();
    give([this, paused]() -> std::string {
      const auto done = paused ? client_.api.resume() : client_.api.pause();
      return !done ? done.error().message : paused ? "resumed" : "paused; p resumes";
    });
  }

  void ask_why() {
    if (chosen_.empty()) return say("choose a task first");
    for (const json& task : view_.dead.value("tasks", json::array())) {
      if (text_of(task, "id") != chosen_) continue;
      return say(chosen_ + ": " + text_of(task, "reason") + ": " + text_of(task, "error"));
    }
    give([this, id = chosen_] {
      const auto why = daemons_.get("/v1/tasks/" + wire::query_value(id) +
                                    "/why?queue=" + wire::query_value(client_.queue));
      if (!why) return why.error().message;
      if (!why->is_array()) return std::string{"the daemon's answer is no list of reasons"};
      std::string reasons;
      for (const json& reason : *why) {
        reasons += (reasons.empty() ? "" : "; ") + text_of(reason, "text");
      }
      return reasons;
    });
  }

  void refresh(View& view) {
    const std::string queue = "queue=" + wire::query_value(client_.queue);
    const auto told = daemons_.get("/v1/queues?" + queue);
    view.trouble = told ? "" : told.error().message;
    if (!told) return;
    const json queues = told->is_object() ? told->value("queues", json{}) : json{};
    const bool fits = queues.is_array() && !queues.empty() && queues[0].is_object();
    view.queue = fits ? queues[0] : json::object();
    for (const json& finding : view.queue.value("findings", json::array())) {
      if (text_of(finding, "kind") == "consul") return;  // the lists would wait for it
    }
    const std::string rows = std::to_string(screen_.size().rows);
    if (const auto page = daemons_.get("/v1/tasks?state=running&limit=" + rows + '&' + queue)) {
      view.running = *page;
    } else {
      view.trouble = page.error().message;
    }
    const std::string failures = std::to_string(kShownFailures);
    if (const auto page = daemons_.get("/v1/dead?limit=" + failures + '&' + queue)) {
      view.dead = *page;
    }
  }

  void draw() {
    Page page;
    head(page);
    const std::size_t rows = screen_.size().rows;
    const std::size_t failures = view_.dead.value("tasks", json::array()).size();
    // Head and foot take ten lines.
    const std::size_t room = rows > failures + 12 ? rows - failures - 12 : 1;
    page.add("\nRUNNING\n", Style::kBold);
    add_tasks(page, view_.running, room, true);
    page.add("\nNEWEST FAILURES\n", Style::kBold);
    add_tasks(page, view_.dead, failures, false);
    Page last;
    if (!question_.empty()) {
      last.add(question_, Style::kYellow);
    } else if (asking_ && boot_now() - asked_at_ > kLate) {
      last.add(
          "not up to date: no answer for " + rounded_duration(boot_now() - asked_at_) + "; q quits",
          Style::kRed);
    } else if (!view_.trouble.empty()) {
      last.add("not up to date: " + printable(view_.trouble), Style::kRed);
    } else if (!message_.empty() && boot_now() < said_at_ + kMessageStays) {
      last.add(printable(message_), Style::kBold);
    } else {
      last.add("up, down choose  w why  c cancel  p pause or resume  q quit", Style::kDim);
    }
    screen_.draw(page, last);
  }

  void head(Page& page) const {
    const json& queue = view_.queue;
    page.add("queue " + client_.queue, Style::kBold);
    const std::string leader = text_of(queue, "leader");
    const bool unknown = queue.empty() || !text_of(queue, "fleet_error").empty();
    const bool leads_here = queue.value("leads_here", false);
    const Leads leads = leads_of(queue);
    const bool divided = !leads.text.empty();
    page.add(unknown && leads_here ? "   the daemon asked leads, as far as it knows"
             : unknown             ? "   who leads is not known"
             : divided             ? "   " + leads.text
             : leader.empty()
                 ? "   nobody leads"
                 : "   " + leader + " leads, elected " + since_text(text_of(queue, "leads_since")),
             (divided ? !leads.complete : leader.empty()) ? Style::kRed : Style::kPlain);
    page.add(queue.contains("paused") && !queue["paused"].is_null() ? "   PAUSED\n" : "\n",
             Style::kYellow);
    std::string members = "members";
    for (const json& member : queue.value("members", json::array())) {
      members += "  " + text_of(member, "node");
      const Partitions own = partitions_in(member.value("partitions", json{}));
      if (divided && !own.empty()) members += " (leads " + ranges(own) + ')';
      if (divided && member.value("draining", json{}) == true) members += " (draining)";
      if (!text_of(member, "doubt").empty()) members += " (silent)";
    }
    page.add(printable(members) + '\n');
    const json counts = view_.running.value("counts", json{});
    std::string line = counts.is_object() ? "tasks" : "tasks  not read yet";
    for (const char* state : {"running", "waiting", "scheduled", "dead"}) {
      if (!counts.is_object()) break;
      line += std::string{"  "} + state + ' ' + std::to_string(counts.value(state, 0));
    }
    page.add(line + '\n');
    const json status = queue.value("status", json{});
    if (status.is_object() && status.contains("activity")) {
      const json last = status["activity"].value("last_minute", json::object());
      std::string rates = "last minute";
      for (const char* what : {"started", "done", "failed", "dead"}) {
        rates += std::string{"  "} + what + ' ' + std::to_string(last.value(what, 0));
      }
      const auto lease = std::chrono::milliseconds{status.value("lease_left_ms", std::int64_t{0})};
      page.add(rates + "   lease left " +
               format_duration(std::chrono::floor<std::chrono::seconds>(lease)) + '\n');
    } else {
      page.add(text_of(queue, "leader_silent") + '\n', Style::kDim);
    }
    for (const json& finding : queue.value("findings", json::array())) {
      const bool error = text_of(finding, "severity") == "error";
      const std::size_t width = screen_.size().columns;
      page.add(indented("! " + printable(text_of(finding, "what")), width, ""),
               error ? Style::kRed : Style::kYellow);
      page.add(indented(printable(text_of(finding, "remedy")), width, "  "), Style::kDim);
    }
  }

  void add_tasks(Page& page, const json& list, std::size_t most, bool running) const {
    Table table{
        {"  ID", "TYPE", running ? "FOR" : "WHEN", "ATTEMPT", "NODE", running ? "" : "ERROR"}};
    std::size_t shown = 0;
    const json tasks = list.value("tasks", json::array());
    for (const json& task : tasks) {
      if (shown++ == most) break;
      const std::string id = text_of(task, "id");
      const Style style = id == chosen_ ? Style::kBold : Style::kPlain;
      table.add_row({{(id == chosen_ ? "> " : "  ") + id, style},
                     {text_of(task, "type"), style},
                     {(running ? how_long : since_text)(text_of(task, "since")), style},
                     {text_of(task, "attempt"), style},
                     {text_of(task, "node"), style},
                     {running ? "" : text_of(task, "error"), style}});
    }
    if (tasks.empty()) {
      page.add("  none\n", Style::kDim);
    } else {
      page.add(table.render(screen_.size().columns));
      if (tasks.size() > most) page.add("  and " + std::to_string(tasks.size() - most) + " more\n");
    }
  }

  const Client& client_;
  Screen& screen_;
  DaemonFaces daemons_;  // the asker's
  std::mutex mutex_;     // of all that follows
  std::condition_variable changed_;
  View view_;
  std::string chosen_;                  // id
  std::string question_;                // y does it
  std::function<std::string()> order_;  // for the asker
  std::string message_;                 // the answer to the last key
  Instant said_at_{}, asked_at_{};
  bool asking_ = false, ending_ = false;
  std::thread asker_;
};

}  // namespace

Result<int> top(const Client& client) {
  auto screen = Screen::open();
  if (!screen) return tl::unexpected(std::move(screen.error()));
  auto top = std::make_unique<Top>(client, **screen);
  if (!top->run()) return kDone;
  screen->reset();    // the terminal as it was
  std::_Exit(kDone);  // what is still asked has no reader
}

}  // namespace lictor::cli
