#include "core/reading/task_source.h"

#include <algorithm>
#include <utility>

namespace lictor::core {
namespace {

// Newer names usually come sooner and decide: about a name that we deleted, and about a known key
// that a check did not find.
constexpr Duration kDoubt = 250ms;

}  // namespace

void TaskSource::start(Instant now, Effects& out) {
  stop(out);
  running_ = true;
  folder_missing_ = false;
  ++reading_;
  watch_at_ = now;
  pace_.begin(now);
  on_time(now, busy_, out);
}

void TaskSource::stop(Effects& out) {
  cancel(watch_, out);
  values_.stop(out);
  versions_.stop(out);
  running_ = complete_ = busy_ = generation_ = false;
  failures_.over();
  index_ = 0;
  watch_at_ = Instant::max();
  trouble_.over();
  values_trouble_.over();
  names_.reset();
  doubted_.clear();
  list_again_at_ = Instant::max();
  checked_.clear();
  outdated_.clear();
  seen_folders_.clear();
}

void TaskSource::check(const std::string& key) {
  checked_.insert_or_assign(key, requests_.next());
  values_.read_next(key);
}

// Many partitions may be won one after the other: if names are already asked for, wait for them, so
// that the pace counts them.
void TaskSource::read_again(Instant now, Effects& out) {
  ++reading_;
  if (watch_ && index_ == 0) return;
  list_again(now, out);
}

// A restarted Consul answers from an old state until it has read its log, but not to quorum reads.
void TaskSource::list_again(Instant at, Effects& out) {
  cancel(watch_, out);
  index_ = 0;
  watch_at_ = at;
}

void TaskSource::ask_names(Instant now, Effects& out) {
  watch_at_ = Instant::min();
  watch_asked_at_ = now;
  watch_reading_ = reading_;
  watch_ = requests_.next();
  watch_waits_ = index_ != 0 && !pace_.measures(now);
  out.emplace_back(ListTasks{watch_, watch_waits_ ? index_ : 0});
}

// One answer may be lost. After a second anything may have changed, as before a first reading.
void TaskSource::on_failed(Instant now, const TasksListed& reply, Effects& out) {
  const bool keeps_index = index_ != 0 && !reply.denied && failures_.keeps_index(reply.over_limit);
  if (!keeps_index || reply.over_limit) trouble_.report("listing the tasks", reply.error, out);
  watch_at_ = now + (reply.denied ? kRefusedPause : trouble_.pause());
  if (keeps_index) return;
  ++reading_;
  list_again(watch_at_, out);
  versions_.doubt_all(now);
}

void TaskSource::on(Instant now, const TasksListed& reply, Effects& out) {
  if (!watch_ || reply.request != watch_) return;
  watch_ = {};
  if (!reply.ok) return on_failed(now, reply, out);
  trouble_.over();
  failures_.over();
  list_again_at_ = Instant::max();
  const Duration took = now - watch_asked_at_ - reply.transfer;
  pace_.listed(now, reply.keys.size(), watch_waits_ ? std::nullopt : std::optional{took},
               reply.transfer);
  // Went backwards: tombstones were reaped or a snapshot was restored (consul.md 4.3, 4.4).
  // An index above the server's would not wake.
  const bool backwards = reply.consul_index < index_;
  const bool is_old = watch_reading_ != reading_;  // another reading was asked for since
  index_ = backwards || is_old ? 0 : reply.consul_index;
  // Consul never answers so. After an index of 0 the next names come at once: this ends the loop.
  if (reply.consul_index == 0) watch_at_ = now + kRetryPause;
  if (backwards) versions_.doubt_all(now);
  versions_.listed(now, reply.consul_index);
  compare(now, reply, out);
}

// A known key that the names do not show is gone, unless its version is newer than their index.
// Names without the folder key prove nothing: a token without read rights sees the same. If the
// folder key was deleted, we create it again, and the next names decide.
void TaskSource::compare(Instant now, const TasksListed& reply, Effects& out) {
  Names names{reply.keys, watch_reading_, reply.consul_index, watch_asked_at_};
  // A request that was sent after a delete was acknowledged cannot show the deleted task. Answers
  // to earlier requests may still come.
  listener_.on_answered_before(std::min(watch_asked_at_, oldest_request()));
  folder_missing_ = !reply.marker;
  doubted_.clear();
  std::vector<TaskEntry*> gone;
  const auto look = [&](TaskEntry& known, bool listed) {
    if (!listed && reply.marker && known.index <= reply.consul_index) gone.push_back(&known);
    if (listed && listener_.is_deleting(known)) doubted_.push_back(known.key);
  };
  std::vector<std::string_view> unknown = core::compare(names.keys.in_order(), keys_, look);
  if (!doubted_.empty()) doubted_until_ = now + kDoubt;
  const auto by_others = std::count_if(gone.begin(), gone.end(), [this](const TaskEntry* known) {
    return listener_.is_stable(*known);
  });
  deleted(now, static_cast<std::size_t>(by_others));
  for (TaskEntry* known : gone) listener_.on_gone(now, *known, reply.consul_index, out);

  std::set<std::string> folders{reply.folders.begin(), reply.folders.end()};
  for (const std::string& key : folders) {
    if (!seen_folders_.contains(key)) values_.read_next(key);
  }
  seen_folders_ = std::move(folders);

  const bool waits = generation_;
  names_ = std::move(names);
  if (!waits) begin_generation(std::move(unknown));
  advance_generation(now, out);
}

// Begins a generation: of the names, or of single keys only.
void TaskSource::begin_generation(std::vector<std::string_view> unknown) {
  generation_ = true;
  if (!names_) return values_.begin({}, {});
  generation_reading_ = names_->reading;
  generation_index_ = names_->index;
  values_.begin(std::move(names_->keys), std::move(unknown));
  names_.reset();
}

// Ends the generation if all of it was read, and begins the next.
void TaskSource::advance_generation(Instant now, Effects& out) {
  while (!values_.is_open()) {
    if (std::exchange(generation_, false)) {
      listener_.on_generation_read(now, out);
      ended_ = std::max(ended_, generation_reading_);
      complete_ = complete_ || generation_reading_ == reading_;
      if (complete_ && !versions_.running()) versions_.start(now, generation_index_);
    }
    if (names_) {
      begin_generation(unknown_of(names_->keys.in_order(), keys_));
    } else if (values_.has_waiting()) {
      begin_generation({});
    } else {
      return;
    }
  }
}

void TaskSource::report(Instant now, RequestId request, const StoredRecord& record,
                        bool in_generation, Effects& out) {
  auto checked = checked_.find(key_of(record));
  if (checked != checked_.end() && request < checked->second) checked = checked_.end();
  const TaskEntry* known = find(keys_, key_of(record));
  const auto outdated = outdated_.extract(key_of(record));
  const bool is_restored = outdated && known != nullptr && known->index == outdated.mapped() &&
                           index_of(record) < known->index;
  if (is_restored) listener_.on_restored(key_of(record));
  const bool is_news = known == nullptr || known->index < index_of(record);
  if (checked == checked_.end() && !is_news) return;
  if (checked != checked_.end()) checked_.erase(checked);
  listener_.on_record(now, record, in_generation, out);
}

void TaskSource::on(Instant now, const TasksFetched& reply, Effects& out) {
  const ValueReader::Use use = values_.accept(now, reply);
  if (use == ValueReader::Use::kFailed)
    values_trouble_.report("reading the tasks", reply.error, out);
  if (use == ValueReader::Use::kNone || use == ValueReader::Use::kFailed) return;
  values_trouble_.over();
  // A new version found by a check comes after everything that its generation still has to read.
  const bool in_generation = use == ValueReader::Use::kInOrder || values_.is_open();
  for (const StoredRecord& record : reply.records) {
    const std::string& key = key_of(record);
    // Written after the names of this generation: the next names give its place.
    const bool is_of_next = names_ && index_of(record) > generation_index_ &&
                            index_of(record) <= names_->index && !checked_.contains(key);
    if (is_of_next) {
      values_.read_in_order(key);
    } else {
      report(now, reply.request, record, in_generation, out);
    }
  }
  for (const std::string& key : reply.missing) {
    outdated_.erase(key);
    const auto checked = checked_.find(key);
    if (checked != checked_.end()) {
      if (reply.request < checked->second) continue;  // the reply is older than the check
      checked_.erase(checked);
    }
    const bool is_doubtful = listener_.on_missing(now, key, index_, out);
    if (is_doubtful) list_again_at_ = std::min(list_again_at_, now + kDoubt);
  }
  // A folder never runs. Report it once: its producer may have meant a task.
  for (const std::string& key : reply.folders) {
    out.emplace_back(Fact{Fact::Kind::kInFolder, key});
  }
  advance_generation(now, out);
}

void TaskSource::on(Instant now, const TasksChecked& reply, Effects& out) {
  static_cast<void>(out);
  if (!versions_.accept(now, reply)) return;
  for (const std::string& key : reply.changed) {
    values_.read_in_order(key);
    outdated_.insert_or_assign(key, versions_.asked(key));
  }
  const bool is_gone =
      std::any_of(reply.missing.begin(), reply.missing.end(), [&](const std::string& key) {
        const TaskEntry* known = find(keys_, key);
        return known != nullptr && listener_.is_stable(*known);
      });
  if (is_gone) list_again_at_ = std::min(list_again_at_, now + kDoubt);
}

bool TaskSource::will_read(const std::string& key) const {
  if (values_.will_read(key)) return true;
  if (!names_) return false;
  const auto& keys = names_->keys.in_order();
  return find(keys_, key) == nullptr &&
         std::binary_search(keys.begin(), keys.end(), std::string_view{key});
}

void TaskSource::on_time(Instant now, bool busy, Effects& out) {
  if (!running_) return;
  busy_ = busy;
  if (now >= list_again_at_) {
    list_again_at_ = Instant::max();
    list_again(now, out);
  }
  if (!watch_ && now >= next_watch()) ask_names(now, out);
  if (!doubted_.empty() && now >= doubted_until_) {
    for (std::string& key : std::exchange(doubted_, {})) values_.read_in_order(std::move(key));
  }
  advance_generation(now, out);
  values_.send(now, out);
  versions_.on_time(
      now, [this](const TaskEntry& known) { return listener_.is_stable(known); }, out);
}

Instant TaskSource::oldest_request() const {
  Instant oldest = values_.oldest_request();
  if (watch_) oldest = std::min(oldest, watch_asked_at_);
  if (names_) oldest = std::min(oldest, names_->asked_at);
  return oldest;
}

Instant TaskSource::next_deadline() const {
  Instant next = Instant::max();
  if (!running_) return next;
  if (!watch_) next = next_watch();
  if (!doubted_.empty()) next = std::min(next, doubted_until_);
  return std::min({next, list_again_at_, values_.next_deadline(), versions_.next_deadline()});
}

}  // namespace lictor::core
