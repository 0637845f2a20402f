#include "core/task_source.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lictor::core {

void TaskSource::start(Instant now, Effects& out) {
  folder_missing_ = false;
  listing_.start(now, out);
}

void TaskSource::stop(Effects& out) {
  listing_.stop(out);
  checked_.clear();
  told_folders_.clear();
}

void TaskSource::check(const std::string& key) {
  checked_.insert(key);
  listing_.fetch(key);
}

void TaskSource::tell(Instant now, const StoredRecord& record, Effects& out) {
  const KnownKey* known = keys_.find(key_of(record));
  const bool is_news = known == nullptr || known->index < index_of(record);
  if (!is_news) return;
  listener_.on_record(now, record, out);
}

void TaskSource::on(Instant now, const TasksListed& reply, Effects& out) {
  Instant asked{};
  const Listing::Use use = listing_.accept(now, reply, asked, out);
  if (use == Listing::Use::kNone) return;
  if (use == Listing::Use::kFirst) {
    folder_missing_ = !reply.marker;
    return;
  }
  // A request that was sent after a delete was acknowledged cannot show the deleted task. Answers
  // to earlier requests may still come.
  listener_.on_answered_before(std::min(asked, listing_.oldest_request()));
  for (const StoredRecord& record : reply.records) tell(now, record, out);
  if (reply.full) tell_folders(reply, use == Listing::Use::kAll, out);
  if (use == Listing::Use::kPart) return;
  if (reply.full) {
    std::vector<std::string_view> names;
    names.reserve(reply.records.size());
    for (const StoredRecord& record : reply.records) names.push_back(key_of(record));
    compare(now, names, reply, out);
  } else {
    compare(now, reply.keys.in_order(), reply, out);
  }
  folder_missing_ = !reply.marker;
}

// A known key that the listing does not show is gone, unless its version is newer than the
// listing's index. A listing without the folder key proves nothing: a token without read rights
// sees the same. If the folder key was deleted, we create it again, and the next listing decides.
void TaskSource::compare(Instant now, const std::vector<std::string_view>& names,
                         const TasksListed& reply, Effects& out) {
  const KnownKeys::Match match = keys_.match(names);
  if (!reply.full) {
    listener_.visit_deleting([&](const KnownKey& known) {
      if (keys_.listed(match, known)) listing_.doubt(now, known.key);
    });
  }
  std::vector<KnownKey*> gone;
  if (reply.marker) {
    keys_.for_each_unlisted(match, [&](KnownKey& known) {
      if (known.index <= reply.consul_index) gone.push_back(&known);
    });
  }
  if (!reply.full) {
    for (const std::string_view name : match.unknown) listing_.fetch(std::string{name});
  }
  std::sort(gone.begin(), gone.end(),
            [](const KnownKey* a, const KnownKey* b) { return a->key < b->key; });
  for (KnownKey* known : gone) listener_.on_gone(now, *known, reply.consul_index, out);
}

void TaskSource::on(Instant now, const TasksFetched& reply, Effects& out) {
  if (!listing_.accept(now, reply, out)) return;
  for (const StoredRecord& record : reply.records) {
    const auto checked = checked_.find(key_of(record));
    if (checked == checked_.end()) {
      tell(now, record, out);
    } else {
      checked_.erase(checked);
      listener_.on_record(now, record, out);
    }
  }
  for (const std::string& key : reply.missing) {
    checked_.erase(key);
    listener_.on_missing(now, key, listing_.index(), out);
  }
}

// A folder never runs. Report it once: its producer may have meant a task.
void TaskSource::tell_folders(const TasksListed& reply, bool all, Effects& out) {
  std::set<std::string> folders{reply.folders.begin(), reply.folders.end()};
  for (const std::string& key : folders) {
    if (!told_folders_.contains(key)) {
      out.emplace_back(Fact{Fact::Kind::kInFolder, key});
    }
  }
  if (all) told_folders_.clear();
  told_folders_.merge(folders);
}

}  // namespace lictor::core
