#include "cli/check.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "cli/json_output.h"
#include "cluster/admin_client.h"
#include "net/connections.h"
#include "net/poll_turns.h"

namespace lictor::cli {
namespace {

struct Look {
  const char *word, *json;
  Style style;
};
// The looks, in the order of Report::Status.
constexpr std::array<Look, 3> kLooks{
    {{"ok", "ok", Style::kGreen}, {"warn", "warn", Style::kYellow}, {"FAIL", "fail", Style::kRed}}};
const Look& look_of(const Report::Line& line) {
  return kLooks.at(static_cast<std::size_t>(line.status));
}

}  // namespace

void Report::ok(std::string name, std::string detail) {
  lines_.push_back({Status::kOk, std::move(name), std::move(detail), {}, ErrorCode::kFailed});
}

void Report::warn(std::string name, std::string detail, std::string remedy) {
  lines_.push_back(
      {Status::kWarn, std::move(name), std::move(detail), std::move(remedy), ErrorCode::kFailed});
}

void Report::fail(std::string name, std::string detail, std::string remedy, ErrorCode code) {
  lines_.push_back({Status::kFail, std::move(name), std::move(detail), std::move(remedy), code});
}

void Report::add(std::string name, const cluster::Finding& finding) {
  if (finding.severity == cluster::Finding::Severity::kError) {
    return fail(std::move(name), finding.what, finding.remedy);
  }
  warn(std::move(name), finding.what, finding.remedy);
}

void Report::fail(std::string name, const Error& error) {
  fail(std::move(name), error.message, {}, error.code);
}

// The checks of a queue suggest commands without the queue's name; adds it where they need it.
void Report::name_queue(std::size_t first, const std::string& queue) {
  for (std::size_t i = first; i < lines_.size(); ++i) {
    lines_[i].detail = cluster::with_options(lines_[i].detail, queue);
    lines_[i].remedy = cluster::with_options(lines_[i].remedy, queue);
  }
}

void Report::repeat_options(const Console& console) {
  for (Line& line : lines_) {
    line.detail = console.suggesting(line.detail);
    line.remedy = console.suggesting(line.remedy);
  }
}

std::optional<ErrorCode> Report::first_failure() const {
  for (const Line& line : lines_) {
    if (line.status == Status::kFail) return line.code;
  }
  return std::nullopt;
}

bool Report::warned() const {
  return std::any_of(lines_.begin(), lines_.end(),
                     [](const Line& line) { return line.status == Status::kWarn; });
}

// "ok    name   detail", and the remedy below it.
Page Report::page() const {
  std::size_t name_width = 0;
  for (const Line& line : lines_) name_width = std::max(name_width, columns(printable(line.name)));
  Page page;
  for (const Line& line : lines_) {
    const char* word = look_of(line).word;
    const std::string name = printable(line.name);
    page.add(word, look_of(line).style);
    page.add(fmt::format("{:{}}{}{:{}}{}\n", "", 6 - std::strlen(word), name, "",
                         name_width - columns(name) + 2, printable(line.detail)));
    if (line.remedy.empty()) continue;
    page.add(fmt::format("{:{}}-> {}\n", "", name_width + 8, printable(line.remedy)));
  }
  return page;
}

std::string Report::json() const {
  const auto checks = json_list(lines_, [](const Line& line) -> nlohmann::ordered_json {
    return {{"name", line.name},
            {"status", look_of(line).json},
            {"detail", line.detail},
            {"remedy", text_or_null(line.remedy)}};
  });
  return json_document({{"ok", !first_failure()}, {"checks", checks}});
}

namespace {

void check_configuration(const CheckOptions& options, Report& report) {
  const std::string name = "configuration";
  if (options.error) return report.fail(name, *options.error);
  if (options.file.empty()) {
    const CheckOptions::Queue& queue = options.queues.front();
    report.ok(name, fmt::format("no file; the defaults: queue \"{}\" below {}", queue.name,
                                queue.layout.tasks_prefix));
  } else {
    const std::string of = options.file + ": " + counted(options.queues.size(), "queue");
    report.ok(name, options.serves ? of : of + ", checked for commands and not for a daemon");
  }
  for (const std::string& warning : options.warnings) report.warn(name, warning, {});
  if (options.daemon_error) {
    report.fail(name, "not fit for the daemon: " + options.daemon_error->message, {},
                options.daemon_error->code);
  }
}

// Without a token the listeners alone protect the API: a proxy on this host opens it to its own
// clients.
void check_admin(const CheckOptions& options, Report& report) {
  if (!options.has_admin) return;
  report.ok("admin", options.asks_for_token
                         ? "the admin API asks for the token of admin.token_file"
                         : "every user and job of this host may change tasks by the admin API, and "
                           "whoever a proxy on it lets through; admin.token_file asks for a token");
}

// Root checks for whichever user the daemon runs as, any other user for itself.
void check_state_dir(const CheckOptions& options, Report& report) {
  if (!options.state_dir_warning.empty()) report.warn("state", options.state_dir_warning, {});
  if (options.state_dir_owner.empty()) return;
  const std::string detail = options.state_dir + " belongs to " + options.state_dir_owner;
  if (::geteuid() == 0) return report.ok("state", detail + "; the daemon has to run as that user");
  report.warn("state", detail + ", not to the user of this check",
              fmt::format("run the daemon, and this check, as {}; or chown the folder",
                          options.state_dir_owner));
}

// src/app has started a process of each worker; this reports the results.
void check_workers(const CheckOptions& options, Report& report) {
  for (const CheckOptions::Worker& worker : options.workers) {
    const std::string named =
        worker.type.empty() ? "" : fmt::format("\"{}\" of queue {}: ", worker.type, worker.queue);
    if (!worker.error.empty()) {
      report.fail("worker", named + worker.error,
                  "its tasks wait until it starts; \"lictor help workers\" has the protocol",
                  ErrorCode::kFailed);
      continue;
    }
    report.ok("worker", named + "ready after " +
                            format_duration(
                                std::chrono::floor<std::chrono::milliseconds>(worker.ready_after)));
  }
}

// Asks this host's daemon directly: while it waits for a right, it may be no member yet.
void check_daemon(const CheckOptions& options, Report& report) {
  std::string silent;
  for (const std::string& address : options.own_admin) {
    if (address.ends_with(":0")) continue;  // any port
    auto admin = cluster::AdminClient::open({address}, std::chrono::seconds{2});
    if (!admin) continue;
    http::Response ready = admin->ask("/readyz");
    if (ready.delivery != http::Delivery::kReplied) {
      silent += (silent.empty() ? "" : ", ") + address;
      continue;
    }
    const std::string_view reason = trimmed(ready.body);
    const std::string daemon = "the daemon at " + address;
    if (ready.status == 200) return report.ok("daemon", daemon + " is ready");
    return report.warn("daemon", fmt::format("{} is not ready: {}", daemon, reason),
                       "it goes on when that is over; \"systemctl status lictor\" shows the same");
  }
  if (silent.empty()) return;
  report.warn("daemon", "none of this configuration runs on this host: nobody answers at " + silent,
              "systemctl start lictor; its log says why it has ended");
}

// Only a daemon that registers its service needs this right.
void check_service(Store& store, Report& report) {
  const auto may = store.may_write("service", "lictor");
  if (!may) return;  // this Consul cannot be asked
  if (*may) return report.ok("service", "the token may register the service lictor");
  report.fail("service", "the token may not register the service lictor",
              R"(the daemon needs: service "lictor" { policy = "write" }; or set consul.register )"
              "to false",
              ErrorCode::kPermissionDenied);
}

}  // namespace

// Consul limits the connections of a host (http_max_conns_per_client), so an operator needs the
// number.
std::string connections_text(std::size_t queues, bool has_admin) {
  const std::size_t polls = queues * net::kPollsPerQueue;
  std::string text = fmt::format("the daemon takes at most {} to one Consul agent",
                                 counted(net::connections_of(queues, has_admin), "connection"));
  if (polls <= net::kPollConnections) return text;
  return text + fmt::format(
                    ": its {} blocking queries take turns on {}, so it sees a new task within "
                    "about {} and other changes within about {}",
                    polls, net::kPollConnections, format_duration(net::PollTurns::kPromptRound),
                    format_duration(net::PollTurns::kRound));
}

Result<int> check(Console& console, const CheckOptions& options, bool json) {
  Report report;
  check_configuration(options, report);
  if (!options.error) {
    if (options.serves) {
      check_state_dir(options, report);
      check_workers(options, report);
      report.ok("connections", connections_text(options.served_queues, options.has_admin));
      check_admin(options, report);
      check_daemon(options, report);
    }
    console.progress("asking Consul...");
    const Reached reached = check_consul(options, console, report);
    if (reached.transport) {
      Store store{*reached.transport};
      if (options.serves && options.registers) check_service(store, report);
      for (const CheckOptions::Queue& queue : options.queues) {
        const std::size_t first = report.lines().size();
        check_queue(store, queue, reached.node, options.serves, report);
        const bool by_name = options.file.empty() && queue.name != "default";
        if (options.served_queues > 1 || by_name) report.name_queue(first, queue.name);
      }
    }
    console.end_progress();
  }
  report.repeat_options(console);
  if (json) {
    console.print(report.json());
  } else {
    console.print(report.page());
  }
  const auto failure = report.first_failure();
  if (failure) return exit_code(*failure);
  return options.strict && report.warned() ? kFailed : kDone;
}

}  // namespace lictor::cli
