// Who leads, and the switches of the queue: step-down, pause, resume.

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/leaders.h"
#include "cli/listing.h"
#include "cli/members.h"
#include "cli/process.h"
#include "cli/takeover.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

constexpr auto kPause = std::chrono::milliseconds{500};

void tell(const Client& client, const Lock& lock) {
  Console& console = client.console;
  const auto member = read_member(client.store, client.layout, lock.text("node"));
  const Pulse pulse = member ? pulse_of(*member, kGlance) : Pulse{};
  const std::string seen = member ? member->seen : "";
  if (const std::string doubt = member ? doubt_of(*member, pulse) : ""; !doubt.empty()) {
    const std::string text = fmt::format("{} leads, but {}; {}", lock.name(), doubt,
                                         if_dead(client.store, client.layout, lock, *member));
    client.json ? console.complain(text) : console.print_line(text);
  }
  if (client.json) {
    ordered_json told{{"queue", client.queue}, {"lock", "held"}};
    // "started": the daemon; "since": it leads.
    for (const char* name : {"node", "host", "pid", "admin", "version", "started", "since"}) {
      told[name] = lock.value.value(name, nlohmann::json{});
    }
    told["seen"] = text_or_null(seen);
    told["answers"] = pulse.answers ? ordered_json(*pulse.answers) : ordered_json{};
    told["session"] = lock.session;
    told["key"] = client.layout.leader_key;
    told["modify_index"] = lock.index;
    console.print(json_document(told));
    return;
  }
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) console.print_line(fmt::format("{:<10}{}", name, value));
  };
  const auto since = [&](const char* name, const std::string& label) {
    std::string text = lock.text(name);
    const auto time = parse_rfc3339(text);
    if (text.empty()) return text;
    return label + text + (time ? " (" + relative_time(*time, wall_now()) + ")" : "");
  };
  line("queue", client.queue);
  for (const char* name : {"node", "host", "pid", "admin", "version"}) line(name, lock.text(name));
  line("daemon", since("started", "started "));
  line("leads", since("since", "since "));
  if (const auto time = parse_rfc3339(seen)) line("seen", relative_time(*time, wall_now()));
  if (pulse.answers) line("answers", *pulse.answers ? "yes" : "no");
  line("lock", "held (" + client.layout.leader_key + ")");
  const auto session = client.store.session(lock.session);
  line("session",
       session ? fmt::format("{} on Consul's node {}{}, lock-delay {}", lock.session, session->node,
                             session->ttl.empty() ? "" : ", TTL " + session->ttl,
                             format_duration(session->lock_delay))
               : lock.session +
                     " (gone, or hidden: its node and TTL need the rule session_prefix "
                     R"("" { policy = "read" }))");
}

// A leader that steps down waits a while and leads again if nobody else does.
void note_if_alone(const Client& client, const std::string& leader) {
  const auto members = read_members(client.store, client.layout);
  if (!members || members->empty()) return;  // not known
  if (std::all_of(members->begin(), members->end(),
                  [&](const Member& member) { return member.node == leader; })) {
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
  const std::string who = before.name();
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
    if (now.session.empty()) {
      if (!std::exchange(released, true)) {
        client.console.progress(who + " stepped down; nobody leads yet");
      }
    } else if (now.session != before.session) {
      tell_handover(client, who, now.name());
      if (!client.json) client.console.print_line(who + " stepped down; " + now.name() + " leads");
      return kDone;
    } else if (released) {
      tell_handover(client, who, now.name());
      return fail(ErrorCode::kFailed,
                  who +
                      " stepped down and leads again, since nobody else took the lead; is "
                      "another daemon up?");
    } else {
      client.console.progress(who + " still leads; its jobs may be ending");
    }
    // A wait for a missing key ends with unrelated writes (CONSUL-FACTS.md 4.2).
    if (!watched || !watched->entry) std::this_thread::sleep_for(kPause);
  }
  tell_handover(client, released ? who : "", released ? "" : who);
  const std::string within = " within " + format_duration(timeout);
  if (released) {
    return fail(ErrorCode::kFailed, who + " stepped down, but nobody has taken the lead" + within +
                                        "; is another daemon up?");
  }
  const auto member = read_member(client.store, client.layout, who);
  const std::string silent = member ? pulse_of(*member).silence : "";
  return fail(ErrorCode::kFailed,
              fmt::format("{} has not stepped down{}: {}", who, within,
                          silent.empty() ? "it may be waiting for its jobs (drain_timeout) or be "
                                           "cut off from Consul; the request stands"
                                         : silent + "; if it is dead, another daemon takes the "
                                                    "lead after its session has ended and the "
                                                    "lock-delay is over"));
}

// What the switch is now, and whether we turned it.
Result<int> tell_pause(const Client& client, bool changed) {
  LICTOR_TRY(const auto now, client.api.paused());
  if (client.json) {
    client.console.print(json_document(
        {{"queue", client.queue}, {"changed", changed}, {"paused", pause_json(now)}}));
    return kDone;
  }
  const std::string queue = "queue \"" + client.queue + "\" is ";
  if (now.paused) {
    client.console.print_line(queue + (changed ? "" : "already ") + pause_text(now) +
                              (changed ? "; running jobs go on, no new tasks are started" : ""));
  } else {
    client.console.print_line(queue + (changed ? "resumed" : "not paused"));
  }
  note_if_never_led(client);
  return kDone;
}

}  // namespace

Result<int> leader(const Client& client, const LeaderOptions& options) {
  LICTOR_TRY(const auto locks, client::read_locks(client.store, client.layout));
  if (locks.count() != 1) {
    return options.step_down ? step_down_all(client, locks, options) : show_leaders(client, locks);
  }
  const Lock lock = lock_of(locks, 0);
  if (lock.session.empty()) {
    if (client.json) {
      client.console.print(json_document({{"queue", client.queue},
                                          {"lock", "free"},
                                          {"node", nullptr},
                                          {"key", client.layout.leader_key},
                                          {"modify_index", lock.index}}));
    }
    return tl::unexpected(nobody_leads(client, lock));
  }
  if (!options.step_down) {
    tell(client, lock);
    return kDone;
  }
  note_if_alone(client, lock.name());
  if (auto asked = client.api.step_down(); !asked) return tl::unexpected(asked.error());
  if (options.wait) {
    auto code = wait_for_change(client, lock, options.timeout);
    client.console.end_progress();
    return code;
  }
  if (client.json) {
    client.console.print(json_document({{"queue", client.queue}, {"asked", lock.name()}}));
  } else {
    client.console.print_line(lock.name() + " is asked to step down");
  }
  return kDone;
}

void note_if_never_led(const Client& client) {
  const auto locks = client::read_locks(client.store, client.layout);
  if (!locks) return;
  for (std::uint32_t i = 0; i < locks->count(); ++i) {
    if (locks->entry(i)) return;
  }
  client.console.note(
      fmt::format("no daemon has ever led queue \"{}\": {} does not exist; is the "
                  "queue's name right, and a daemon up?",
                  client.queue, client.layout.lock_key({locks->count(), 0})));
}

void note_if_not_led(const Client& client) {
  const auto locks = client::read_locks(client.store, client.layout);
  if (!locks) return;
  if (const auto error = nobody_leads(client, *locks)) client.console.note(error->message);
}

Result<int> pause(const Client& client, const PauseOptions& options) {
  LICTOR_TRY(const auto changed, client.api.pause(options.reason));
  return tell_pause(client, changed);
}

Result<int> resume(const Client& client, const ResumeOptions&) {
  LICTOR_TRY(const auto changed, client.api.resume());
  return tell_pause(client, changed);
}

}  // namespace lictor::cli
