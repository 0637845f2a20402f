#include "admin/events.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "admin/routes.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "runtime/fact_log.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kKept = 1000;
// Producers choose keys and types, which can be hundreds of kilobytes long.
constexpr std::size_t kMaxTextBytes = 500;
constexpr std::size_t kMaxReaders = 200;
// Bounds the bytes and the cost of a client when tens of thousands of tasks a second run.
constexpr auto kBatchEvery = 100ms;
constexpr std::size_t kMaxBatchBytes = Exchange::kMaxUnsentBytes / 2;
// Proxies close silent connections.
constexpr auto kHeartbeat = 15s;

// `members` are the members of a JSON object.
std::string text_of(const char* event, const std::string& id, std::string_view members) {
  return fmt::format("id: {}\nevent: {}\ndata: {{{}}}\n\n", id, event, members);
}

void add_member(std::string& members, std::string_view name, std::string_view text) {
  fmt::format_to(std::back_inserter(members), ",\"{}\":", name);
  append_quoted(members, text);
}

void add_member(std::string& members, std::string_view name, std::int64_t number) {
  fmt::format_to(std::back_inserter(members), ",\"{}\":{}", name, number);
}

}  // namespace

Events::Events()
    : start_ms_(std::chrono::duration_cast<std::chrono::milliseconds>(wall_now().time_since_epoch())
                    .count()) {}

Events::~Events() {
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string Events::id(std::uint64_t number) const {
  return std::to_string(start_ms_) + "-" + std::to_string(number);
}

// Runs on the loop's thread, tens of thousands of times a second, so it only copies; thread_ makes
// the text of an event for its first reader.
void Events::on_fact(const std::string& queue, const core::Fact& fact) {
  const runtime::FactWords& words = runtime::words_of(fact.kind);
  const bool is_type = fact.task && fact.text == fact.task->type;
  Event event{.at = wall_now(),
              .queue = queue,
              .name = words.event,
              .duration_name = words.duration_name,
              .task = excerpt(fact.key, kMaxTextBytes),
              .type = fact.task ? excerpt(fact.task->type, kMaxTextBytes) : std::string{},
              .text = is_type ? std::string{} : excerpt(fact.text, kMaxTextBytes),
              .attempt = fact.attempt,
              .token = fact.token,
              .took = fact.took};
  if (runtime::is_about_lock(fact.kind)) event.partition = fact.partition;
  const std::lock_guard lock{mutex_};
  if (kept_.size() == kKept) kept_.pop_front();
  kept_.push_back(std::move(event));
  ++next_;
}

// An id of an earlier start of the daemon cannot be compared with the kept events: the client gets
// a "gap", and all kept events.
std::optional<Response> Events::answer(const Call& call) {
  Reader reader{call.exchange, call.request.parameter("queue").value_or(""), 0};
  std::string after = call.request.header("last-event-id").value_or("");
  if (after.empty()) after = call.request.parameter("after").value_or("");
  const bool as_list = call.request.parameter("format") == "json";
  if (!as_list && call.request.method == "HEAD") return Response{200, "text/event-stream", {}, {}};
  std::unique_lock lock{mutex_};
  if (!as_list && readers_ >= kMaxReaders) {
    Response busy = error_response(503, "too many clients follow the events here");
    busy.headers.emplace_back("Retry-After", "5");
    return busy;
  }
  // Without an id: events from now on. With an id of an earlier start: all kept events.
  std::string begin = "retry: 2000\n\n";
  reader.next = next_;
  if (!after.empty()) {
    const std::string own = std::to_string(start_ms_) + "-";
    std::uint64_t seen = 0;
    if (after.starts_with(own)) {
      seen = to_number<std::uint64_t>(std::string_view{after}.substr(own.size())).value_or(0);
    } else {
      begin += text_of("gap", id(0), R"("restarted":true)");
    }
    reader.next = std::min(seen, next_ - 1) + 1;
  }
  if (as_list) {
    const std::uint64_t first = after.empty() ? 0 : reader.next;
    lock.unlock();
    return kept_after(first, reader.queue);
  }
  call.exchange->answer({200, "text/event-stream; charset=utf-8", {}, {}, true});
  if (!call.exchange->send(begin)) return std::nullopt;
  joining_.push_back(std::move(reader));
  ++readers_;
  if (!thread_.joinable()) thread_ = std::thread{[this] { serve(); }};
  changed_.notify_one();
  return std::nullopt;
}

// Serves clients that ask now and then instead of reading a stream. "next" is where to go on;
// "missed": how many events of all queues after the known one are no longer kept.
Response Events::kept_after(std::uint64_t first, const std::string& queue) {
  Kept kept;
  std::uint64_t next = 0;
  {
    const std::lock_guard lock{mutex_};
    kept = kept_;
    next = next_;
  }
  std::string list;
  std::uint64_t number = next - kept.size();
  const std::uint64_t missed = first != 0 && first < number ? number - first : 0;
  for (const Event& event : kept) {
    if (number >= first && (queue.empty() || event.queue == queue)) {
      fmt::format_to(std::back_inserter(list), R"({}{{"id":"{}","event":"{}",{}}})",
                     list.empty() ? "" : ",", id(number), event.name, members_of(event));
    }
    ++number;
  }
  return {200,
          "application/json",
          fmt::format("{{\"events\":[{}],\"next\":\"{}\"{}}}\n", list, id(next - 1),
                      missed == 0 ? "" : fmt::format(",\"missed\":{}", missed)),
          {}};
}

// Builds text directly, since tens of thousands a second may be wanted.
std::string Events::members_of(const Event& event) const {
  std::string members =
      fmt::format(R"("at":"{}","queue":"{}")", format_rfc3339(event.at), event.queue);
  if (event.partition) add_member(members, "partition", *event.partition);
  if (!event.task.empty()) {
    add_member(members, "task", event.task);
    const auto layout = layouts_.find(event.queue);
    const auto id = layout == layouts_.end() ? std::nullopt : layout->second.task_id(event.task);
    if (id) add_member(members, "task_id", *id);
  }
  if (!event.type.empty()) add_member(members, "type", event.type);
  if (event.attempt != 0) add_member(members, "attempt", event.attempt);
  if (event.token != 0) add_member(members, "token", static_cast<std::int64_t>(event.token));
  if (event.took != Duration::zero()) {
    add_member(members, std::string{event.duration_name} + "_ms",
               std::chrono::duration_cast<std::chrono::milliseconds>(event.took).count());
  }
  if (!event.text.empty()) add_member(members, "text", event.text);
  return members;
}

// The text takes at most half of the bytes that an exchange keeps unsent. A reader that has fallen
// behind the kept events gets one "gap" with the number of events that it missed.
std::string Events::text_for(Reader& reader, Kept& events, std::uint64_t next) const {
  std::string text;
  const std::uint64_t first = next - events.size();
  if (reader.next < first) {
    text += text_of("gap", id(first - 1), fmt::format(R"("missed":{})", first - reader.next));
    reader.next = first;
  }
  for (; reader.next < next && text.size() < kMaxBatchBytes; ++reader.next) {
    Event& event = events[reader.next - first];
    if (!reader.queue.empty() && event.queue != reader.queue) continue;
    if (event.line.empty()) event.line = text_of(event.name, id(reader.next), members_of(event));
    text += event.line;
  }
  return text;
}

// Copies the missing events under the mutex and words them without it: on_fact() is on the loop's
// thread, which must not wait for tens of thousands of lines of JSON.
void Events::serve() {
  std::vector<Reader> readers;
  Instant beat_at = boot_now() + kHeartbeat;
  std::unique_lock lock{mutex_};
  while (!ending_) {
    readers.insert(readers.end(), std::make_move_iterator(joining_.begin()),
                   std::make_move_iterator(joining_.end()));
    joining_.clear();
    if (readers.empty()) {
      changed_.wait(lock, [&] { return ending_ || !joining_.empty(); });
      continue;
    }
    const Instant now = boot_now();
    const std::uint64_t next = next_;
    std::uint64_t first = next;
    for (const Reader& reader : readers) first = std::min(first, reader.next);
    const auto count = std::min<std::uint64_t>(kept_.size(), next - first);
    Kept events(kept_.end() - static_cast<std::ptrdiff_t>(count), kept_.end());
    lock.unlock();
    const bool beat = now >= beat_at;
    if (beat) beat_at = now + kHeartbeat;
    const std::size_t gone = std::erase_if(readers, [&](Reader& reader) {
      std::string text = text_for(reader, events, next);
      if (text.empty() && beat) text = ": still here\n\n";
      return reader.exchange->gone() || (!text.empty() && !reader.exchange->send(text));
    });
    lock.lock();
    readers_ -= gone;
    changed_.wait_for(lock, kBatchEvery, [&] { return ending_; });
  }
  for (Reader& reader : readers) reader.exchange->end();
  for (Reader& reader : joining_) reader.exchange->end();
}

void add_event_route(Router& router, Events& events, const StoredQueues& queues) {
  std::map<std::string, wire::Layout> layouts;
  for (const StoredQueue& queue : queues) layouts.emplace(queue.queue.name, queue.queue.layout);
  events.set_layouts(std::move(layouts));
  router.add("GET", "/v1/events",
             [&events, &queues](const Call& call) -> Result<std::optional<Response>> {
               if (call.request.parameter("queue")) {
                 const auto queue = find_queue(queues, call.request);
                 if (!queue) return tl::unexpected(queue.error());
               }
               return events.answer(call);
             });
}

}  // namespace lictor::admin
