#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace lictor::worker {

/// What is done once the room's mutex is free: what may wait for a disk, and foreign code.
class Outbox {
 public:
  void add(std::function<void()> work) { work_.push_back(std::move(work)); }
  void carry_out() {
    for (const auto& work : work_) work();
    work_.clear();
  }

 private:
  std::vector<std::function<void()>> work_;
};

}  // namespace lictor::worker
