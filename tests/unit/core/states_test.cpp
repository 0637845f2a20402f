// The manual, concepts.md, "The states": its tables name exactly the core's states, its arrows are
// the core's, and each cell of events and states is tried here.

#include <array>
#include <fstream>
#include <sstream>

#include "alone.h"
#include "core/tasks/task_state.h"

namespace lictor::core::test {
namespace {

using Cells = std::vector<std::string>;

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

Cells split(const std::string& text, char at) {
  Cells parts;
  std::istringstream stream{text};
  for (std::string part; std::getline(stream, part, at);) parts.push_back(trimmed(part));
  return parts;
}

// The rows of the table of the manual that begins with `head`, heads first.
std::vector<Cells> table_of_manual(const std::string& head) {
  std::ifstream page{LICTOR_CONCEPTS};
  REQUIRE(page);
  std::vector<Cells> rows;
  for (std::string line; std::getline(page, line);) {
    if (rows.empty() && !line.starts_with(head)) continue;
    if (!line.starts_with("|")) break;
    if (line.starts_with("| ---")) continue;
    Cells cells = split(line, '|');
    cells.erase(cells.begin());  // before the first bar
    rows.push_back(std::move(cells));
  }
  REQUIRE(!rows.empty());
  return rows;
}

// One task, "1", that is in some state; another one, "0", may keep the only slot.
struct World : Alone {
  explicit World(QueueOptions options) : Alone(std::move(options)) {}

  std::string state() { return daemon.queue ? daemon.queue->state_text("tasks/1") : "no daemon"; }
  // The visible state of the task: the daemon's, or its end in the store.
  std::string outcome() {
    if (cluster.store.dead.contains("dead/1")) return "dead letter: " + dead("dead/1").reason;
    if (cluster.store.task("tasks/1") == nullptr) return "gone";
    if (!daemon.queue || !daemon.queue->holds_lock()) {
      const Stamp& stamp = cluster.store.task("tasks/1")->stamp;
      return stamp.taken ? "stays, taken" : "stays";
    }
    return state();
  }
  void put(std::function<void(Task&)> change = {}) {
    Task& task = cluster.make("1");
    if (expires) task.expire_at = cluster.wall() + 1h;
    if (change) change(task);
    cluster.store.put(task);
    cluster.run_for(100ms);
  }
  bool expires = false;
};

using Happening = std::function<void(World&)>;

void behind_another(World& w) {
  w.cluster.put_and_run("0", 100ms);
  w.put();
}

const std::map<std::string, Happening>& setups() {
  static const std::map<std::string, Happening> all{
      {"ready", behind_another},
      {"scheduled",
       [](World& w) {
         // Any later it would be distant, unless it expires first.
         w.put(w.cluster.due_in(w.expires ? std::chrono::minutes{2h} : 1min));
       }},
      {"claimed", behind_another},
      {"running", [](World& w) { w.put(); }},
      {"retrying",
       [](World& w) {
         w.put([](Task& task) { task.backoff = Backoff{2h, 2h, 1, 0}; });
         w.end_and_run("tasks/1", 100ms, JobEnding::kRetry);
       }},
      {"ending",
       [](World& w) {
         w.put();
         w.cluster.fault = [](const Daemon&, const Effect& effect) {
           return Fault{.out = finishes(effect, "tasks/1") ? Duration{500ms} : Duration{1ms}};
         };
         w.end_and_run("tasks/1", 10ms);
       }},
  };
  return all;
}

struct Row {
  Happening happens;
  std::array<std::string, 6> outcomes;  // in the manual's columns; empty: so is the cell
  bool expires = false;
};

void rewrite(World& w) {
  Task& task = w.cluster.make("1");
  task.record = std::make_shared<const std::string>("rewritten");
  if (w.state() == "scheduled") task.execute_at = w.cluster.wall() + 2min;
  w.cluster.store.put(task);
  w.cluster.run_for(1s);
}

const std::map<std::string, Row>& rows() {
  static const std::map<std::string, Row> all{
      // ready, scheduled, claimed, running, retrying, ending
      {"its time comes",
       {[](World& w) {
          if (w.cluster.job("tasks/0") != nullptr) w.cluster.end_job(w.daemon, "tasks/0");
          w.cluster.run_for(2h);
        },
        {"running", "running", "running", "", "running", ""}}},
      {"its job ends well, also after its time-out",
       {[](World& w) { w.end_and_run("tasks/1", 1s); }, {"", "", "", "gone", "", ""}}},
      {"its job fails, or times out",
       {[](World& w) { w.end_and_run("tasks/1", 100ms, JobEnding::kRetry); },
        {"", "", "", "retrying", "", ""}}},
      {"its host cannot start it",
       {[](World& w) { w.end_and_run("tasks/1", 100ms, JobEnding::kNotStarted); },
        {"", "", "", "ready", "", ""}}},
      {"`expireAt` passes",
       {[](World& w) {
          w.cluster.run_for(1h + 1s);
          if (w.state() == "claimed") w.end_and_run("tasks/0", 1s);
        },
        {"dead letter: expired", "dead letter: expired", "dead letter: expired", "running",
         "retrying", "gone"},
        true}},
      {"key deleted, `cancel`",
       {[](World& w) { w.cluster.remove_and_run("tasks/1", 1s); },
        {"gone", "gone", "gone", "gone", "gone", "gone"}}},
      {"key rewritten",
       {rewrite, {"ready", "scheduled", "claimed", "running", "running", "running"}}},
      {"owner killed",
       {[](World& w) {
          w.cluster.crash(w.daemon);
          w.cluster.run_for(1s);
        },
        {"stays", "stays", "stays, taken", "stays, taken", "stays", "gone"}}},
      {"lease lost",
       {[](World& w) {
          w.cluster.kill_session();
          w.cluster.run_for(1s);
        },
        {"stays", "stays", "stays, taken", "stays, taken", "stays", "stays, taken"}}},
      {"paused",
       {[](World& w) { w.cluster.pause_and_run(true, 1s); },
        {"ready", "scheduled", "ready", "running", "retrying", "gone"}}},
      {"daemon stopped, step-down",
       {[](World& w) {
          w.cluster.tell(w.daemon, StopRequested{});
          w.cluster.run_for(100ms);
          if (w.cluster.job("tasks/0") != nullptr) w.cluster.end_job(w.daemon, "tasks/0");
          w.cluster.run_for(35s);
        },
        {"stays", "stays", "stays", "stays", "stays", "gone"}}},
  };
  return all;
}

TEST_CASE("the manual: the states of a task and the next states of each are the core's") {
  const auto table = table_of_manual("| state | what it means |");
  std::map<std::string, TaskState> by_name;
  for (std::size_t i = 0; i < kTaskStates; ++i) {
    by_name.emplace(name_of(static_cast<TaskState>(i)), static_cast<TaskState>(i));
  }
  std::set<std::string> told;
  for (std::size_t i = 1; i < table.size(); ++i) {
    const std::string& name = table[i].at(0);
    CAPTURE(name);
    REQUIRE(by_name.contains(name));
    CHECK(told.insert(name).second);
    std::set<std::string> becomes;
    for (const std::string& next : split(table[i].at(2), ',')) {
      if (next.empty() || next == "-") continue;
      if (next != "read again") {
        becomes.insert(next);
        continue;
      }
      becomes.insert({"foreign", "distant", "waiting", "ignored", "unreadable"});
    }
    std::set<std::string> expected;
    for (const auto& [other, state] : by_name) {
      if (may_become(by_name.at(name), state)) expected.insert(other);
    }
    CHECK(becomes == expected);
  }
  CHECK(told.size() == kTaskStates);

  const auto lacks = table_of_manual("| shown as | what it lacks |");
  REQUIRE(lacks.size() == kLacks + 1);
  for (std::size_t i = 0; i < kLacks; ++i) {
    CHECK(lacks[i + 1].at(0) == name_of(static_cast<Lack>(i)));
  }
}

TEST_CASE("the manual: the outcome of each event in each state of a task is the core's") {
  const auto table = table_of_manual("| what happens | ready |");
  const Cells& states = table.front();
  CHECK(table.size() == rows().size() + 1);
  for (std::size_t i = 1; i < table.size(); ++i) {
    const std::string& event = table[i].at(0);
    CAPTURE(event);
    REQUIRE(rows().contains(event));
    const Row& row = rows().at(event);
    for (std::size_t column = 1; column < states.size(); ++column) {
      const std::string& state = states[column];
      CAPTURE(state);
      const bool told = column < table[i].size() && !table[i][column].empty();
      const std::string& outcome = row.outcomes.at(column - 1);
      REQUIRE(told == !outcome.empty());
      if (!told) continue;
      QueueOptions options = options_of("a");
      if (state == "claimed") options.prefetch = 1;
      World world{options};
      world.expires = row.expires;
      setups().at(state)(world);
      REQUIRE(world.state() == state);
      row.happens(world);
      CHECK(world.outcome() == outcome);
    }
  }
}

}  // namespace
}  // namespace lictor::core::test
