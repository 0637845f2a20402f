// The dead letters of a queue: listed, shown, deleted. "retry" runs them again.

#include <optional>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/try.h"
#include "cli/bulk.h"
#include "cli/command_table.h"
#include "cli/listing.h"
#include "client/change.h"

namespace lictor::cli {
namespace {

struct DeadListOptions {
  DeadOptions dead;
  std::size_t limit = 0;  // 0: none
};

struct DeadPurgeOptions {
  Selection selection;
  bool yes = false;  // do not ask
  DeadOptions dead;
};

Result<int> dead_list(const Client& client, const DeadListOptions& options) {
  return print_list(client, dead_filter(client, options.dead), options.limit);
}

Result<int> dead_show(const Client& client, const std::string& id) {
  return show_task(client, id, true);
}

// Counts first, so that the question says how many letters go. A letter that comes in between and
// fits the filter is purged, too.
Result<int> dead_purge(const Client& client, const DeadPurgeOptions& options) {
  const TaskFilter filter = dead_filter(client, options.dead);
  if (!options.yes) {
    std::size_t count = options.selection.ids.size();
    if (options.selection.all) {
      LICTOR_TRY(const auto listed, client.api.list(filter));
      count = listed.tasks.size();
    }
    if (count == 0) {
      if (client.json) return print_bulk(client, {}, "purged", {});
      client.console.note(none_text(client, filter));
      return kDone;
    }
    const std::string question = fmt::format("delete {} of queue \"{}\" for good?",
                                             counted(count, "dead letter"), client.queue);
    LICTOR_TRY(const bool yes, confirmed(client, question, options.selection.all));
    if (!yes) return kFailed;
  }
  if (options.selection.all) {
    LICTOR_TRY(const auto result, client.api.purge_all(filter, progress_of(client)));
    return print_bulk(client, result, "purged", {}, "dead letter");
  }
  const auto result = client::change_each(
      options.selection.ids, [&](const std::string& id) { return client.api.purge(id); });
  return print_bulk(client, result, "purged",
                    [](const TaskInfo& letter) { return "purged dead letter " + letter.id; });
}

void add_dead_list(Commands& to) {
  auto [command, options] = to.add("list", "List the dead letters", R"(Examples:
  lictor dead list
  lictor dead list --type Notify --older-than 24h
  lictor dead list --json | jq -r '.tasks[] | [.id, .reason] | @tsv'
)",
                                   dead_list);
  add_dead_options(command, options.dead);
  command.count("--limit", options.limit, "Show the first N (default: all)", 0);
}

void add_dead_show(Commands& to) {
  auto [command, id] = to.add("show", "Show everything about dead letters", R"(Examples:
  lictor dead show 42                     all of its dead letters
  lictor dead show 42,5710 --json | jq .tasks[0].value.record
)",
                              dead_show);
  command.argument("ID", id, "The task's id").required();
}

void add_dead_purge(Commands& to) {
  auto [command, options] =
      to.add("purge", "Delete dead letters",
             R"(Deletes for good. Asks first on a terminal; without a terminal --all needs --yes.

Examples:
  lictor dead purge 42 42,5710
  lictor dead purge --all --reason unreadable --older-than 24h --yes
)",
             dead_purge);
  const Option all = add_selection(command, options.selection, "The dead letters' ids",
                                   "All that the filters let through");
  add_dead_options(command, options.dead, &all);
  command.flag("--yes", options.yes, "Do not ask");
}

}  // namespace

void add_dead(Commands& to) {
  Commands dead = to.group("dead", "List, show or delete dead letters", R"(Examples:
  lictor dead list --reason unreadable
  lictor dead show 42
  lictor dead purge --all --older-than 720h
)");
  add_dead_list(dead);
  add_dead_show(dead);
  add_dead_purge(dead);
}

}  // namespace lictor::cli
