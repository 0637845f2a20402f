#include "cli/top_page.h"

#include <map>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "harness.h"
#include "model_consul.h"

namespace lictor::cli::test {

TEST_CASE("top marks a running task whose owner is gone, and not its time") {
  ModelConsul consul;
  Stage stage{consul};
  TopView view;
  view.tasks = {
      {"counts", {{"running", 2}}},
      {"tasks",
       {{{"key", "1"}, {"id", "old"}, {"orphan", true}, {"since", "2020-01-01T00:00:00Z"}},
        {{"key", "2"}, {"id", "new"}, {"orphan", false}, {"since", "2020-01-01T00:00:00Z"}}}}};
  std::map<std::string, std::string> lines;
  std::istringstream text{top_page({stage.client, view, "", {24, 80}}).text(false)};
  for (std::string line, id; std::getline(text, line);) {
    if (std::istringstream{line} >> id) lines[id] = line;
  }
  CHECK(contains(lines["old"], "orphan"));
  CHECK_FALSE(contains(lines["new"], "orphan"));
}

TEST_CASE("top names the types that nobody runs, and no task that has none") {
  ModelConsul consul;
  Stage stage{consul};
  TopView view;
  view.queue = {{"types", {"Mail"}},
                {"findings", {{{"kind", "no_executor"}, {"what", "1 task"}, {"remedy", ""}}}}};
  view.tasks = {{"types", {{"", 1}, {"Mail", 2}, {"Odd", 1}}}};
  const std::string text = top_page({stage.client, view, "", {24, 80}}).text(false);
  CHECK(contains(text, "1 task: \"Odd\" (1)\n"));
}

}  // namespace lictor::cli::test
