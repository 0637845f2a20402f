#include "dev/state.h"

#include <algorithm>

namespace lictor::dev {
const KvRecord* State::find(std::string_view key) const {
  const auto it = records_.find(key);
  return it == records_.end() ? nullptr : &it->second;
}

std::pair<State::Records::const_iterator, State::Records::const_iterator> State::under(
    std::string_view prefix) const {
  const auto first = records_.lower_bound(prefix);
  auto last = first;
  while (last != records_.end() && last->first.starts_with(prefix)) ++last;
  return {first, last};
}

std::uint64_t State::prefix_index(std::string_view prefix) const {
  if (prefix.empty()) return table_index();
  std::uint64_t index = 0;
  const auto [first, last] = under(prefix);
  for (auto it = first; it != last; ++it) index = std::max(index, it->second.modify_index);
  for (auto it = tombstones_.lower_bound(prefix);
       it != tombstones_.end() && it->first.starts_with(prefix); ++it) {
    index = std::max(index, it->second);
  }
  return index == 0 ? table_index() : index;
}

// `with_session`: the record decides about the lock; else the lock stays as it is.
void State::store(KvRecord& record, bool with_session) {
  const KvRecord* old = find(record.key);
  record.create_index = old == nullptr ? index_ : old->create_index;
  if (!with_session) record.session = old == nullptr ? "" : old->session;
  // A write that changes nothing wakes no query (consul.md 2.4).
  if (old != nullptr && old->lock_index == record.lock_index && old->flags == record.flags &&
      old->value == record.value && old->session == record.session) {
    record.modify_index = old->modify_index;
    return;
  }
  record.modify_index = index_;
  remember(record.key);
  kv_index_ = index_;
  records_.insert_or_assign(record.key, record);
}

void State::set(KvRecord& record) { store(record, false); }

bool State::compare_and_set(KvRecord& record) {
  const KvRecord* old = find(record.key);
  if ((old == nullptr ? 0 : old->modify_index) != record.modify_index) return false;
  store(record, false);
  return true;
}

bool State::lock(KvRecord& record) {
  const KvRecord* old = find(record.key);
  if (old != nullptr && !old->session.empty() && old->session != record.session) return false;
  record.lock_index = old == nullptr ? 0 : old->lock_index;
  if (old == nullptr || old->session.empty()) ++record.lock_index;
  store(record, true);
  return true;
}

bool State::unlock(KvRecord& record) {
  const KvRecord* old = find(record.key);
  if (old == nullptr || old->session != record.session) return false;
  record.lock_index = old->lock_index;
  record.session.clear();
  store(record, true);
  return true;
}

void State::erase(std::string_view key) {
  const auto it = records_.find(key);
  if (it == records_.end()) return;
  remember(key);
  bury(key);
  records_.erase(it);
  kv_index_ = index_;
}

bool State::compare_and_erase(std::string_view key, std::uint64_t modify_index) {
  const KvRecord* old = find(key);
  if (old == nullptr) return true;  // as Consul answers (consul.md 3.3)
  if (old->modify_index != modify_index) return false;
  erase(key);
  return true;
}

void State::erase_tree(std::string_view prefix) {
  const auto [first, last] = under(prefix);
  if (first == last) return;
  for (auto it = first; it != last; ++it) remember(it->first);
  records_.erase(first, last);
  if (!prefix.empty()) bury(prefix);  // one tombstone for all of it
  kv_index_ = index_;
}

void State::bury(std::string_view key) {
  if (undo_) {
    const auto old = tombstones_.find(key);
    undo_->tombstones.emplace_back(
        key, old == tombstones_.end() ? std::nullopt : std::optional{old->second});
  }
  tombstones_.insert_or_assign(std::string{key}, index_);
  tombstone_index_ = index_;
}

void State::begin() { undo_ = Undo{{}, {}, kv_index_, tombstone_index_}; }

void State::remember(std::string_view key) {
  if (!undo_) return;
  const KvRecord* old = find(key);
  undo_->records.emplace_back(key, old == nullptr ? std::nullopt : std::optional{*old});
}

// Undoes the last change first: of a key that was written twice, the oldest value is restored.
void State::roll_back() {
  for (auto it = undo_->records.rbegin(); it != undo_->records.rend(); ++it) {
    if (it->second) {
      records_.insert_or_assign(it->first, std::move(*it->second));
    } else {
      records_.erase(it->first);
    }
  }
  for (auto it = undo_->tombstones.rbegin(); it != undo_->tombstones.rend(); ++it) {
    if (it->second) {
      tombstones_.insert_or_assign(it->first, *it->second);
    } else {
      tombstones_.erase(it->first);
    }
  }
  kv_index_ = undo_->kv_index;
  tombstone_index_ = undo_->tombstone_index;
  undo_.reset();
}

void State::add_session(SessionRecord session) {
  session.create_index = session_index_ = index_;
  sessions_.insert_or_assign(session.id, std::move(session));
}

// With the behavior "delete" the keys go, and leave tombstones; with "release" they stay, unlocked.
std::vector<std::string> State::remove_session(const std::string& id) {
  auto node = sessions_.extract(id);
  if (node.empty()) return {};
  session_index_ = index_;
  std::vector<std::string> held;
  for (const auto& [key, record] : records_) {
    if (record.session == id) held.push_back(key);
  }
  for (const std::string& key : held) {
    if (node.mapped().behavior == "delete") {
      erase(key);
    } else {
      KvRecord freed = *find(key);
      freed.session.clear();
      store(freed, true);
    }
  }
  return held;
}

void State::reap(std::uint64_t index) {
  std::erase_if(tombstones_, [&](const auto& tombstone) { return tombstone.second <= index; });
  if (tombstone_index_ <= index) tombstone_index_ = 0;
}

}  // namespace lictor::dev
