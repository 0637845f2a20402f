#include <algorithm>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "cli/member_list.h"
#include "cli/process.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;
using namespace std::chrono_literals;

constexpr auto kPause = 500ms;

Error nobody(const Client& client, const Lock& lock) {
  std::string text = "nobody leads queue \"" + client.queue + "\" (" + client.layout.leader_key;
  if (lock.index == 0) {
    text += " does not exist): no daemon has ever led it; start one with \"lictor run\"";
  } else {
    const std::string last = lock.text("node");
    const std::string released = lock.text("released");
    const std::string delay = lock.text("lock_delay");
    text += " is free)";
    if (!last.empty()) text += "; last: " + last;
    if (!released.empty()) {
      text += ", which released it at " + released + "; a running daemon takes it";
    } else {
      text += "; it was not released: a running daemon takes it when the lock-delay has passed" +
              (delay.empty() ? "" : ", within " + delay);
    }
  }
  return {ErrorCode::kNotFound, std::move(text)};
}

void tell(const Client& client, const Lock& lock) {
  const auto member = read_member(client.store, client.layout, lock.text("node"));
  const Pulse pulse = member ? pulse_of(*member, kGlance) : Pulse{};
  const std::string seen = member ? member->seen : std::string{};
  if (const std::string doubt = member ? doubt_of(*member, pulse) : std::string{}; !doubt.empty()) {
    const std::string text = lock.name() + " leads, but " + doubt + "; " + std::string{kIfDead};
    if (client.json) {
      client.console.complain(text);
    } else {
      client.console.print_line(text);
    }
  }
  if (client.json) {
    const auto field = [&](const char* name) {
      return lock.value.contains(name) ? ordered_json(lock.value[name]) : ordered_json{};
    };
    ordered_json told{{"queue", client.queue},
                      {"lock", "held"},
                      {"node", field("node")},
                      {"host", field("host")},
                      {"pid", field("pid")},
                      {"admin", field("admin")},
                      {"version", field("version")},
                      {"started", field("started")},  // the daemon
                      {"since", field("since")},      // it leads
                      {"seen", text_or_null(seen)},
                      {"answers", pulse.answers ? ordered_json(*pulse.answers) : ordered_json{}},
                      {"session", lock.session},
                      {"key", client.layout.leader_key},
                      {"modify_index", lock.index}};
    client.console.print(json_document(told));
    return;
  }
  const auto line = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    std::string text{name};
    text.resize(10, ' ');
    client.console.print_line(text + value);
  };
  const auto since = [&](const char* name, const std::string& label) {
    std::string text = lock.text(name);
    const auto time = parse_rfc3339(text);
    if (text.empty()) return text;
    return label + text + (time ? " (" + relative_time(*time, wall_now()) + ")" : std::string{});
  };
  line("queue", client.queue);
  line("node", lock.text("node"));
  line("host", lock.text("host"));
  line("pid", lock.text("pid"));
  line("admin", lock.text("admin"));
  line("version", lock.text("version"));
  line("daemon", since("started", "started "));
  line("leads", since("since", "since "));
  if (const auto time = parse_rfc3339(seen)) line("seen", relative_time(*time, wall_now()));
  if (pulse.answers) line("answers", *pulse.answers ? "yes" : "no");
  line("lock", "held (" + client.layout.leader_key + ")");
  std::string holder = lock.session;
  if (const auto session = client.store.session(lock.session)) {
    holder += " on Consul's node " + session->node;
    if (!session->ttl.empty()) holder += ", TTL " + session->ttl;
    holder += ", lock-delay " + format_duration(session->lock_delay);
  } else {
    holder += R"( (gone by now, or hidden: its node and TTL take session_prefix "" { policy = )"
              R"("read" }))";
  }
  line("session", holder);
}

// A leader that steps down waits a while and leads again if nobody else does.
void note_if_alone(const Client& client, const std::string& leader) {
  const auto members = read_members(client);
  if (!members || members->empty()) return;  // not known
  const bool alone = std::all_of(members->begin(), members->end(),
                                 [&](const Member& member) { return member.node == leader; });
  if (alone) {
    client.console.complain("no other daemon is up to take the lead from " + leader);
  }
}

// For --json. Empty: nobody.
void tell_handover(const Client& client, const std::string& stepped_down,
                   const std::string& leader) {
  if (!client.json) return;
  client.console.print(json_document({{"queue", client.queue},
                                      {"stepped_down", text_or_null(stepped_down)},
                                      {"leader", text_or_null(leader)}}));
}

// Waits until another session holds the lock than `before`'s.
Result<int> wait_for_change(const Client& client, const Lock& before, Duration timeout) {
  const Instant until = boot_now() + timeout;
  std::uint64_t index = 0;
  bool released = false;
  while (boot_now() < until) {
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - boot_now());
    const auto watched = client.store.watch(client.layout.leader_key, index, wait);
    if (!watched && watched.error().code == ErrorCode::kPermissionDenied) {
      return tl::unexpected(watched.error());
    }
    const Lock now = watched ? lock_of(watched->entry) : before;
    index = watched ? watched->index : 0;
    if (!now.session.empty() && now.session != before.session) {
      tell_handover(client, before.name(), now.name());
      if (!client.json) {
        client.console.print_line(before.name() + " stepped down; " + now.name() + " leads");
      }
      return kDone;
    }
    if (released && !now.session.empty()) {
      tell_handover(client, before.name(), now.name());
      return fail(ErrorCode::kFailed, before.name() +
                                          " stepped down, and leads again, since nobody else took "
                                          "the lead; is another daemon up?");
    }
    if (now.session.empty()) {
      if (!std::exchange(released, true)) {
        client.console.progress(before.name() + " stepped down; nobody leads yet");
      }
    } else if (!released) {
      client.console.progress(before.name() + " still leads; its jobs may be ending");
    }
    // A wait for a missing key ends with unrelated writes (CONSUL-FACTS.md 4.2).
    if (!watched || !watched->entry) std::this_thread::sleep_for(kPause);
  }
  tell_handover(client, released ? before.name() : std::string{},
                released ? std::string{} : before.name());
  const std::string within = " within " + format_duration(timeout);
  if (released) {
    return fail(ErrorCode::kFailed, before.name() + " stepped down, but nobody has taken the lead" +
                                        within + "; is another daemon up?");
  }
  const auto member = read_member(client.store, client.layout, before.name());
  if (const std::string silent = member ? pulse_of(*member).silence : std::string{};
      !silent.empty()) {
    return fail(ErrorCode::kFailed, before.name() + " has not stepped down" + within + ": " +
                                        silent +
                                        "; if it is dead, another takes the lead when its session "
                                        "has ended and the lock-delay is over");
  }
  return fail(ErrorCode::kFailed,
              before.name() + " has not stepped down" + within +
                  ": it may be waiting for its jobs (drain_timeout), or be out of Consul's reach; "
                  "the request stands");
}

}  // namespace

Result<int> leader(const Client& client, const LeaderOptions& options) {
  const auto lock = read_lock(client.store, client.layout);
  if (!lock) return tl::unexpected(lock.error());
  if (lock->session.empty()) {
    if (client.json) {
      client.console.print(json_document({{"queue", client.queue},
                                          {"lock", "free"},
                                          {"node", nullptr},
                                          {"key", client.layout.leader_key},
                                          {"modify_index", lock->index}}));
    }
    return tl::unexpected(nobody(client, *lock));
  }
  if (!options.step_down) {
    tell(client, *lock);
    return kDone;
  }
  note_if_alone(client, lock->name());
  if (auto asked = client.api.step_down(); !asked) return tl::unexpected(asked.error());
  if (!options.wait) {
    if (client.json) {
      client.console.print(json_document({{"queue", client.queue}, {"asked", lock->name()}}));
    } else {
      client.console.print_line(lock->name() + " is asked to step down");
    }
    return kDone;
  }
  auto code = wait_for_change(client, *lock, options.timeout);
  client.console.end_progress();
  return code;
}

void note_if_never_led(const Client& client) {
  const auto lock = read_lock(client.store, client.layout);
  if (!lock || lock->index != 0) return;
  client.console.note("no daemon has ever led queue \"" + client.queue +
                      "\": " + client.layout.leader_key +
                      " does not exist; is the queue's name right, and a daemon up?");
}

void note_if_not_led(const Client& client) {
  const auto lock = read_lock(client.store, client.layout);
  if (lock && lock->session.empty()) client.console.note(nobody(client, *lock).message);
}

}  // namespace lictor::cli
