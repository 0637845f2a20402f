#pragma once

// The writes that wait for a transaction, in two FIFO queues that take turns: claims, and all other
// writes. So both kinds are spread over the transactions in flight.

#include <cstddef>
#include <deque>
#include <utility>

#include "core/commits/op_cost.h"
#include "core/commits/write.h"

namespace lictor::core {

class WriteQueue {
 public:
  struct Item {
    Write write;
    Cost cost;
  };

  void push_back(Item item) {
    cost_ += item.cost;
    Fifo& queue = queue_of(item.write);
    queue.push_back(std::move(item));
  }
  void push_front(Item item) {
    cost_ += item.cost;
    Fifo& queue = queue_of(item.write);
    queue.push_front(std::move(item));
  }
  /// The next write; there must be one.
  [[nodiscard]] const Item& front() const {
    return claim_is_next() ? claims_.front() : ends_.front();
  }
  Item pop_front() {
    auto& queue = claim_is_next() ? claims_ : ends_;
    claims_turn_ = !claim_is_next();
    Item item = std::move(queue.front());
    queue.pop_front();
    cost_ -= item.cost;
    return item;
  }
  void clear() { *this = {}; }
  /// Removes the items for which `is_over(const Write&)`.
  template <class IsOver>
  void erase_if(IsOver is_over) {
    for (Fifo* queue : {&ends_, &claims_}) {
      std::erase_if(*queue, [&](const Item& item) {
        const bool over = is_over(item.write);
        if (over) cost_ -= item.cost;
        return over;
      });
    }
  }
  /// Calls `visit(const Write&)` for each waiting write.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Fifo* queue : {&ends_, &claims_}) {
      for (const Item& item : *queue) visit(item.write);
    }
  }

  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return claims_.size() + ends_.size(); }
  /// The cost of all waiting writes together.
  [[nodiscard]] const Cost& cost() const { return cost_; }

 private:
  using Fifo = std::deque<Item>;

  Fifo& queue_of(const Write& write) { return write.purpose == Purpose::kClaim ? claims_ : ends_; }
  [[nodiscard]] bool claim_is_next() const {
    return ends_.empty() || (claims_turn_ && !claims_.empty());
  }
  Fifo ends_;
  Fifo claims_;
  bool claims_turn_ = false;
  Cost cost_;
};

}  // namespace lictor::core
