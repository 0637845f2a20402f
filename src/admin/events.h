#pragma once

// /v1/events: the events of this daemon's queues, as server-sent events (WHATWG HTML, 9.2).
//
//   id: 1795508611000-42
//   event: started
//   data: {"at": RFC 3339, "queue": "default", "task": KEY, "task_id": ID, "attempt": 1, ...}
//
// The id is the daemon's start and a number. A client that comes back with the last id that it saw
// (Last-Event-ID, or ?after=) gets the events since, as far as they are kept; an event "gap" tells
// that some are missing, also for a client that reads too slowly.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "admin/router.h"
#include "lictor/time.h"
#include "runtime/observer.h"
#include "wire/layout.h"

namespace lictor::admin {

/// Keeps the newest events and sends them to its readers. Thread safe. Memory is bounded, and no
/// client holds up another or the daemon.
class Events : public runtime::Observer {
 public:
  Events();
  ~Events() override;

  /// Sets the layouts of the queues, so that events name the tasks' ids. Call it before answer().
  void set_layouts(std::map<std::string, wire::Layout> layouts) { layouts_ = std::move(layouts); }

  void on_fact(const std::string& queue, const core::Fact& fact) override;

  /// Answers with the stream, or with ?format=json with the kept events: {"events": [...], "next":
  /// ID}, at most 1,000, after the event ?after=ID. ?queue= limits either to one queue.
  [[nodiscard]] std::optional<Response> answer(const Call& call);

 private:
  struct Event {
    WallTime at{};
    std::string queue;
    const char* name = "";
    const char* duration_name = "";
    std::optional<std::uint32_t> partition{};  // of a lock
    std::string task, type, text;
    std::uint32_t attempt = 0;
    std::uint64_t token = 0;
    Duration took{};
    std::string line{};  // server-sent text, made for the first reader
  };
  using Kept = std::deque<Event>;
  struct Reader {
    ExchangePtr exchange;
    std::string queue;       // empty: all
    std::uint64_t next = 0;  // number of the event to send next
  };
  /// Runs on thread_: sends each reader its missing events, every 100 ms. A text is made once a
  /// round for all readers.
  void serve();
  // `next`: number of the event after the last of `events`.
  [[nodiscard]] std::string text_for(Reader& reader, Kept& events, std::uint64_t next) const;
  [[nodiscard]] std::string members_of(const Event& event) const;  // of a JSON object
  [[nodiscard]] Response kept_after(std::uint64_t first, const std::string& queue);
  [[nodiscard]] std::string id(std::uint64_t number) const;

  const std::int64_t start_ms_;
  std::map<std::string, wire::Layout> layouts_;  // by queue

  std::mutex mutex_;
  std::condition_variable changed_;
  Kept kept_;
  std::uint64_t next_ = 1;       // number of the event that comes next
  std::vector<Reader> joining_;  // thread_ takes them over
  std::size_t readers_ = 0;      // including joining_
  bool ending_ = false;
  std::thread thread_;  // runs from the first reader on
};

}  // namespace lictor::admin
