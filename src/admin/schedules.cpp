// The schedules of a queue: a list by page, and single ones.
//
// A list is cut from a SharedListing, as in tasks.cpp; a single schedule is read for each request.
// Each schedule's definition is kept without its record and template, which a list does not show.
// Names are the cursor, since the list is in their order.

#include "client/schedules.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "admin/shared_listing.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/task_info.h"

namespace lictor::admin {
namespace {

using client::Schedules;
using client::ScheduleState;
using client::StoredSchedule;
using nlohmann::ordered_json;

constexpr std::size_t kNextTicks = 10;
constexpr std::array kStates{ScheduleState::kActive, ScheduleState::kPaused, ScheduleState::kEnded,
                             ScheduleState::kBad};

struct ScheduleQuestion {
  std::string state, text;  // empty: all
  std::string after;        // a name
  std::size_t limit = 0;
};

Result<ScheduleQuestion> read_schedule_question(const Request& request) {
  ScheduleQuestion question;
  question.state = request.parameter("state").value_or("");
  const bool known = std::any_of(kStates.begin(), kStates.end(), [&](ScheduleState state) {
    return client::state_name(state) == question.state;
  });
  if (!question.state.empty() && !known) {
    return fail(ErrorCode::kInvalid, "state: expected active, paused, ended or bad, got \"" +
                                         excerpt(question.state) + '"');
  }
  question.text = lowered(request.parameter("text").value_or(""));
  question.after = request.parameter("cursor").value_or("");
  LICTOR_TRY(question.limit, page_limit(request));
  return question;
}

bool fits(const StoredSchedule& schedule, std::string_view state,
          const ScheduleQuestion& question) {
  if (!question.state.empty() && state != question.state) return false;
  return lowered(schedule.name).find(question.text) != std::string::npos ||
         lowered(schedule.type).find(question.text) != std::string::npos ||
         lowered(schedule.rule).find(question.text) != std::string::npos;
}

// State and next tick follow the present clock: the listing may be older than the last tick.
Response page_of(const ScheduleListing& listing, const ScheduleQuestion& question,
                 const client::Queue& queue) {
  const WallTime now = wall_now();
  std::size_t found = 0;
  std::map<std::string, std::size_t> counts;
  ordered_json schedules = ordered_json::array();
  ordered_json next;
  for (const StoredSchedule& schedule : listing.schedules) {
    const std::string state{client::state_name(state_of(schedule, now))};
    ++counts[state];
    if (!fits(schedule, state, question)) continue;
    ++found;
    if (schedule.name <= question.after) continue;
    if (schedules.size() < question.limit) {
      schedules.push_back(client::schedule_json(schedule, now));
    } else if (next.is_null()) {
      next = schedules.back()["name"];
    }
  }
  ordered_json hidden = ordered_json::array();
  if (listing.hidden) hidden.push_back(queue.layout.schedules_prefix);
  return json_response(200, {{"queue", queue.name},
                             {"as_of", format_rfc3339(listing.at)},
                             {"counts", counts},
                             {"found", found},
                             {"schedules", std::move(schedules)},
                             {"next", std::move(next)},
                             {"hidden", std::move(hidden)}});
}

Result<std::optional<Response>> list(const StoredQueues& queues,
                                     const Listings<ScheduleListing>& listings, const Call& call) {
  LICTOR_TRY(const StoredQueue* queue, find_queue(queues, call.request));
  LICTOR_TRY(const ScheduleQuestion question, read_schedule_question(call.request));
  LICTOR_TRY(const auto listing, listings.at(queue->queue.name)->get(call));
  return page_of(*listing, question, queue->queue);
}

Result<std::optional<Response>> show_schedule(const StoredQueues& queues, const Call& call) {
  LICTOR_TRY(const StoredQueue* queue, find_queue(queues, call.request));
  LICTOR_TRY(const StoredSchedule found,
             Schedules(queue->queue.store, queue->queue.layout).get(std::string{call.wildcard}));
  const WallTime now = wall_now();
  ordered_json out = client::schedule_json(found, now);
  out["note"] = client::text_or_null(found.no_effect);
  client::add_value_json(found.record, out);
  // Parsing and printing could change a long number.
  if (is_utf8(found.record)) out["text"] = found.record;
  ordered_json ticks = ordered_json::array();
  if (found.definition) {
    const auto& read = *found.definition;
    ticks = client::ticks_json(client::ticks_after(read, now, kNextTicks), read);
  }
  return json_response(200, {{"queue", queue->queue.name},
                             {"name", found.name},
                             {"schedule", std::move(out)},
                             {"ticks", std::move(ticks)}});
}

}  // namespace

Result<ScheduleListing> read_schedules(const client::Queue& queue) {
  LICTOR_TRY(auto listed, Schedules(queue.store, queue.layout).list());
  for (StoredSchedule& schedule : listed.schedules) {
    std::string{}.swap(schedule.record);
    if (schedule.definition) std::string{}.swap(schedule.definition->task);
  }
  return ScheduleListing{{}, std::move(listed.schedules), listed.hidden};
}

void add_schedule_routes(Router& router, const StoredQueues& queues,
                         const Listings<ScheduleListing>& listings) {
  router.add("GET", "/v1/schedules",
             [&queues, listings](const Call& call) { return list(queues, listings, call); });
  router.add("GET", "/v1/schedules/*",
             [&queues](const Call& call) { return show_schedule(queues, call); });
}

}  // namespace lictor::admin
