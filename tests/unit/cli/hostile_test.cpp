// Hostile text from other people in Consul, a log or an answer: no command lets it act on a
// terminal or look like a line of ours.

#include <unistd.h>

#include <fstream>
#include <functional>

#include "base/base64.h"
#include "base/host_name.h"
#include "base/text.h"
#include "cli/check.h"
#include "harness.h"
#include "model_consul.h"
#include "temporary_folder.h"

namespace lictor::cli::test {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr const char* kEscapes =
    "e\x1b[2J\x1b]0;t\x07\x1bP\u009b1m\u0085\u00ad\u061c\u180e\u200b\u200d\u200e\u200f\u2028\u2029"
    "\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\ufff9\U000e0041\x7f\t\r\b";
// For a place that shows several lines as they are.
const std::string kEvilLines = std::string{kEscapes} + std::string(1, '\0') + "\nsecond line";
// For a place that shows one line.
const std::string kEvil = std::string{kEscapes} + std::string(1, '\0') + "\nFORGED line";
const std::string kEvilBytes = kEvilLines + "\xff\xc3\xed\xa0\x80\xf4\x90\x80\x80";

// The part of `text` that would act on a terminal; empty: none. Shares no code with lictor's check.
std::string acting_part(const std::string& text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
      return "byte " + std::to_string(byte);
  }
  if (!is_utf8(text)) return "not UTF-8";
  for (int c = 0x80; c < 0xa0; ++c) {
    if (contains(text, std::string{'\xc2', static_cast<char>(c)})) return "C1 " + std::to_string(c);
  }
  for (const char* hidden :
       {"\u00ad", "\u061c", "\u180e", "\u200b", "\u200c", "\u200d", "\u200e",    "\u200f",
        "\u2028", "\u2029", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e",    "\u2060",
        "\u2066", "\u2067", "\u2068", "\u2069", "\ufeff", "\ufff9", "\U000e0041"}) {
    if (contains(text, hidden)) return "hidden " + base64_encode(hidden);
  }
  if (contains("\n" + text, "\nFORGED")) return "a line that is not ours";
  return {};
}

// Removes the escapes that a colour terminal gets from us, none of which is in kEscapes.
std::string without_ours(std::string text) {
  for (const std::string ours :
       {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\r\x1b[K"}) {
    for (std::size_t at = 0; (at = text.find(ours, at)) != std::string::npos;) {
      text.erase(at, ours.size());
    }
  }
  return text;
}

// A daemon's admin API that somebody else has taken over.
FakeAdminApi::Handler hostile_api(int status) {
  return [status](const httpd::Request& request) {
    std::string body = kEvilBytes;
    const std::string& path = request.url.path;
    const auto offset = request.parameter("offset");
    if (status == 200 && path.ends_with("/why")) {
      body = json::array({{{"reason", kEvil}, {"text", kEvil}}}).dump();
    } else if (status == 200 && path == "/v1/logs" && !offset) {
      const json log{{"attempt", 1}, {"token", 5}, {"size", 9}, {"modified", kEvil}};
      body = json{{"logs", json::array({log})}}.dump();
    } else if (offset && *offset != "0") {
      body.clear();
    }
    return httpd::Response{status, "text/plain", body, {}};
  };
}

json hostile_task() {
  return {{"taskId", kEvil},    {"taskType", kEvil}, {"serialKey", kEvil},
          {"taskError", kEvil}, {"taskAttempt", 2},  {"taskPara", {{kEvil, kEvil}}}};
}

json claimed_by(const std::string& session) {
  json task = hostile_task();
  task["taskTaken"] = true;
  task["taskClaim"] = {{"node", kEvil}, {"session", session}, {"nonce", kEvil}, {"since", kEvil}};
  return task;
}

json letter(const char* record_field) {
  json letter{{"reason", kEvil}, {"error", kEvil}, {"output_tail", kEvilLines},
              {"node", kEvil},   {"attempts", 2},  {"at", kEvil}};
  letter[record_field] = record_field == std::string{"record"} ? hostile_task() : json(kEvilLines);
  return letter;
}

enum class Lead { kHeld, kFree, kDivided };

// Writes the sessions and keys of a daemon of ours, with hostile text wherever others can write.
void fill(ModelConsul& consul, const std::string& url, Lead lead) {
  const std::string session = consul.session();
  const json member{{"node", kEvil},    {"host", host_name()}, {"pid", kEvil},  {"admin", {url}},
                    {"version", kEvil}, {"since", kEvil},      {"seen", kEvil}, {"started", kEvil}};
  const std::string free = json{{"node", kEvil}, {"released", kEvil}, {"lock_delay", kEvil}}.dump();
  if (lead == Lead::kHeld) {
    consul.put("lictor/q/leader", member.dump(), session);
  } else if (lead == Lead::kFree) {
    consul.put("lictor/q/leader", free);
  } else {
    consul.put("lictor/q/partitions", "4");
    consul.put("lictor/q/leader", member.dump(), session);
    consul.put("lictor/q/leader/4/0", member.dump(), session);
    consul.put("lictor/q/leader/4/1", json{{"node", "silent"}, {"since", kEvil}}.dump(), session);
    consul.put("lictor/q/leader/4/2", kEvilBytes, session);
    consul.put("lictor/q/leader/4/3", free);
    consul.put("lictor/q/members/" + kEvil + "/drain", kEvil);
  }
  json old = member;
  old["admin"] = {kEvil, "http://127.0.0.1:1/" + kEvil};
  old["seen"] = "2020-01-01T00:00:00Z";
  consul.put("lictor/q/members/" + kEvil, member.dump(), session);
  consul.put("lictor/q/members/other" + kEvil, old.dump(), session);
  consul.put("lictor/q/members/silent", "[]", session);
  consul.put("lictor/q/tasks/" + kEvil, claimed_by(session).dump());
  consul.put("lictor/q/tasks/orphan", claimed_by(kEvil).dump());
  consul.put("lictor/q/tasks/waiting", hostile_task().dump());
  json later = hostile_task();
  later["executeAt"] = "2999-01-01T00:00:00Z";
  consul.put("lictor/q/tasks/later", later.dump());
  json large = hostile_task();
  large["fill"] = std::string(400'000, 'x');
  consul.put_bytes("lictor/q/tasks/large", large.dump());
  consul.put("lictor/q/tasks/no-json", kEvilBytes);
  consul.put("lictor/q/tasks/no-time", json{{"taskTime", kEvil}, {kEvil, 1}}.dump());
  consul.put("lictor/q/tasks/folder" + kEvil + "/", "{}");
  consul.put_bytes("lictor/q/tasks/%FF", hostile_task().dump());
  consul.put("lictor/q/dead/" + kEvil, letter("record").dump());
  consul.put("lictor/q/dead/raw", letter("raw").dump());
  consul.put("lictor/q/dead/no-json", kEvilBytes);
  consul.put("lictor/q/dead/waiting", letter("record").dump());
  json done = letter("record");
  done["result"] = {{kEvil, kEvil}};
  consul.put("lictor/q/done/ended", done.dump());
  consul.put("lictor/q/done/no-json", kEvilBytes);
  consul.put(
      "lictor/q/control",
      json{{"paused", {{"by", kEvil}, {"reason", kEvil}, {"at", kEvil}}}, {kEvil, 1}}.dump());
}

struct Case {
  std::vector<std::string> words;
  bool raw_output = false;  // it prints bytes as they are where there is no terminal
  bool asks = false;        // on a terminal: standard input may be one
  bool waits = false;       // for Consul to come back: not to be tried with each request failing
  std::function<void(ModelConsul&)> before{};  // in place of others, who act meanwhile
  std::function<Result<int>(const Client&)> run{};
};

const std::vector<std::string> kIds{kEvil,
                                    "orphan",
                                    "waiting",
                                    "later",
                                    "large",
                                    "no-json",
                                    "no-time",
                                    "raw",
                                    "ended",
                                    "\xff",
                                    "\xef\xbf\xbd",
                                    "other" + kEvil,
                                    "folder" + kEvil + "/"};

Result<int> check_of(const Client& client) {
  Report report;
  CheckOptions::Queue queue{client.queue, client.layout, {}, {kEvil}, {}};
  queue.options.history.emplace();
  check_queue(client.store, queue, kEvil, true, report);
  client.json ? client.console.print(report.json()) : client.console.print(report.page());
  return 0;
}

std::vector<std::string> with_ids(std::vector<std::string> words) {
  words.insert(words.end(), kIds.begin(), kIds.end());
  return words;
}

std::vector<Case> cases(const std::string& folder) {
  const auto ends_as = [](const std::string& prefix) {
    return [prefix](ModelConsul& consul) {
      consul.on_wait = [&consul, prefix] {
        consul.remove("lictor/q/tasks/new");
        json end = letter("record");
        end["result"] = kEvil;
        consul.put(prefix + "new", end.dump());
      };
    };
  };
  const auto another_leads = [](ModelConsul& consul) {
    consul.on_wait = [&consul] {
      consul.remove("lictor/q/leader");
      consul.put("lictor/q/leader", json{{"node", "b" + kEvil}}.dump(), consul.session());
    };
  };
  const std::string lines = folder + "/tasks";
  std::ofstream{lines} << R"({"taskId":"waiting"})" << '\n'
                       << kEvilBytes << '\n'
                       << json{{"taskId", kEvil}}.dump() << '\n'
                       << json{{"taskTime", kEvil}, {"taskType", kEvil}}.dump() << '\n';
  std::vector<Case> all{
      {{"list"}},
      {{"list", "--state", "dead", "--limit", "1"}},
      {{"list", "--state", "done"}},
      {{"list", "--state", kEvilBytes}},
      {{"dead", "list", "--type", kEvilBytes, "--reason", kEvilBytes}},
      {{"members"}},
      {{"leader"}},
      {{"leader", "--step-down", "--no-wait"}},
      {{"leader", "--step-down", "--timeout", "50ms"}, false, false, true, another_leads},
      {{"leader", "--step-down", "--timeout", "1ms"}, false, false, true},
      {{"check"}, false, false, false, {}, check_of},
      {{"drain", "silent", "--wait", "--wait-timeout", "0s"}},
      {{"drain", kEvilBytes}},
      {{"undrain", "silent"}},
      {{"undrain", "stranger"}},
      {with_ids({"cancel"})},
      {{"cancel", "--all", "--yes"}},
      {{"cancel", "--all"}, false, true},
      {with_ids({"retry"})},
      {{"retry", "--all"}},
      {{"retry", "--all", "--reason", kEvilBytes}},
      {with_ids({"dead", "purge", "--yes"})},
      {{"dead", "purge", "--all", "--yes"}},
      {{"pause", "--reason", kEvil}},
      {{"resume"}},
      {{"submit", kEvil, "--id", "new", "--wait"}, false, false, true, ends_as("lictor/q/dead/")},
      {{"submit", kEvil, "--id", "new", "--wait"}, false, false, true, ends_as("lictor/q/done/")},
      {{"submit", kEvil, "--wait", "--wait-timeout", "1ms"}, false, false, true},
      {{"submit", kEvil, "--id", kEvilBytes}},
      {{"submit", "T", "--para-json", kEvilBytes}},
      {{"submit", "--ndjson", lines}, false, false, true},
      {{"submit", "--ndjson", folder + "/" + kEvilBytes.substr(0, 20), "--any-order"}},
      {{kEvilBytes}},
      {{"list", "--" + kEvilBytes}},
  };
  for (const std::string& id : kIds) {
    all.push_back({{"show", id}});
    all.push_back({{"why", id}});
    all.push_back({{"dead", "show", id}});
    all.push_back({{"logs", id}, true});
    all.push_back({{"logs", id, "--node", kEvilBytes}, true});
  }
  for (Case& each : all) {
    if (each.run) continue;
    auto command = read(each.words);
    if (auto* answer = std::get_if<ParseOutcome>(&command)) {
      each.run = [text = answer->text](const Client& client) -> Result<int> {
        client.console.note_lines(text);  // as the program does
        return 2;
      };
    } else {
      each.run = [folder, run = std::get<Command>(command).on_queue](Client client) {
        client.node = "here";
        client.state_dir = folder;
        return run(client);
      };
    }
  }
  return all;
}

bool tells_of_leaders(const Case& command) {
  for (const char* known : {"list", "why", "members", "leader", "check", "drain", "undrain"}) {
    if (command.words.front() == known) return true;
  }
  return false;
}

// Runs one command, and checks all of its output.
void run(const Case& command, ModelConsul& consul, bool json_output, Terminal terminal) {
  if (command.before) command.before(consul);
  Stage stage{consul, json_output, terminal};
  const auto code = command.run(stage.client);
  if (!code) stage.client.console.report_error(code.error().message);  // as the program does
  REQUIRE(stage.client.console.flush());
  const std::string out = stage.out();
  const std::string err = stage.err();
  CAPTURE(json(command.words).dump(-1, ' ', true, json::error_handler_t::replace));
  CAPTURE(out);
  CAPTURE(err);
  CHECK(acting_part(without_ours(err)).empty());
  if (json_output) {
    CHECK((out.empty() || json::accept(out)));
    CHECK(acting_part(out).empty());
  } else if (terminal.is_terminal || !command.raw_output) {
    CHECK(acting_part(without_ours(out)).empty());
  }
}

}  // namespace

TEST_CASE("no command prints hostile text that acts on a terminal or looks like a line of lictor") {
  const unit::TemporaryFolder folder;
  const std::vector<Case> all = cases(folder.path());
  for (const int status : {200, 500}) {
    const FakeAdminApi api{hostile_api(status)};
    for (const Lead lead : {Lead::kHeld, Lead::kFree, Lead::kDivided}) {
      for (const Case& command : all) {
        if (lead == Lead::kDivided && !tells_of_leaders(command)) continue;
        for (const bool as_json : {false, true}) {
          for (const Terminal terminal : {Terminal{}, Terminal{true, true, 80}}) {
            if (terminal.is_terminal && (as_json || command.asks)) continue;
            ModelConsul store{kEvil};
            fill(store, api.url(), lead);
            run(command, store, as_json, terminal);
          }
        }
      }
    }
  }
}

TEST_CASE("hostile replies in place of Consul's are printed safely") {
  const unit::TemporaryFolder folder;
  const std::vector<Case> all = cases(folder.path());
  const FakeAdminApi api{hostile_api(500)};
  const std::vector<http::Response> faults{
      reply(403, kEvilBytes), reply(500, kEvilBytes), reply(200, kEvilBytes, 9),
      reply(409, json{{"Errors", {{{"OpIndex", 0}, {"What", kEvil}}}}}.dump()),
      reply(404, kEvilBytes)};
  for (const Case& command : all) {
    if (command.waits) continue;
    for (const http::Response& fault : faults) {
      std::size_t asked = 1;
      for (std::size_t faulty = 0; faulty < std::min<std::size_t>(asked, 12); ++faulty) {
        CAPTURE(faulty);
        ModelConsul store{kEvil};
        fill(store, api.url(), Lead::kHeld);
        store.faulty = faulty;
        store.fault = fault;
        run(command, store, faulty % 2 == 1, {});
        asked = store.asked();
      }
    }
  }
}

TEST_CASE("check prints hostile text safely before it asks a queue") {
  for (const bool as_json : {false, true}) {
    test::Scene scene{{}, as_json};
    CheckOptions options{
        .file = kEvil, .warnings = {kEvil}, .error = Error{ErrorCode::kInvalid, kEvilBytes}};
    CHECK(check(scene.client.console, options, as_json) == 2);
    options.error.reset();
    options.daemon_error = Error{ErrorCode::kInvalid, kEvilBytes};
    options.serves = true;
    options.state_dir = options.state_dir_warning = options.state_dir_owner = kEvilBytes;
    options.consul.addresses = {"http://127.0.0.1:1/" + kEvil, "http://" + kEvilBytes};
    CHECK_FALSE(check(scene.client.console, options, as_json) == 0);
    CHECK(acting_part(scene.out()).empty());
    CHECK(acting_part(scene.err()).empty());
  }
}

TEST_CASE("check says whether the configuration is a daemon's") {
  for (const bool serves : {false, true}) {
    test::Scene scene{{}, false};
    const CheckOptions options{.file = "f", .serves = serves, .consul = {.addresses = {"[::1]:1"}}};
    CHECK_FALSE(check(scene.client.console, options, false) == 0);
    CHECK(contains(scene.out(), "checked for commands and not for a daemon") == !serves);
  }
}

}  // namespace lictor::cli::test
