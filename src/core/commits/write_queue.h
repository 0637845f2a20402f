#pragma once

// The writes that wait for a transaction, in two FIFO queues that take turns: claims, and all else.
// So both kinds are spread over the transactions in flight.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

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
  /// Which is next; there must be one.
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
      Fifo kept;
      for (; !queue->empty(); queue->pop_front()) {
        Item& item = queue->front();
        if (is_over(item.write)) {
          cost_ -= item.cost;
        } else {
          kept.push_back(std::move(item));
        }
      }
      *queue = std::move(kept);
    }
  }
  /// Whether any of them fulfils `is_so(const Write&)`.
  template <class IsSo>
  [[nodiscard]] bool any(IsSo is_so) const {
    return ends_.any(is_so) || claims_.any(is_so);
  }

  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return claims_.size() + ends_.size(); }
  /// Of all of them together.
  [[nodiscard]] const Cost& cost() const { return cost_; }

 private:
  // std::deque would allocate and free a block for every item or two of this size.
  class Fifo {
   public:
    void push_back(Item item) {
      if (first_ > items_.size() / 2) {
        items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
      }
      items_.push_back(std::move(item));
    }
    void push_front(Item item) {
      if (first_ == 0) {
        items_.insert(items_.begin(), std::move(item));
      } else {
        items_[--first_] = std::move(item);
      }
    }
    void pop_front() { ++first_; }
    [[nodiscard]] Item& front() { return items_[first_]; }
    [[nodiscard]] const Item& front() const { return items_[first_]; }
    [[nodiscard]] std::size_t size() const { return items_.size() - first_; }
    [[nodiscard]] bool empty() const { return size() == 0; }
    template <class IsSo>
    [[nodiscard]] bool any(IsSo is_so) const {
      const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(first_);
      return std::any_of(begin, items_.end(), [&](const Item& each) { return is_so(each.write); });
    }

   private:
    std::vector<Item> items_;
    std::size_t first_ = 0;
  };

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
