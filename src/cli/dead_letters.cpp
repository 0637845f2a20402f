#include "cli/dead_letters.h"

#include <optional>

namespace lictor::cli {
namespace {

// At a time. Letters between may have been purged, so one that is missing does not end the search;
// sixteen in a row do.
constexpr std::uint32_t kProbed = 16;

}  // namespace

Result<std::vector<TaskView>> dead_letters_of(const Client& client, const std::string& id) {
  const std::string task_key = client.layout.task_key(id);
  std::vector<TaskView> letters;
  // By itself, since reading many tells "not there" from "no right" only where something is.
  auto first = client.store.get(client.layout.dead_key(task_key, 1));
  if (!first) return tl::unexpected(std::move(first.error()));
  if (*first) letters.push_back(view_dead_letter(client.layout, **std::move(first)));

  for (std::uint32_t copy = 2;; copy += kProbed) {
    std::vector<std::string> keys;
    for (std::uint32_t i = 0; i < kProbed; ++i) {
      keys.push_back(client.layout.dead_key(task_key, copy + i));
    }
    auto entries = client.store.get_all(keys);
    if (!entries) return tl::unexpected(std::move(entries.error()));
    bool any = false;
    for (auto& entry : *entries) {
      if (!entry) continue;
      any = true;
      letters.push_back(view_dead_letter(client.layout, *std::move(entry)));
    }
    if (!any) return letters;
  }
}

}  // namespace lictor::cli
