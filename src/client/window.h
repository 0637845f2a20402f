#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace lictor::client {

/// Calls that block, several at a time, whose results are taken in the order of the calls. Not
/// thread safe; waits for what is under way when it goes.
template <class Result>
class Window {
 public:
  explicit Window(std::size_t size) : size_(size) {}
  ~Window() {
    for (const auto& call : calls_) call->thread.join();
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  [[nodiscard]] bool full() const { return calls_.size() >= size_; }
  [[nodiscard]] bool empty() const { return calls_.empty(); }

  /// On a thread of its own; must not throw.
  void start(std::function<Result()> function) {
    calls_.push_back(std::make_unique<Call>());
    Call* call = calls_.back().get();
    call->function = std::move(function);
    call->thread = std::thread{[call] { call->result.emplace(call->function()); }};
  }
  /// Of the oldest; waits for it.
  [[nodiscard]] Result next() {
    const std::unique_ptr<Call> oldest = std::move(calls_.front());
    calls_.pop_front();
    oldest->thread.join();
    return std::move(*oldest->result);
  }

 private:
  struct Call {
    std::function<Result()> function;
    std::optional<Result> result;
    std::thread thread;
  };

  const std::size_t size_;
  std::deque<std::unique_ptr<Call>> calls_;
};

/// Transactions; half as many are a twentieth slower.
inline constexpr std::size_t kAtOnce = 16;

}  // namespace lictor::client
