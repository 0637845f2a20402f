// The queue on a full screen, by the admin API of a daemon of this host, else of the leader.
//
// Two threads, so that keys work while a daemon or Consul does not answer:
//
//   main thread                              asker
//   draw every 200 ms or at a key  <-------- view_: refreshed each second, and after an order
//   key --> question_ --y--> order_ ---------> carried out; its text becomes message_
//
// All state between them is under mutex_; the asker gives it up while it asks, and works on a copy
// of the view. The asker reads /v1/queues first: if that says that Consul is away, it does not ask
// for the lists, since each would wait for its time-out.
//
// A request cannot be called off. So if one is under way when the user quits, the terminal is
// restored and the process ends without waiting for it.

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "cli/screen.h"
#include "cli/top_page.h"
#include "cluster/admin_client.h"
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

// Stands on the last line until it is answered.
struct Question {
  std::string text;
  std::function<std::string()> act;  // by the asker
};

// The screen's state machine and its asker. run() is for the main thread.
class Top {
 public:
  Top(const Client& client, Screen& screen)
      : client_(client),
        screen_(screen),
        daemons_(client.stored(), client.admin_token, client.admin_addresses),
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
      if (chosen().is_null()) move(0);  // the chosen row is gone
      draw();
      lock.unlock();
      const Screen::Input input = screen_.read(kDrawEvery);
      lock.lock();
      // A signal and the end of the input have no character; they end a question, too.
      if (input.key == Screen::Key::kQuit && (!question_ || input.character == 0)) break;
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
      TopView view = view_;
      view.state = kTopStates.at(list_);
      asking_ = true;
      asked_at_ = boot_now();
      lock.unlock();
      const std::string answer = order ? order() : std::string{};
      refresh(view);
      next = boot_now() + kEvery;
      lock.lock();
      asking_ = false;
      view_ = std::move(view);
      if (order) show_note(answer);
    }
  }

  // The asker runs `order`, and its text is shown. A new order replaces one that has not begun.
  void give(std::function<std::string()> order) {
    order_ = std::move(order);
    changed_.notify_one();
  }

  void show_note(std::string message) {
    message_ = std::move(message);
    said_at_ = boot_now();
  }

  void on_key(const Screen::Input& input) {
    using Key = Screen::Key;
    if (question_) return on_answer(input);
    message_.clear();
    if (input.key == Key::kUp || input.key == Key::kDown) move(input.key == Key::kUp ? -1 : 1);
    switch (input.character) {
      case 'p':
        return pause_or_resume();
      case 'w':
        return ask_why();
      case 'c':
        return cancel();
      case 'r':
        return retry();
      case 't':
        list_ = (list_ + 1) % kTopStates.size();
        return give([] { return std::string{}; });
      default:
        return;
    }
  }

  // Any key but y leaves the question without an answer.
  void on_answer(const Screen::Input& input) {
    if (input.key == Screen::Key::kResized) return;
    const Question question = *std::exchange(question_, std::nullopt);
    if (input.character == 'y') give(question.act);
  }

  // The chosen row in the lists as they are now; null if none is chosen or the row is gone.
  [[nodiscard]] json chosen() const {
    for (const json* list : {&view_.tasks, &view_.dead}) {
      for (const json& task : top_rows(*list)) {
        if (text_of(task, "key") == chosen_) return task;
      }
    }
    return {};
  }
  [[nodiscard]] static bool is_dead(const json& task) { return text_of(task, "state") == "dead"; }

  // `chosen_` is a key and not a row: rows move when tasks start and end.
  void move(int by) {
    std::vector<std::string> all;
    for (const json* list : {&view_.tasks, &view_.dead}) {
      for (const json& task : top_rows(*list)) all.push_back(text_of(task, "key"));
    }
    if (all.empty()) return chosen_.clear();
    const auto at = std::find(all.begin(), all.end(), chosen_);
    const auto last = static_cast<std::ptrdiff_t>(all.size()) - 1;
    const std::ptrdiff_t index = at == all.end() ? 0 : at - all.begin() + by;
    chosen_ = all[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(index, 0, last))];
  }

  void pause_or_resume() {
    const bool paused = view_.queue.contains("paused") && !view_.queue["paused"].is_null();
    question_ = {(paused ? "resume queue " : "pause queue ") + client_.queue + "? y/n", [=, this] {
                   const auto done = paused ? client_.api.resume() : client_.api.pause();
                   return !done    ? done.error().message
                          : paused ? std::string{"resumed"}
                                   : std::string{"paused; p resumes"};
                 }};
  }

  // The question keeps the id of the chosen task: the list may move before it is answered.
  void cancel() {
    const json task = chosen();
    if (task.is_null() || is_dead(task)) return show_note("choose a running or waiting task first");
    const std::string id = text_of(task, "id");
    const bool running = text_of(task, "state") == "running";
    question_ = {"cancel " + id + (running ? "? Its job is stopped. y/n" : "? y/n"), [this, id] {
                   const auto cancelled = client_.api.cancel(id);
                   return cancelled ? "cancelled " + id : cancelled.error().message;
                 }};
  }

  void retry() {
    const json task = chosen();
    if (task.is_null() || !is_dead(task)) return show_note("choose one of the failures first");
    const std::string id = text_of(task, "id");
    question_ = {"run " + id + " again? y/n", [this, id] {
                   const auto retried = client_.api.retry(id);
                   return retried ? id + " waits again" : retried.error().message;
                 }};
  }

  void ask_why() {
    const json task = chosen();
    if (task.is_null()) return show_note("choose a task first");
    const std::string id = text_of(task, "id");
    if (is_dead(task)) {
      return show_note(id + ": " + text_of(task, "reason") + ": " + text_of(task, "error"));
    }
    give([this, id] {
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

  // Runs on the asker, without the mutex. A list that cannot be read stays as it was, and `trouble`
  // says why.
  void refresh(TopView& view) {
    const std::string queue = "queue=" + wire::query_value(client_.queue);
    const auto answer = daemons_.get("/v1/queues?" + queue);
    view.trouble = answer ? "" : answer.error().message;
    if (!answer) return;
    const json queues = answer->is_object() ? answer->value("queues", json{}) : json{};
    const bool fits = queues.is_array() && !queues.empty() && queues[0].is_object();
    view.queue = fits ? queues[0] : json::object();
    for (const json& finding : json_member(view.queue, "findings")) {
      if (text_of(finding, "kind") == "consul") return;  // the lists would wait for it
    }
    const std::string rows = std::to_string(screen_.size().rows);
    if (const auto page =
            daemons_.get("/v1/tasks?state=" + view.state + "&limit=" + rows + '&' + queue)) {
      view.tasks = *page;
    } else {
      view.trouble = page.error().message;
    }
    const std::string failures = std::to_string(kShownFailures);
    if (const auto page = daemons_.get("/v1/dead?limit=" + failures + '&' + queue)) {
      view.dead = *page;
    }
  }

  void draw() {
    const Page page = top_page({client_, view_, chosen_, screen_.size()});
    Page last;
    if (question_) {
      last.add(printable(question_->text), Style::kYellow);
    } else if (asking_ && boot_now() - asked_at_ > kLate) {
      last.add(
          "not up to date: no answer for " + rounded_duration(boot_now() - asked_at_) + "; q quits",
          Style::kRed);
    } else if (!view_.trouble.empty()) {
      last.add("not up to date: " + printable(view_.trouble), Style::kRed);
    } else if (!message_.empty() && boot_now() < said_at_ + kMessageStays) {
      last.add(printable(client_.console.suggesting(message_)), Style::kBold);
    } else {
      last.add("up, down choose  w why  c cancel  r retry  t " +
                   std::string{kTopStates.at((list_ + 1) % kTopStates.size())} +
                   "  p pause or resume  q quit",
               Style::kDim);
    }
    screen_.draw(page, last);
  }

  const Client& client_;
  Screen& screen_;
  cluster::DaemonClients daemons_;  // the asker's
  std::mutex mutex_;                // guards the members below
  std::condition_variable changed_;
  TopView view_;
  std::size_t list_ = 0;  // of kTopStates: which tasks are wanted
  std::string chosen_;    // key
  std::optional<Question> question_;
  std::function<std::string()> order_;  // for the asker
  std::string message_;                 // the answer to the last key
  Instant said_at_{}, asked_at_{};
  bool asking_ = false, ending_ = false;
  std::thread asker_;
};

Result<int> top(const Client& client) {
  auto screen = Screen::open();
  if (!screen) return tl::unexpected(std::move(screen.error()));
  auto top = std::make_unique<Top>(client, **screen);
  if (!top->run()) return kDone;
  screen->reset();    // the terminal as it was
  std::_Exit(kDone);  // nobody reads the reply that is still pending
}

}  // namespace

void add_top(Commands& to) {
  to.add("top", "Watch a queue on the full screen",
         R"(Shows leader, members, counts, what is wrong, running jobs and the newest failures.
Asks the daemon of this host, else the leader. Keys: up and down choose a task, w tells why it is
not running, c cancels it, r runs a failed one again, t shows the waiting tasks, then the scheduled
ones, p pauses the queue or resumes it, q quits. Each change is asked about first; "lictor pause"
takes a reason.

Examples:
  lictor top
  lictor top --queue night
)",
         top, {.before_threads = Screen::block_signals});
}

}  // namespace lictor::cli
