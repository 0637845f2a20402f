#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lictor::exec {

/// The paths of the output logs of attempts that run now, whether they have printed anything or
/// not. Thread safe.
class ActiveLogs {
 public:
  void add(const std::string& path) {
    const std::lock_guard lock{mutex_};
    paths_.insert(path);
  }
  void remove(const std::string& path) {
    const std::lock_guard lock{mutex_};
    paths_.erase(path);
  }
  [[nodiscard]] bool contains(std::string_view path) const {
    const std::lock_guard lock{mutex_};
    return paths_.find(path) != paths_.end();
  }
  [[nodiscard]] std::vector<std::string> below(std::string_view prefix) const {
    const std::lock_guard lock{mutex_};
    std::vector<std::string> found;
    for (auto it = paths_.lower_bound(prefix); it != paths_.end() && it->starts_with(prefix);
         ++it) {
      found.push_back(*it);
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> paths_;
};

}  // namespace lictor::exec
