#include "core/schedule.h"

#include <algorithm>
#include <utility>

#include "core/mutant.h"

namespace lictor::core {
namespace {

// expireAt is about the first start: what was begun goes on to its end.
bool can_expire(const Task& task) { return task.expire_at && task.stamp.attempt == 0; }

}  // namespace

bool Schedule::ByOrder::operator()(const Task* a, const Task* b) const {
  return mutant(Mutant::kOrderByKey) ? a->key < b->key : starts_before(*a, *b);
}

bool Schedule::ByDue::operator()(const Task* a, const Task* b) const {
  const auto due_a = due_of(*a);
  const auto due_b = due_of(*b);
  return due_a != due_b ? due_a < due_b : ByOrder{}(a, b);
}

void Schedule::put(std::shared_ptr<const Task> task, bool startable, bool holds_lane) {
  if (known_.find(task->key) != nullptr && !erase_distant(task->key)) {
    if (const auto it = tasks_.find(task->key); it != tasks_.end()) {
      const auto known = it->second.task;
      const bool aside = it->second.aside;
      erase(it);
      if (aside || known->serial_key != task->serial_key) release(*known);
    }
  }
  const Task* raw = task.get();
  // As they are listed each is the last by its key, and often by its time.
  const auto it = tasks_.emplace_hint(tasks_.end(), raw->key, Waiting{std::move(task), startable});
  known_.insert(raw->key);
  // Begun, by whomever, and not ended: the others of its serialKey come after it.
  const bool begun = raw->stamp.taken || (holds_lane && raw->stamp.attempt != 0);
  if (startable && !raw->serial_key.empty() && begun) {
    Lane& lane = lanes_[raw->serial_key];
    if (lane.holder.empty()) lane.holder = raw->key;
  }
  if (startable) {
    const auto due = due_of(*raw);
    if (due) {
      delayed_.insert(delayed_.end(), raw);
    } else {
      it->second.ready = true;
      ready_.insert(ready_.end(), it);
    }
  }
  if (can_expire(*raw)) expiring_.emplace(*raw->expire_at, raw->key);
}

void Schedule::put_distant(const Task& task, WallTime due) {
  remove(task.key);
  known_.insert(task.key, task.modify_index, due);
  ++distant_;
  next_distant_ = std::min(next_distant_, due);
}

bool Schedule::remove(std::string_view key) {
  if (erase_distant(key)) return true;
  const auto it = tasks_.find(key);
  if (it == tasks_.end()) return false;
  const auto task = it->second.task;
  erase(it);
  release(*task);
  return true;
}

void Schedule::take(std::string_view key) {
  // Most often it is the one that was offered.
  const bool first = !ready_.empty() && (*ready_.begin())->first == key;
  const auto it = first ? *ready_.begin() : tasks_.find(key);
  if (it == tasks_.end()) return;
  const auto task = it->second.task;
  if (!task->serial_key.empty()) lanes_[task->serial_key].holder = task->key;
  erase(it);
}

void Schedule::set_aside(std::string_view key) {
  const auto it = tasks_.find(key);
  if (it == tasks_.end() || !it->second.ready) return;
  ready_.erase(it);
  it->second.ready = false;
  it->second.aside = true;
  aside_.insert(it);
  const Task& task = *it->second.task;
  if (!task.serial_key.empty()) lanes_[task.serial_key].holder = task.key;
}

void Schedule::bring_back() {
  for (const Tasks::iterator it : aside_) {
    it->second.aside = false;
    it->second.ready = true;
  }
  ready_.merge(aside_);
}

void Schedule::release(const Task& task) {
  if (task.serial_key.empty()) return;
  const auto lane = lanes_.find(task.serial_key);
  if (lane == lanes_.end()) return;
  if (lane->second.holder == task.key) lane->second.holder.clear();
  unpark(task.serial_key);
}

// Offers the first of those that wait for a lane that nobody holds. Only the first: to offer ten
// thousand in order to park all but one of them again would be done for each that ends.
void Schedule::unpark(const std::string& serial_key) {
  const auto it = lanes_.find(serial_key);
  if (it == lanes_.end() || !it->second.holder.empty()) return;
  auto& parked = it->second.parked;
  if (!parked.empty()) {
    const auto first = *parked.begin();
    parked.erase(parked.begin());
    --parked_;
    first->second.parked = false;
    first->second.ready = true;
    ready_.insert(first);
  }
  if (parked.empty()) lanes_.erase(it);
}

void Schedule::erase(Tasks::iterator it) {
  const auto task = it->second.task;  // keeps the key's bytes alive until the map lets it go
  drop_from_orders(it);
  known_.erase(task->key);
  tasks_.erase(it);
}

bool Schedule::erase_distant(std::string_view key) {
  if (distant_ == 0) return false;
  const KeyTable::Entry* known = known_.find(key);
  if (known == nullptr || !known->distant()) return false;
  known_.erase(key);
  --distant_;
  return true;
}

std::optional<WallTime> Schedule::next_distant() const {
  if (distant_ == 0 || mutant(Mutant::kForgetDistant)) return std::nullopt;
  return next_distant_;
}

bool Schedule::forget_distant(WallTime until) {
  next_distant_ = WallTime::max();
  const std::size_t forgotten = known_.erase_if([&](const KeyTable::Entry& known) {
    if (!known.distant()) return false;
    if (known.due <= until) return true;
    next_distant_ = std::min(next_distant_, known.due);
    return false;
  });
  distant_ -= forgotten;
  return forgotten != 0;
}

void Schedule::forget_distant_others(const std::vector<std::string_view>& keys,
                                     std::uint64_t version) {
  distant_ -= known_.erase_others(keys, [version](const KeyTable::Entry& known) {
    return known.distant() && known.version <= version;
  });
}

void Schedule::doubt_distant() {
  known_.for_each([](KeyTable::Entry& known) {
    if (known.distant()) known.version = 0;
  });
}

void Schedule::drop_from_orders(Tasks::iterator it) {
  Waiting& waiting = it->second;
  const Task& task = *waiting.task;
  if (waiting.aside) {
    aside_.erase(it);
  } else if (waiting.parked) {
    parked_ -= lanes_.find(task.serial_key)->second.parked.erase(it);
  } else if (waiting.ready) {
    if (*ready_.begin() == it) {  // most often, and found without a search
      ready_.erase(ready_.begin());
    } else {
      ready_.erase(it);
    }
    // It may have been the one that was offered for its lane.
    if (!task.serial_key.empty()) unpark(task.serial_key);
  } else if (const auto due = due_of(task); due && waiting.startable) {
    delayed_.erase(&task);
  }
  if (can_expire(task)) expiring_.erase({*task.expire_at, task.key});
}

void Schedule::clear() {
  ready_.clear();
  aside_.clear();
  delayed_.clear();
  expiring_.clear();
  lanes_.clear();
  parked_ = distant_ = 0;
  next_distant_ = WallTime::max();
  known_.clear();
  tasks_.clear();
}

std::shared_ptr<const Task> Schedule::find(std::string_view key) const {
  const auto it = tasks_.find(key);
  return it == tasks_.end() ? nullptr : it->second.task;
}

std::optional<std::uint64_t> Schedule::version(std::string_view key) const {
  const KeyTable::Entry* known = known_.find(key);
  if (known == nullptr) return std::nullopt;
  if (known->distant()) return known->version;
  const auto task = tasks_.find(key);
  return task == tasks_.end() ? std::nullopt : std::optional{task->second.task->modify_index};
}

std::optional<WallTime> Schedule::distant_due(std::string_view key) const {
  const KeyTable::Entry* known = known_.find(key);
  return known == nullptr || !known->distant() ? std::nullopt : std::optional{known->due};
}

void Schedule::advance(WallTime wall) {
  while (!delayed_.empty() && *due_of(**delayed_.begin()) <= wall) {
    const auto due = tasks_.find((*delayed_.begin())->key);
    delayed_.erase(delayed_.begin());
    due->second.ready = true;
    ready_.insert(due);
  }
}

std::shared_ptr<const Task> Schedule::next(WallTime wall) {
  advance(wall);
  while (!ready_.empty()) {
    const auto first = *ready_.begin();
    Waiting& waiting = first->second;
    const std::string& serial_key = waiting.task->serial_key;
    const auto lane = serial_key.empty() ? lanes_.end() : lanes_.find(serial_key);
    if (lane == lanes_.end() || lane->second.holder.empty() ||
        lane->second.holder == first->first || mutant(Mutant::kIgnoreLane)) {
      return waiting.task;
    }
    ready_.erase(ready_.begin());
    waiting.ready = false;
    waiting.parked = true;
    lane->second.parked.insert(first);
    ++parked_;
  }
  return nullptr;
}

bool Schedule::startable(std::string_view key) const {
  const auto it = tasks_.find(key);
  return it != tasks_.end() && it->second.startable;
}

std::string Schedule::lane_holder(const Task& task) const {
  if (task.serial_key.empty()) return {};
  const auto lane = lanes_.find(task.serial_key);
  return lane == lanes_.end() || lane->second.holder == task.key ? std::string{}
                                                                 : lane->second.holder;
}

bool Schedule::parked_before(const std::string& serial_key, const Task& task) const {
  const auto lane = lanes_.find(serial_key);
  return lane != lanes_.end() && !lane->second.parked.empty() &&
         ByOrder{}((*lane->second.parked.begin())->second.task.get(), &task);
}

std::size_t Schedule::count_before(const Task& task, std::string& first) const {
  const ByOrder before;
  std::size_t count = 0;
  const Task* next = nullptr;
  const auto look = [&](const auto& tasks) {
    for (const auto& place : tasks) {
      const Task* other = place->second.task.get();
      if (!before(other, &task)) break;
      ++count;
      if (next == nullptr || before(other, next)) next = other;
    }
  };
  look(ready_);
  if (const auto lane = lanes_.find(task.serial_key); lane != lanes_.end()) {
    look(lane->second.parked);
  }
  if (next != nullptr) first = next->key;
  return count;
}

std::shared_ptr<const Task> Schedule::next_expired(WallTime wall) const {
  if (expiring_.empty() || expiring_.begin()->first > wall) return nullptr;
  return tasks_.find(expiring_.begin()->second)->second.task;
}

std::shared_ptr<const Task> Schedule::next_delayed() const {
  return delayed_.empty() ? nullptr : find((*delayed_.begin())->key);
}

std::optional<WallTime> Schedule::next_due() const {
  return delayed_.empty() ? std::nullopt : due_of(**delayed_.begin());
}

std::optional<WallTime> Schedule::next_expiry() const {
  return expiring_.empty() ? std::nullopt : std::optional{expiring_.begin()->first};
}

}  // namespace lictor::core
