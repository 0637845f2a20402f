// The tasks of a queue: lists by page, and single tasks.
//
//   GET --> TaskQuestion --> one listing for all clients --> page_of(): filter, sort, cut --> JSON
//                            live, done: kept without records
//                            ?record=  : a listing of those whose record has the text
//
// 100,000 tasks are a listing of 50 MB and take Consul half a second, and an open page asks every
// few seconds. So SharedListing reads a queue once for all clients, and for 2% of the time at most.
// Each page is then cut from that listing in memory. `as_of` tells its age.
//
// The cursor of a page is the place of its last task in the order, not a number: tasks that start
// or end meanwhile move no other task to another page.
//
// Handlers run on the workers of the HTTP server, several at once. A listing is immutable once it
// is read, and shared by pointer.

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "admin/shared_listing.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/schedules.h"
#include "client/task_info.h"

namespace lictor::admin {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kPage = 50;
constexpr std::size_t kMostPage = 500;
constexpr std::size_t kMostTypes = 200;  // producers invent types without end
constexpr std::size_t kMostGroups = 200;
constexpr std::size_t kShortestRecordText = 3;
constexpr std::size_t kMostSearches = 4;  // kept, over all queues

enum class TaskList { kLive, kDead, kDone };

// A listing keeps no records.
struct TaskListing : ListingStamp {
  std::vector<TaskInfo> tasks;      // in the order of list_tasks()
  std::vector<std::string> hidden;  // prefixes below which the token may not read everything
};

// Producers may write any character of a string escaped.
bool has_text(const std::string& record, const std::string& text) {
  if (lowered(record).find(text) != std::string::npos) return true;
  if (record.find('\\') == std::string::npos) return false;
  const auto parsed = parse_json(record);
  const auto replace = ordered_json::error_handler_t::replace;
  return parsed && lowered(parsed->dump(-1, ' ', false, replace)).find(text) != std::string::npos;
}

// `done`: reads the history instead of waiting, running and dead tasks. `text`: in the record.
Result<TaskListing> read_tasks(const client::Queue& queue, bool done, const std::string& text) {
  TaskFilter filter;
  if (done) filter.state = TaskState::kDone;
  LICTOR_TRY(auto listed, client::list_tasks(queue, filter));
  if (!text.empty()) {
    std::erase_if(listed.tasks, [&](const TaskInfo& task) { return !has_text(task.record, text); });
  }
  for (TaskInfo& task : listed.tasks) {
    std::string{}.swap(task.record);
    std::string{}.swap(task.output_tail);
    std::string{}.swap(task.result);
  }
  TaskListing listing;
  listing.tasks = std::move(listed.tasks);
  listing.hidden = std::move(listed.hidden);
  return listing;
}

// The last task of a page, after which the next begins.
struct Cursor {
  client::ListRank rank;
  std::string key;

  [[nodiscard]] bool is_before(const TaskInfo& task) const {
    const auto order = rank <=> client::list_rank(task);
    return order == 0 ? key < task.key : order < 0;
  }
};

// "state:time:index:key"; the key comes last, since it may hold any byte.
std::string cursor_after(const TaskInfo& task) {
  const client::ListRank rank = client::list_rank(task);
  return fmt::format("{}:{}:{}:{}", rank.state, rank.time, rank.index, task.key);
}

std::optional<Cursor> read_cursor(const std::string& text) {
  Cursor cursor;
  const char* at = text.data();
  const char* end = at + text.size();
  const auto number = [&](auto& value) {
    const auto read = std::from_chars(at, end, value);
    if (read.ec != std::errc{} || read.ptr == end || *read.ptr != ':') return false;
    at = read.ptr + 1;
    return true;
  };
  client::ListRank& rank = cursor.rank;
  if (!number(rank.state) || !number(rank.time) || !number(rank.index)) return std::nullopt;
  cursor.key.assign(at, end);
  return cursor;
}

struct TaskQuestion {
  TaskList kind = TaskList::kLive;
  std::string state, type, reason, error, text;  // empty: any
  std::string record;                            // text in the record
  std::string schedule;                          // the schedule that made the task
  std::optional<Cursor> after;
  std::size_t limit = 0;
};

// The state's name in lists; an orphan is counted among the running tasks, too.
constexpr std::string_view kOrphans = "orphan";

bool has_state(const TaskInfo& task, const std::string& state) {
  return state == kOrphans ? task.state == TaskState::kOrphan
                           : client::state_name(task.state) == state;
}

// A dead letter's own name may end in ",<index>", so compare its task's id.
bool is_of_schedule(const TaskInfo& task, const std::string& schedule) {
  const std::string& id = task.task_id.empty() ? task.id : task.task_id;
  return id.starts_with(schedule) && client::made_by(id) == schedule;
}

bool fits(const TaskInfo& task, const TaskQuestion& question) {
  if (!question.state.empty() && !has_state(task, question.state)) return false;
  if (!question.schedule.empty() && !is_of_schedule(task, question.schedule)) return false;
  if (!question.type.empty() && task.type != question.type) return false;
  if (!question.reason.empty() && task.reason != question.reason) return false;
  if (!question.error.empty() && client::error_kind(task.error, task.reason) !=
                                     client::error_kind(question.error, task.reason)) {
    return false;
  }
  if (question.text.empty()) return true;
  return lowered(task.id).find(question.text) != std::string::npos ||
         lowered(task.type).find(question.text) != std::string::npos ||
         lowered(task.serial_key).find(question.text) != std::string::npos ||
         lowered(task.error).find(question.text) != std::string::npos;
}

ordered_json row_of(const TaskInfo& task) {
  ordered_json row = client::task_json(task);
  row.erase("bytes");  // a listing keeps no records
  if (task.error.size() > 500) row["error"] = excerpt(task.error, 500);
  return row;
}

// Tasks with equal failures, the largest group first: dead letters, or tasks that wait for another
// attempt. A group has the error of its newest task, and the first and last time.
ordered_json groups_of(const TaskListing& listing, TaskList kind) {
  struct Group {
    std::size_t count = 0;
    std::optional<WallTime> oldest, newest;
    std::string error{};  // of the newest
  };
  std::map<std::tuple<std::string, std::string, std::string>, Group> groups;
  for (const TaskInfo& task : listing.tasks) {
    const bool waits = task.state == TaskState::kWaiting || task.state == TaskState::kScheduled;
    if (kind == TaskList::kDead ? task.state != TaskState::kDead : !waits || task.error.empty()) {
      continue;
    }
    // An unreadable record has no reliable type; group by the field at fault.
    const std::string type = task.reason == "unreadable" ? std::string{} : task.type;
    Group& group = groups[{type, task.reason, client::error_kind(task.error, task.reason)}];
    ++group.count;
    if (group.error.empty() || (task.since && task.since > group.newest)) group.error = task.error;
    if (!task.since) continue;
    group.oldest = std::min(group.oldest.value_or(*task.since), *task.since);
    group.newest = std::max(group.newest.value_or(*task.since), *task.since);
  }
  std::vector<std::pair<std::size_t, ordered_json>> out;
  for (const auto& [what, group] : groups) {
    const auto time = [](const std::optional<WallTime>& at) {
      return at ? ordered_json(format_rfc3339(*at)) : ordered_json{};
    };
    out.emplace_back(group.count, ordered_json{{"type", client::text_or_null(std::get<0>(what))},
                                               {"reason", client::text_or_null(std::get<1>(what))},
                                               {"error", client::text_or_null(group.error)},
                                               {"count", group.count},
                                               {"oldest", time(group.oldest)},
                                               {"newest", time(group.newest)}});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  ordered_json list = ordered_json::array();
  for (auto& [count, group] : out) {
    if (list.size() < kMostGroups) list.push_back(std::move(group));
  }
  return list;
}

// `counts` counts the whole listing, `types` the shown list, `found` the tasks that fit the
// question. So the page's tabs and filters show their numbers whatever the filter.
Response page_of(const TaskListing& listing, const TaskQuestion& question,
                 const StoredQueues& queues, const std::string& queue) {
  std::map<std::string, std::size_t> types;
  ordered_json counts = ordered_json::object();
  std::vector<const TaskInfo*> rest;
  std::size_t matching = 0;
  for (const TaskInfo& task : listing.tasks) {
    const std::string state{client::state_name(task.state)};
    counts[state] = counts.value(state, std::size_t{0}) + 1;
    if (task.state == TaskState::kOrphan) {
      const std::string orphans{kOrphans};
      counts[orphans] = counts.value(orphans, std::size_t{0}) + 1;
    }
    const bool live = task.state < TaskState::kDead;
    if (question.kind != TaskList::kDone && live != (question.kind == TaskList::kLive)) continue;
    if (types.size() < kMostTypes || types.contains(task.type)) ++types[task.type];
    if (!fits(task, question)) continue;
    ++matching;
    if (!question.after || question.after->is_before(task)) rest.push_back(&task);
  }
  const std::size_t shown = std::min(question.limit, rest.size());
  ordered_json tasks = ordered_json::array();
  for (std::size_t i = 0; i < shown; ++i) tasks.push_back(row_of(*rest[i]));
  ordered_json out{
      {"queue", queue},
      {"as_of", format_rfc3339(listing.at)},
      {"counts", std::move(counts)},
      {"types", types},
      {"found", matching},
      {"tasks", std::move(tasks)},
      {"next", shown < rest.size() ? ordered_json(cursor_after(*rest[shown - 1])) : ordered_json{}},
      {"hidden", listing.hidden}};
  if (question.kind != TaskList::kDone) out["groups"] = groups_of(listing, question.kind);
  if (question.kind == TaskList::kLive) {
    cluster::TaskFacts facts;
    for (const TaskInfo& task : listing.tasks) facts.add(task);
    out["findings"] = cluster::findings_json(facts.failures(), needed_name(queues, queue));
  }
  return json_response(200, out);
}

constexpr std::array kLiveStates{std::string_view{"waiting"},    std::string_view{"scheduled"},
                                 std::string_view{"running"},    kOrphans,
                                 std::string_view{"unreadable"}, std::string_view{"too_large"},
                                 std::string_view{"unnameable"}};

// Errors: kInvalid, naming the parameter. /v1/tasks?state=dead is /v1/dead; state=done is /v1/done.
Result<TaskQuestion> read_task_question(const Request& request, TaskList kind) {
  TaskQuestion question;
  question.kind = kind;
  question.state = request.parameter("state").value_or("");
  if (kind == TaskList::kLive && question.state == "dead") question.kind = TaskList::kDead;
  if (kind == TaskList::kLive && question.state == "done") question.kind = TaskList::kDone;
  const bool known =
      std::find(kLiveStates.begin(), kLiveStates.end(), question.state) != kLiveStates.end();
  if (!question.state.empty() && question.kind == TaskList::kLive && !known) {
    return fail(ErrorCode::kInvalid,
                "state: expected waiting, scheduled, running, orphan, dead, done, unreadable, "
                "too_large or unnameable, got \"" +
                    excerpt(question.state) + '"');
  }
  if (question.kind != TaskList::kLive) question.state.clear();
  question.type = request.parameter("type").value_or("");
  question.reason = request.parameter("reason").value_or("");
  question.error = request.parameter("error").value_or("");
  question.text = lowered(request.parameter("text").value_or(""));
  question.record = lowered(request.parameter("record").value_or(""));
  if (!question.record.empty() && question.record.size() < kShortestRecordText) {
    return fail(ErrorCode::kInvalid,
                "record: expected 3 bytes or more, since each search "
                "reads all records, got \"" +
                    excerpt(question.record) + '"');
  }
  question.schedule = request.parameter("schedule").value_or("");
  LICTOR_TRY(question.limit, page_limit(request));
  if (const auto cursor = request.parameter("cursor"); cursor && !cursor->empty()) {
    question.after = read_cursor(*cursor);
    if (!question.after)
      return fail(ErrorCode::kInvalid, "cursor: expected the \"next\" of an earlier answer");
  }
  return question;
}

// The lists of all queues.
struct Lists {
  explicit Lists(const StoredQueues& stored)
      : queues(stored),
        live(make_listings<TaskListing>(stored,
                                        [](auto& queue) { return read_tasks(queue, false, {}); })),
        done(make_listings<TaskListing>(stored,
                                        [](auto& queue) { return read_tasks(queue, true, {}); })) {}

  // A list keeps no records, so a search in them reads again: the last few searches are kept, each
  // with the pace of a list.
  std::shared_ptr<SharedListing<TaskListing>> search(const StoredQueue& queue, bool in_done,
                                                     const std::string& text) const {
    const std::lock_guard lock{mutex};
    const std::tuple key{queue.queue.name, in_done, text};
    const auto known =
        std::ranges::find_if(searches, [&](const Search& each) { return each.first == key; });
    if (known != searches.end()) {
      std::rotate(known, known + 1, searches.end());
      return searches.back().second;
    }
    if (searches.size() >= kMostSearches) searches.erase(searches.begin());
    searches.emplace_back(
        key, std::make_shared<SharedListing<TaskListing>>([in_done, text, &stored = queue.queue] {
          return read_tasks(stored, in_done, text);
        }));
    return searches.back().second;
  }

  const StoredQueues& queues;
  Listings<TaskListing> live, done;

 private:
  using Search = std::pair<std::tuple<std::string, bool, std::string>,
                           std::shared_ptr<SharedListing<TaskListing>>>;
  mutable std::mutex mutex;
  mutable std::vector<Search> searches;  // the one asked for last comes last
};

Result<std::optional<Response>> list(const Lists& lists, const Call& call, TaskList kind) {
  LICTOR_TRY(const StoredQueue* queue, find_queue(lists.queues, call.request));
  LICTOR_TRY(const TaskQuestion question, read_task_question(call.request, kind));
  const bool in_done = question.kind == TaskList::kDone;
  const auto shared = question.record.empty()
                          ? (in_done ? lists.done : lists.live).at(queue->queue.name)
                          : lists.search(*queue, in_done, question.record);
  LICTOR_TRY(const auto listing, shared->get(call));
  return page_of(*listing, question, lists.queues, queue->queue.name);
}

// Reads Consul for each request: one task is cheap, and its record may be large.
Result<std::optional<Response>> show_task(const StoredQueues& queues, const Call& call) {
  LICTOR_TRY(const StoredQueue* queue, find_queue(queues, call.request));
  const std::string id{call.wildcard};
  LICTOR_TRY(const auto found, client::show_task(queue->queue, id));
  ordered_json tasks = ordered_json::array();
  for (const TaskInfo& task : found) {
    tasks.push_back(client::whole_task_json(task));
    // Parsing and printing could change a long number.
    if (is_utf8(task.record)) tasks.back()["text"] = task.record;
  }
  return json_response(200,
                       {{"queue", queue->queue.name}, {"id", id}, {"tasks", std::move(tasks)}});
}

}  // namespace

Result<std::size_t> page_limit(const Request& request) {
  const auto text = request.parameter("limit");
  if (!text) return kPage;
  const auto limit = to_number<std::size_t>(*text);
  if (limit && *limit != 0 && *limit <= kMostPage) return *limit;
  return fail(ErrorCode::kInvalid, "limit: expected 1 to " + std::to_string(kMostPage) +
                                       ", got \"" + excerpt(*text) + '"');
}

void add_task_routes(Router& router, const StoredQueues& queues) {
  const auto lists = std::make_shared<const Lists>(queues);
  const auto add_list = [&](const char* path, TaskList kind) {
    router.add("GET", path, [lists, kind](const Call& call) { return list(*lists, call, kind); });
  };
  add_list("/v1/tasks", TaskList::kLive);
  add_list("/v1/dead", TaskList::kDead);
  add_list("/v1/done", TaskList::kDone);
  router.add("GET", "/v1/tasks/*", [&queues](const Call& call) { return show_task(queues, call); });
}

}  // namespace lictor::admin
