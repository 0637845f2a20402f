#include "app/command_line.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "app/command_line_operating.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "cli/input.h"
#include "cli/process.h"

namespace lictor::app {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done; 1 the thing asked about failed; 2 bad usage or configuration; 3 not "
    "found;\n"
    "4 Consul unreachable; 5 permission denied.\n"
    "\n"
    "Environment: CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN and the others of Consul's own; "
    "LICTOR_CONFIG,\n"
    "LICTOR_ROOT, LICTOR_CONSUL_ADDRESSES, LICTOR_TOKEN_FILE. Flags win over the environment, "
    "that\n"
    "over the configuration.\n"
    "\n"
    "\"lictor COMMAND --help\" shows each with examples.\n";

constexpr const char* kRunExamples =
    "Examples:\n"
    "  lictor run                              with /etc/lictor/lictor.json\n"
    "  lictor run --config ./lictor.json --dry-run\n"
    "  lictor run --config ./lictor.json --once\n";

constexpr const char* kSubmitExamples =
    "The id is printed. A task that exists already is left as it is (exit code 1).\n"
    "\n"
    "With --wait the exit code tells how it ended: 0 done, 1 dead. A task that somebody withdraws\n"
    "counts as done, since it leaves no trace. Where the queue keeps a history, the result that "
    "the\n"
    "task left is printed as JSON after the id.\n"
    "\n"
    "With --ndjson each line is a record: {\"taskId\": \"42\", \"taskType\": \"Notify\", "
    "\"taskPara\": {}}.\n"
    "taskId and taskTime are made where they are missing, taskType is TYPE. Tasks without a time\n"
    "of their own start in the order of the lines: no leader at work finds a line before those\n"
    "above it. With --any-order it may, which is faster, for what may start in any order, or "
    "later.\n"
    "A line waits at most a fifth of a second for those after it. The exit code is 1 if any line\n"
    "was refused; 4 if Consul went away in the middle: the lines in doubt are named then, and "
    "none\n"
    "after them was sent. Ctrl-C ends what is under way, and it says after which line.\n"
    "\n"
    "Examples:\n"
    "  lictor submit CreateTableSpace --para instanceId=db7 --para initSize=8000\n"
    "  lictor submit Notify --para-json '{\"to\": [\"ops\"]}' --in 10m\n"
    "  lictor submit Report --at 2026-11-21T09:30:00Z --serial-key reports --id report-7\n"
    "  lictor submit Backup --para host=db7 --wait --wait-timeout 1h && echo done\n"
    "  lictor submit Notify --ndjson tasks.ndjson\n"
    "  jq -c .tasks[] export.json | lictor submit --ndjson -\n";

constexpr const char* kListExamples =
    "STATE is waiting, scheduled (not due yet), running, dead, done (where the queue keeps a\n"
    "history; left out otherwise), unreadable, too_large or unnameable (its key is not UTF-8).\n"
    "\"running (orphan)\": its owner died or leads no more, and whoever leads runs it again.\n"
    "\n"
    "Examples:\n"
    "  lictor list\n"
    "  lictor list --state dead --type Notify\n"
    "  lictor list --json | jq -r '.tasks[] | select(.attempt > 1) | .id'\n";

constexpr const char* kShowExamples =
    "Examples:\n"
    "  lictor show 42\n"
    "  lictor show 42 --json | jq .tasks[0].error\n";

constexpr const char* kLogsExamples =
    "What the program printed, from whichever member ran it; over the members' admin faces. Ends\n"
    "with --follow when the attempt does. With --json: which attempts' logs there are, and where.\n"
    "\n"
    "Examples:\n"
    "  lictor logs 42\n"
    "  lictor logs 42 --follow\n"
    "  lictor logs 42 --attempt 1 --node host-a\n";

constexpr const char* kMembersExamples =
    "Examples:\n"
    "  lictor members\n"
    "  lictor members --json | jq -r .members[].admin[0]\n";

constexpr const char* kLeaderExamples =
    "The exit code is 3 if nobody leads.\n"
    "\n"
    "Examples:\n"
    "  lictor leader\n"
    "  lictor leader --step-down               and wait until another one leads\n"
    "  lictor leader --step-down --no-wait\n";

constexpr const char* kCheckExamples =
    "Writes nothing. The exit code is 0 if nothing failed.\n"
    "\n"
    "Examples:\n"
    "  lictor check\n"
    "  lictor check --config ./lictor.json --token-file ./consul.token\n"
    "  lictor check --json | jq '.checks[] | select(.status != \"ok\")'\n";

constexpr const char* kDevExamples =
    "Keys, sessions, transactions and blocking queries as a Consul agent answers them, in memory:\n"
    "nothing is kept. Without --config every task is printed and done, until a \"lictor run\" is\n"
    "started beside it.\n"
    "\n"
    "Examples:\n"
    "  lictor dev\n"
    "  lictor dev --no-worker & lictor run --config ./lictor.json\n"
    "  lictor dev --listen 127.0.0.1:0 --config ./lictor.json\n";

constexpr const char* kBenchExamples =
    "Runs a daemon of its own with no-op tasks, and the same writes without lictor, below the "
    "prefix\n"
    "lictor-bench/, which is empty again afterwards. Loads Consul for about a minute.\n"
    "\n"
    "Examples:\n"
    "  lictor bench\n"
    "  lictor bench --tasks 20000 --json | jq '.measured[] | {name, ratio}'\n";

constexpr const char* kVersionExamples =
    "Examples:\n"
    "  lictor version\n"
    "  lictor version --json | jq -r .version\n";

// CLI11's own words, without the lists of what goes with what: a wrong combination is told when it
// is tried.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    column_width(32);
    label("SUBCOMMAND", "COMMAND");
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string form = option->get_type_name();
    return form.empty() ? form : ' ' + form;
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    for (const CLI::App* parent = app->get_parent(); parent; parent = parent->get_parent()) {
      name = parent->get_name() + ' ' + name;
    }
    return '\n' + CLI::Formatter::make_usage(app, name);
  }
};

class CommandLine {
 public:
  CommandLine() {
    app_.formatter(std::make_shared<HelpFormatter>());  // before the commands, which inherit it
    app_.description("Runs the tasks that Consul holds, in order, one host at a time.");
    app_.require_subcommand(1);
    app_.set_help_flag("-h,--help", "Show this help");
    app_.footer(kFooter);
    add_globals();
    add_run();
    add_submit();
    add_list();
    add_others();
    operating_.add(app_);
    add_last();
  }

  std::variant<Invocation, Answer> parse(std::vector<std::string> arguments) {
    try {
      std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
      app_.parse(arguments);
      return invocation();
    } catch (const CLI::Success& help) {
      const CLI::App& place = innermost();
      const bool is_unknown = expects_command(place) && !app_.remaining(true).empty();
      return is_unknown ? usage_error(help.what()) : Answer{cli::kDone, help_of(place)};
    } catch (const CLI::ArgumentMismatch& error) {
      const std::string text = error.what();
      return usage_error(text.substr(0, text.find(':')) + ": expected a value");
    } catch (const CLI::Error& error) {
      return usage_error(error.what());
    }
  }

 private:
  using Text = std::string CommandLine::*;

  CLI::App* add_command(const char* name, const char* description, const char* examples) {
    return app::add_command(app_, name, description, examples);
  }

  void add_globals() {
    Overrides& overrides = invocation_.overrides;
    add_text(&app_, "--config", overrides.config,
             "The configuration (default: /etc/lictor/lictor.json, if it is there)", "FILE");
    add_text(&app_, "--queue", invocation_.queue,
             "The queue (default: the only one of the configuration, or \"default\")", "NAME");
    add_text(&app_, "--root", overrides.root,
             "What all of lictor's keys begin with (default: lictor/)", "PREFIX");
    add_text(&app_, "--consul", overrides.consul_addresses,
             "Consul's HTTP address, or several with commas between "
             "(default: http://127.0.0.1:8500)",
             "ADDRESS");
    add_text(&app_, "--token-file", overrides.token_file, "A file with the ACL token", "FILE");
    app_.add_flag("--json", invocation_.json, "Print one JSON document instead of text");
  }

  void add_run() {
    run_ = add_command("run", "Run the daemon, until SIGTERM or SIGINT", kRunExamples);
    run_->add_flag("--once", run_options_.once, "End when no due tasks are left");
    run_->add_flag("--dry-run", run_options_.dry_run,
                   "Check the configuration, say what would be run, and end");
    Overrides& overrides = invocation_.overrides;
    add_text(run_, "--node", overrides.node, "This member's name (default: the host's)", "NAME");
    add_text(run_, "--state-dir", overrides.state_dir, "Where state is kept", "FOLDER");
    add_text(run_, "--log-level", overrides.log_level, "trace, debug, info, warn or error",
             "LEVEL");
    add_text(run_, "--log-format", overrides.log_format, "text, json or journal", "FORMAT");
  }

  void add_submit() {
    submit_ = add_command("submit", "Write a task, or many", kSubmitExamples);
    cli::TaskText& task = submit_options_.task;
    submit_->add_option("TYPE", type_, "Picks the executor")->type_name("");
    std::vector<CLI::Option*> of_one;
    of_one.push_back(
        add_text(submit_, "--id", task.id, "Its id (default: a new one, ordered by time)", "ID"));
    of_one.push_back(submit_->add_option("--para", task.paras, "A parameter, as a string")
                         ->type_name("NAME=VALUE")
                         ->expected(1)
                         ->allow_extra_args(false)
                         ->take_all());
    of_one.push_back(add_text(submit_, "--para-json", task.para_json,
                              "The parameters as JSON, from a file, or from standard input",
                              "JSON|@FILE|-"));
    CLI::Option* at = add_text(submit_, "--at", task.at,
                               "Not before: RFC 3339, or seconds since the epoch", "TIME");
    CLI::Option* in = add_text(submit_, "--in", task.in, "Not before this has passed", "DURATION");
    in->excludes(at);
    of_one.push_back(at);
    of_one.push_back(in);
    CLI::Option* expire_at = add_text(submit_, "--expire-at", task.expire_at,
                                      "A dead letter if not started by then: as --at", "TIME");
    of_one.push_back(expire_at);
    of_one.push_back(add_text(submit_, "--expire-in", task.expire_in,
                              "A dead letter if not started by then", "DURATION")
                         ->excludes(expire_at));
    of_one.push_back(add_text(submit_, "--task-time", task.task_time,
                              "Its place in the order (default: now)", "TIME"));
    of_one.push_back(add_text(submit_, "--serial-key", task.serial_key,
                              "Tasks of one key run one after the other", "KEY"));
    of_one.push_back(submit_
                         ->add_option("--max-attempts", task.max_attempts,
                                      "Dead after so many (default: the executor's setting)")
                         ->type_name("N")
                         ->check(count_form(1)));
    of_one.push_back(add_text(submit_, "--timeout", task.timeout,
                              "End an attempt after this (default: the executor's setting)",
                              "DURATION"));
    of_one.push_back(add_text(submit_, "--backoff", task.backoff,
                              "Wait so long after the first failure (default: the executor's)",
                              "DURATION"));
    CLI::Option* wait =
        submit_->add_flag("--wait", submit_options_.wait, "Wait until it is done or dead");
    of_one.push_back(wait);
    of_one.push_back(add_text(submit_, "--wait-timeout", wait_timeout_,
                              "Wait no longer than this (exit code 1)", "DURATION")
                         ->check(duration_form())
                         ->needs(wait));
    ndjson_ = add_text(submit_, "--ndjson", ndjson_file_,
                       "Write many: a record a line, from a file, or with - from standard input",
                       "FILE|-");
    for (CLI::Option* option : of_one) ndjson_->excludes(option);
    submit_
        ->add_flag("--any-order", any_order_,
                   "A leader may find a line before those above it: faster")
        ->needs(ndjson_);
  }

  void add_list() {
    list_ = add_command("list", "List the tasks", kListExamples);
    list_->add_option("--state", list_options_.state, "Only those in this state")
        ->type_name("STATE");
    list_->add_option("--type", list_options_.type, "Only those of this type")->type_name("TYPE");
    list_->add_option("--limit", list_options_.limit, "Show the first N (default: all)")
        ->type_name("N")
        ->check(count_form(0));
  }

  void add_others() {
    show_ = add_command("show", "Show everything about a task, also a dead one", kShowExamples);
    show_->add_option("ID", show_id_, "The task's id")->required()->type_name("");
  }

  void add_last() {
    logs_ = add_command("logs", "Print what a task's program printed", kLogsExamples);
    logs_->add_option("ID", logs_options_.id, "The task's id")->required()->type_name("");
    logs_->add_flag("-f,--follow", logs_options_.follow, "Go on until the attempt ends");
    logs_->add_option("--attempt", logs_options_.attempt, "Of this attempt (default: the newest)")
        ->type_name("N")
        ->check(count_form(1));
    logs_->add_option("--node", logs_options_.node, "Ask this member alone")->type_name("NODE");

    members_ = add_command("members", "List the daemons that take part", kMembersExamples);

    leader_ = add_command("leader", "Show who leads the queue, or move the lead", kLeaderExamples);
    CLI::Option* step_down = leader_->add_flag("--step-down", leader_options_.step_down,
                                               "Ask the leader to hand over, and wait for it");
    CLI::Option* no_wait = leader_->add_flag("--no-wait", no_wait_, "Ask, and do not wait");
    no_wait->needs(step_down);
    add_text(leader_, "--timeout", leader_timeout_, "Wait no longer than this (default: 30s)",
             "DURATION")
        ->check(duration_form())
        ->needs(step_down)
        ->excludes(no_wait);

    check_ = add_command("check", "Look for what is wrong: configuration, Consul, rights, tasks",
                         kCheckExamples);
    dev_ = add_command("dev", "Try it out without a Consul: a store and a worker in one",
                       kDevExamples);
    dev_->add_option("--listen", dev_options_.listen,
                     "Where the store listens (default: 127.0.0.1:8500; port 0: any)")
        ->type_name("ADDRESS");
    dev_->add_flag("!--no-worker", dev_options_.worker, "The store alone");
    bench_ = add_command("bench", "Measure lictor beside Consul alone", kBenchExamples);
    bench_->add_option("--tasks", bench_options_.tasks, "How many, for each figure (default: 2000)")
        ->type_name("N")
        ->check(count_form(1));
    version_ = add_command("version", "Say which version this is", kVersionExamples);
  }

  std::variant<Invocation, Answer> invocation() {
    if (submit_->parsed()) return submit_invocation();
    if (run_->parsed()) invocation_.command = run_options_;
    if (dev_->parsed()) invocation_.command = dev_options_;
    if (list_->parsed()) invocation_.command = list_options_;
    if (show_->parsed()) invocation_.command = ShowCommand{show_id_};
    if (auto command = operating_.command()) invocation_.command = std::move(*command);
    if (leader_->parsed()) {
      leader_options_.wait = !no_wait_;
      if (leader_timeout_) leader_options_.timeout = *parse_duration(*leader_timeout_);
      invocation_.command = leader_options_;
    }
    if (logs_->parsed()) invocation_.command = logs_options_;
    if (members_->parsed()) invocation_.command = MembersCommand{};
    if (check_->parsed()) invocation_.command = CheckCommand{};
    if (bench_->parsed()) invocation_.command = bench_options_;
    if (version_->parsed()) invocation_.command = VersionCommand{};
    return invocation_;
  }

  std::variant<Invocation, Answer> submit_invocation() {
    if (ndjson_file_) {
      invocation_.command = cli::SubmitManyOptions{
          *ndjson_file_, type_, any_order_ ? SubmitOrder::kAny : SubmitOrder::kAsGiven};
      return invocation_;
    }
    if (type_.empty()) return usage_error("TYPE is required: the kind of task");
    submit_options_.task.type = type_;
    auto& para_json = submit_options_.task.para_json;
    if (para_json) {
      auto text = cli::read_argument("--para-json", *para_json);
      if (!text) return usage_error(text.error().message);
      para_json = std::move(*text);
    }
    if (wait_timeout_) submit_options_.wait_timeout = parse_duration(*wait_timeout_);
    invocation_.command = submit_options_;
    return invocation_;
  }

  // The command that was reached: "dead" or, within it, "list".
  [[nodiscard]] const CLI::App& innermost() const {
    const CLI::App* place = &app_;
    while (!place->get_subcommands().empty()) place = place->get_subcommands().front();
    return *place;
  }

  // "dead list"
  [[nodiscard]] std::string name_of(const CLI::App& place) const {
    const CLI::App* parent = place.get_parent();
    const bool inner = parent != nullptr && parent != &app_;
    return (inner ? parent->get_name() + ' ' : "") + place.get_name();
  }

  static bool expects_command(const CLI::App& app) { return !app.get_subcommands({}).empty(); }

  static std::string help_of(const CLI::App& app) {
    std::string text = app.help();
    text.erase(text.find_last_not_of('\n') + 1);
    return text + '\n';
  }

  // One line, with the way out.
  Answer usage_error(std::string what) {
    const CLI::App& place = innermost();
    const bool command_expected = expects_command(place);
    std::vector<std::string> extras = app_.remaining(true);
    if (&place != &app_ && extras.empty()) extras = place.remaining();
    if (!extras.empty()) {
      what = unexpected(place, extras.front(), command_expected);
    } else if (command_expected && what.find("subcommand") != std::string::npos) {
      return {cli::kUsage, "lictor: expected a command\n\n" + help_of(place)};
    }
    std::replace(what.begin(), what.end(), '\n', ' ');
    std::string help = "lictor ";
    if (&place != &app_) help += name_of(place) + ' ';
    return {cli::kUsage, "lictor: " + what + "; see \"" + help + "--help\"\n"};
  }

  [[nodiscard]] std::string unexpected(const CLI::App& place, const std::string& word,
                                       bool command_expected) const {
    const bool flag = word.starts_with('-') && word.size() > 1;
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> known;
    if (flag) {
      for (const CLI::App* app : {&place, &app_}) {
        for (const CLI::Option* option : app->get_options()) {
          if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames().front());
        }
      }
    } else if (command_expected) {
      for (const CLI::App* command : place.get_subcommands({}))
        known.push_back(command->get_name());
    }
    const std::string near = nearest(name, {known.begin(), known.end()});
    std::string text = flag               ? "no option "
                       : command_expected ? "no command "
                                          : "unexpected argument ";
    text += '"' + printable(excerpt(name)) + '"';
    if (!near.empty()) text += "; did you mean " + near + '?';
    return text;
  }

  CLI::App app_{"", "lictor"};
  OperatingCommands operating_;
  CLI::App* run_ = nullptr;
  CLI::App* dev_ = nullptr;
  DevCommand dev_options_;
  CLI::App* submit_ = nullptr;
  CLI::App* list_ = nullptr;
  CLI::App* show_ = nullptr;
  CLI::App* logs_ = nullptr;
  CLI::App* members_ = nullptr;
  CLI::App* leader_ = nullptr;
  CLI::App* bench_ = nullptr;
  CLI::App* check_ = nullptr;
  CLI::App* version_ = nullptr;
  CLI::Option* ndjson_ = nullptr;

  Invocation invocation_;
  RunCommand run_options_;
  cli::SubmitOptions submit_options_;
  std::string type_;
  std::optional<std::string> wait_timeout_;
  std::optional<std::string> ndjson_file_;
  bool any_order_ = false;
  cli::ListOptions list_options_;
  std::string show_id_;
  cli::LogsOptions logs_options_;
  cli::LeaderOptions leader_options_;
  cli::BenchOptions bench_options_;
  bool no_wait_ = false;
  std::optional<std::string> leader_timeout_;
};

}  // namespace

std::variant<Invocation, Answer> parse_command_line(const std::vector<std::string>& arguments) {
  return CommandLine{}.parse(arguments);
}

}  // namespace lictor::app
