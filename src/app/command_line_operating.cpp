#include "app/command_line_operating.h"

#include <charconv>

#include "base/text.h"
#include "base/time_text.h"

namespace lictor::app {
namespace {

// Flags that say where, for all commands; before the command's name or after it.
constexpr const char* kGlobals =
    "Everywhere: --config FILE, --queue NAME, --root PREFIX, --consul ADDRESS, --token-file FILE,\n"
    "--json (see \"lictor --help\")\n";

constexpr const char* kWhyExamples =
    "Not due yet, paused, nobody leads, too large: what keeps a task from being started.\n"
    "\n"
    "Examples:\n"
    "  lictor why 42\n"
    "  lictor why 42 --json | jq -r .reasons[]\n";

constexpr const char* kCancelExamples =
    "Deletes the task, in whatever state it is. The leader then stops the job of a running one:\n"
    "TERM, and after kill_grace KILL. A task that is not there is exit code 3. With --all, what "
    "has\n"
    "ended in the meantime is no failure.\n"
    "\n"
    "Examples:\n"
    "  lictor cancel 42 43\n"
    "  lictor cancel --all --type Notify\n"
    "  lictor cancel --all --state scheduled --yes\n";

constexpr const char* kRetryExamples =
    "A dead letter becomes a waiting task again, with the record that its producer wrote and none "
    "of\n"
    "its attempts. Of several dead letters of one task the newest is taken; ID~2 names one. A "
    "task\n"
    "of that id that waits or runs is left as it is (exit code 1).\n"
    "\n"
    "Examples:\n"
    "  lictor retry 42\n"
    "  lictor retry 42~2\n"
    "  lictor retry --all --type CreateTableSpace\n"
    "  lictor retry --all --reason expired --drop-expiry\n";

constexpr const char* kDeadExamples =
    "Examples:\n"
    "  lictor dead list --reason unreadable\n"
    "  lictor dead show 42\n"
    "  lictor dead purge --all --older-than 720h\n";

constexpr const char* kDeadListExamples =
    "Examples:\n"
    "  lictor dead list\n"
    "  lictor dead list --type Notify --older-than 24h\n"
    "  lictor dead list --json | jq -r '.tasks[] | [.id, .reason] | @tsv'\n";

constexpr const char* kDeadShowExamples =
    "Examples:\n"
    "  lictor dead show 42                     all of its dead letters\n"
    "  lictor dead show 42~2 --json | jq .tasks[0].value.record\n";

constexpr const char* kDeadPurgeExamples =
    "Deletes for good. On a terminal it asks first; elsewhere --all needs --yes.\n"
    "\n"
    "Examples:\n"
    "  lictor dead purge 42 42~2\n"
    "  lictor dead purge --all --reason unreadable --older-than 24h --yes\n";

constexpr const char* kPauseExamples =
    "Running jobs go on; nothing is started until \"lictor resume\".\n"
    "\n"
    "Examples:\n"
    "  lictor pause --reason 'the database is being moved'\n"
    "  lictor pause --queue oracle\n";

constexpr const char* kResumeExamples =
    "Examples:\n"
    "  lictor resume\n"
    "  lictor resume --json | jq .changed\n";

// IDs or --all, and what narrows --all down. One of the two must be there.
CLI::Option* add_choice(CLI::App* command, std::vector<std::string>& ids, bool& all,
                        const char* what, const char* all_what) {
  CLI::Option* id = command->add_option("ID", ids, what)->type_name("");
  CLI::Option* every = command->add_flag("--all", all, all_what)->excludes(id);
  command->final_callback([&ids, &all] {
    if (ids.empty() && !all) throw CLI::RequiredError("ID or --all");
  });
  return every;
}

void add_filter(CLI::App* command, CLI::Option* all, const char* name, std::string& target,
                const char* what, const char* form) {
  CLI::Option* option = command->add_option(name, target, what)->type_name(form)->take_last();
  if (all != nullptr) option->needs(all);
}

}  // namespace

CLI::App* add_command(CLI::App& parent, const char* name, const char* description,
                      const char* examples) {
  CLI::App* command = parent.add_subcommand(name, description);
  command->fallthrough();
  command->group("Commands");
  command->footer(std::string{examples} + '\n' + kGlobals);
  return command;
}

CLI::Option* add_text(CLI::App* app, const char* names, std::optional<std::string>& target,
                      const char* what, const char* form) {
  return app->add_option(names, target, what)->type_name(form)->take_last();
}

CLI::Validator duration_form() {
  return CLI::Validator{[](std::string& text) {
                          return parse_duration(text)
                                     ? std::string{}
                                     : "expected a duration such as \"90s\", \"10m\" or \"2h\", "
                                       "got \"" +
                                           excerpt(text) + '"';
                        },
                        ""};
}

CLI::Validator count_form(std::uint32_t least) {
  return CLI::Validator{[least](std::string& text) {
                          std::uint32_t count = 0;
                          const char* end = text.data() + text.size();
                          const auto read = std::from_chars(text.data(), end, count);
                          return read.ec == std::errc{} && read.ptr == end && count >= least
                                     ? std::string{}
                                     : "expected a whole number from " + std::to_string(least) +
                                           " on, got \"" + excerpt(text) + '"';
                        },
                        ""};
}

void OperatingCommands::add(CLI::App& app) {
  why_ = add_command(app, "why", "Say why a task is not running", kWhyExamples);
  why_->add_option("ID", why_command_.id, "The task's id")->required()->type_name("");
  add_cancel(app);
  add_retry(app);
  add_dead(app);
  pause_ = add_command(app, "pause", "Start no more tasks until resumed", kPauseExamples);
  pause_->add_option("--reason", pause_options_.reason, "Why, for the others")
      ->type_name("TEXT")
      ->take_last();
  resume_ = add_command(app, "resume", "Start tasks again", kResumeExamples);
}

void OperatingCommands::add_cancel(CLI::App& app) {
  cancel_ = add_command(app, "cancel", "Withdraw tasks; stop their jobs", kCancelExamples);
  CLI::Option* all = add_choice(cancel_, cancel_options_.ids, cancel_options_.all, "The tasks' ids",
                                "All tasks that the filters let through");
  add_filter(cancel_, all, "--state", cancel_options_.state,
             "Only those that are waiting, scheduled or running", "STATE");
  add_filter(cancel_, all, "--type", cancel_options_.type, "Only those of this type", "TYPE");
  cancel_->add_flag("--yes", cancel_options_.yes, "Do not ask")->needs(all);
}

void OperatingCommands::add_retry(CLI::App& app) {
  retry_ = add_command(app, "retry", "Make dead letters waiting tasks again", kRetryExamples);
  CLI::Option* all = add_choice(retry_, retry_options_.ids, retry_options_.all, "The tasks' ids",
                                "All dead letters that the filters let through");
  add_filter(retry_, all, "--type", retry_options_.type, "Only those of this type", "TYPE");
  add_filter(retry_, all, "--reason", retry_options_.reason, "Only those of this reason", "TEXT");
  retry_->add_flag("--drop-expiry", retry_options_.drop_expiry, "Take expireAt out");
  // Nothing is lost by it, so nothing is asked; what is said to the others may be said to it.
  retry_
      ->add_flag_function(
          "--yes", [](std::int64_t) {}, "Do not ask (it never does)")
      ->needs(all);
}

void OperatingCommands::add_dead(CLI::App& app) {
  CLI::App* dead = add_command(app, "dead", "List, show or delete dead letters", kDeadExamples);
  dead->require_subcommand(1);
  dead_list_ = add_command(*dead, "list", "List the dead letters", kDeadListExamples);
  add_filter(dead_list_, nullptr, "--type", list_options_.type, "Only those of this type", "TYPE");
  add_filter(dead_list_, nullptr, "--reason", list_options_.reason, "Only those of this reason",
             "TEXT");
  add_text(dead_list_, "--older-than", older_than_, "Only those that are dead for longer",
           "DURATION")
      ->check(duration_form());
  dead_list_->add_option("--limit", list_options_.limit, "Show the first N (default: all)")
      ->type_name("N")
      ->check(count_form(0));

  dead_show_ = add_command(*dead, "show", "Show everything about dead letters", kDeadShowExamples);
  dead_show_->add_option("ID", show_options_.id, "The task's id")->required()->type_name("");

  dead_purge_ = add_command(*dead, "purge", "Delete dead letters", kDeadPurgeExamples);
  CLI::Option* all = add_choice(dead_purge_, purge_options_.ids, purge_options_.all,
                                "The dead letters' ids", "All that the filters let through");
  add_filter(dead_purge_, all, "--type", purge_options_.type, "Only those of this type", "TYPE");
  add_filter(dead_purge_, all, "--reason", purge_options_.reason, "Only those of this reason",
             "TEXT");
  add_text(dead_purge_, "--older-than", older_than_, "Only those that are dead for longer",
           "DURATION")
      ->check(duration_form())
      ->needs(all);
  dead_purge_->add_flag("--yes", purge_options_.yes, "Do not ask");
}

std::optional<Command> OperatingCommands::command() {
  if (why_->parsed()) return why_command_;
  if (cancel_->parsed()) return cancel_options_;
  if (retry_->parsed()) return retry_options_;
  if (older_than_) list_options_.older_than = parse_duration(*older_than_);
  purge_options_.older_than = list_options_.older_than;
  if (dead_list_->parsed()) return list_options_;
  if (dead_show_->parsed()) return show_options_;
  if (dead_purge_->parsed()) return purge_options_;
  if (pause_->parsed()) return pause_options_;
  if (resume_->parsed()) return cli::ResumeOptions{};
  return std::nullopt;
}

}  // namespace lictor::app
