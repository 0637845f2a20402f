#include "core/listing.h"

#include <algorithm>
#include <utility>

namespace lictor::core {
namespace {

// Token bucket: the watch of a short list uses at most a tenth of the time, with a burst of
// kWatchCredit, so that a single task after a pause does not wait.
constexpr int kWatchPrice = 10;
// The same for Consul's cost: at most a sixth of one of its processors.
constexpr int kConsulPrice = 6;
// Names of a long list: up to a quarter of the time. They cost more than a short list's records,
// and new tasks must not wait for half a second.
constexpr int kNamesPrice = 4;
constexpr Duration kWatchCredit = 300ms;
// While more tasks are ready than can start: at most a fiftieth of the time, and less while new
// tasks wait for under a second. Names cost Consul several times what they cost us.
constexpr int kBusyPause = 50;
constexpr int kLongBusyPause = 300;
constexpr Duration kLongEnough = 1s;
// The search for rewritten tasks in a long list takes at most a twentieth of the time.
constexpr int kPartPause = 19;
// It waits until new tasks are fetched and claimed: listing all names would keep Consul busy.
constexpr Duration kPartDelay = 50ms;
// The first reading of a long list is not paced, and its parts are larger.
constexpr int kFirstParts = 4;
// Our own cost of an answer doesn't include Consul's.
constexpr Duration kLeastPause = 1ms;
constexpr Duration kLongestPause = 10s;
// The names are listed again sooner when a task was deleted since the last listing.
constexpr Duration kDoubt = 250ms;

Duration busy_pause(Duration cost) {
  const Duration pause = std::max(cost * kBusyPause, std::min(cost * kLongBusyPause, kLongEnough));
  return std::clamp(pause, kLeastPause, kLongestPause);
}

}  // namespace

void Listing::start(Instant now, Effects& out) {
  stop(out);
  running_ = true;
  begin_anew(now);
  on_time(now, busy_, out);
}

// Anything may have happened since the last reading, if there was one. A Consul that was restarted
// answers from what it held long ago until it has read its log; but not by quorums.
void Listing::begin_anew(Instant at) {
  first_ = First::kChoosing;
  ++reading_;
  by_quorum_ = true;
  index_ = 0;
  sweep_.stop();
  watch_at_ = slow_watch_at_ = at;
}

// Chooses how to read the list: whole, or by names and parts.
void Listing::choose_first(Instant now, const TasksListed& names) {
  by_name_ = is_long(names.keys.size());
  watch_at_ = slow_watch_at_ = by_name_ ? Instant::max() : now;
  first_ = by_name_ ? First::kInParts : First::kDone;
  if (!by_name_) return;
  sweep_.seen(0);
  sweep_.start();
  look_for_rewritten(names);  // its first step is to read the names of the whole: these are they
  part_at_ = fetch_at_ = now;
  end_first(now);
}

// The next listing of names shows what was deleted meanwhile.
void Listing::end_first(Instant now) {
  if (first_ != First::kInParts || sweep_.running() || !wanted_.empty() || fetch_) return;
  first_ = First::kDone;
  complete_ = true;
  ended_ = reading_;
  by_quorum_ = false;
  watch_at_ = slow_watch_at_ = now;
}

void Listing::stop(Effects& out) {
  for (RequestId* request : {&watch_, &part_, &fetch_}) cancel(*request, out);
  running_ = complete_ = by_name_ = busy_ = false;
  first_ = First::kDone;
  index_ = wrote_ = prompt_from_ = 0;
  prompt_times_ = {};
  watch_at_ = slow_watch_at_ = Instant::max();
  part_at_ = fetch_at_ = Instant::min();
  sweep_ = {};
  wanted_.clear();
  doubted_.clear();
  fetching_.clear();
}

// A part shows which keys exist; the watch shows deleted ones.
Listing::Use Listing::accept_part(Instant now, const TasksListed& reply, Effects& out) {
  part_ = {};
  if (!reply.ok) {
    part_at_ = now + kRetryPause;
    tell_trouble(reply, out);
    return Use::kNone;
  }
  in_trouble_ = false;
  part_at_ = now + (busy_ ? busy_pause(reply.cost)
                          : std::clamp(reply.cost * kPartPause, kLeastPause, kLongestPause));
  if (first_ == First::kInParts) {
    part_at_ = now;
    learn_size(reply);  // later parts may have tasks of an unusual size
  }
  look_for_rewritten(reply);
  end_first(now);
  return Use::kPart;
}

void Listing::look_for_rewritten(const TasksListed& reply) {
  for (std::string& key : sweep_.accept(reply, tasks_in_part())) wanted_.insert(std::move(key));
}

double Listing::tasks_in_part() const {
  const int parts = first_ == First::kInParts ? kFirstParts : 1;
  return parts * static_cast<double>(options_.list_part_bytes) / bytes_per_task_;
}

// One line an outage, not one a try.
void Listing::tell_trouble(const TasksListed& reply, Effects& out) {
  if (std::exchange(in_trouble_, true)) return;
  out.emplace_back(Fact{reply.denied ? Fact::Kind::kDenied : Fact::Kind::kStoreTrouble,
                        {},
                        "listing the tasks: " + reply.error});
}

Listing::Use Listing::accept(Instant now, const TasksListed& reply, Instant& emitted,
                             Effects& out) {
  if (reply.request == part_ && part_) {
    emitted = part_emitted_;
    return accept_part(now, reply, out);
  }
  if (reply.request != watch_ || !watch_) return Use::kNone;
  watch_ = {};
  emitted = watch_emitted_;
  if (!reply.ok && index_ != 0 && !reply.denied && failures_.keeps_index(reply.over_limit)) {
    if (reply.over_limit) tell_trouble(reply, out);
    watch_at_ = slow_watch_at_ =
        reply.over_limit ? now + kRetryPause : std::max(now, emitted + kRetryPause);
    return Use::kNone;
  }
  if (!reply.ok) {
    begin_anew(now + (reply.denied ? kRefusedPause : kRetryPause));
    cancel(part_, out);
    tell_trouble(reply, out);
    return Use::kNone;
  }
  in_trouble_ = false;
  failures_.over();
  if (first_ == First::kChoosing) {
    choose_first(now, reply);
    return Use::kFirst;
  }
  doubted_.clear();
  // Went backwards: tombstones were reaped or a snapshot was restored (CONSUL-FACTS.md 4.3, 4.4).
  // An index above the server's would not wake.
  const bool backwards = reply.consul_index < index_;
  index_ = backwards ? 0 : reply.consul_index;
  if (backwards) wrote_ = 0;
  const std::uint64_t prompt_from = std::exchange(prompt_from_, 0);
  if (prompt_from != 0 && reply.full && reply.consul_index >= prompt_from) {
    prompt_times_.add(now - watch_emitted_);
  }
  if (reply.full) {
    complete_ = true;
    ended_ = reading_;
    by_quorum_ = false;
    sweep_.stop();
    cancel(part_, out);
    sweep_.seen(reply.consul_index);
  } else if (backwards) {
    sweep_.seen(0);
  }
  choose_mode(reply);
  // Names do not show what was rewritten, and nothing else that moved the index proves that nothing
  // was: not a new name, not a write of our own.
  if (!reply.full && reply.consul_index > sweep_.seen() && !sweep_.running()) {
    sweep_.start();
    look_for_rewritten(reply);  // its first step is to read the names of the whole: these are they
    part_at_ = std::max(part_at_, now + kPartDelay);
  }
  // The whole of a long list was read this once; what is asked for from now on is its names, and
  // those are not to wait for ten times what the whole cost.
  const Duration cost = reply.full && by_name_ ? Duration::zero() : reply.cost;
  const Duration price = by_name_
                             ? cost * kNamesPrice
                             : std::max(cost * kWatchPrice, prompt_times_.least() * kConsulPrice);
  watch_paid_ = std::max(watch_paid_, now) + price;
  const Duration pause = std::max(cost, watch_paid_ - now - kWatchCredit);
  watch_at_ = now + std::clamp(pause, kLeastPause, kLongestPause);
  slow_watch_at_ = std::max(watch_at_, now + busy_pause(cost));
  return Use::kAll;
}

void Listing::ask_all_anew(Instant now, Effects& out) {
  for (RequestId* request : {&watch_, &part_}) cancel(*request, out);
  begin_anew(now);
}

void Listing::doubt(Instant now, std::string_view key) {
  doubted_.emplace_back(key);
  doubted_until_ = now + kDoubt;
}

bool Listing::is_long(std::size_t tasks) const {
  return static_cast<double>(tasks) * bytes_per_task_ >
         static_cast<double>(options_.whole_list_bytes);
}

void Listing::learn_size(const TasksListed& reply) {
  if (!reply.full || reply.records.empty()) return;
  bytes_per_task_ = static_cast<double>(reply.bytes) / static_cast<double>(reply.records.size());
}

void Listing::choose_mode(const TasksListed& reply) {
  learn_size(reply);
  const bool by_name = is_long(reply.full ? reply.records.size() : reply.keys.size());
  if (by_name_ && !by_name) index_ = 0;  // also shows what was rewritten meanwhile
  by_name_ = by_name;
}

bool Listing::accept(Instant now, const TasksFetched& reply, Effects& out) {
  if (reply.request != fetch_ || !fetch_) return false;
  fetch_ = {};
  std::vector<std::string> asked = std::exchange(fetching_, {});
  if (!reply.ok) {
    wanted_.insert(asked.begin(), asked.end());
    const bool asks_less = asked.size() > options_.max_operations;  // as the refusal has taught
    fetch_at_ = asks_less ? now : now + kRetryPause;
    return false;
  }
  std::set<std::string_view> read;
  for (const StoredRecord& record : reply.records) read.insert(key_of(record));
  for (const std::string& key : reply.missing) read.insert(key);
  for (std::string& key : asked) {
    if (!read.contains(key)) wanted_.insert(std::move(key));
  }
  send_fetch(now, out);
  end_first(now);
  return true;
}

void Listing::send_fetch(Instant now, Effects& out) {
  if (fetch_ || wanted_.empty()) return;
  FetchTasks fetch{requests_.next(), {}};
  while (!wanted_.empty() && fetch.keys.size() < options_.max_operations) {
    fetch.keys.push_back(std::move(wanted_.extract(wanted_.begin()).value()));
  }
  fetching_ = fetch.keys;
  fetch_emitted_ = now;
  fetch_ = fetch.request;
  out.emplace_back(std::move(fetch));
}

bool Listing::wants_part() const { return by_name_ && !part_ && sweep_.running(); }

Instant Listing::next_watch() const { return busy_ ? slow_watch_at_ : watch_at_; }

void Listing::on_time(Instant now, bool busy, Effects& out) {
  if (!running_) return;
  busy_ = busy;
  if (!watch_ && now >= next_watch()) {
    watch_at_ = slow_watch_at_ = Instant::max();
    watch_emitted_ = now;
    watch_ = requests_.next();
    prompt_from_ = index_ != 0 && wrote_ > index_ ? wrote_ : 0;
    const bool full = first_ != First::kChoosing && !by_name_;
    out.emplace_back(ListTasks{watch_, full, by_quorum_, index_, {}});
  }
  if (wants_part() && now >= part_at_) {
    part_emitted_ = now;
    part_ = requests_.next();
    const Sweep::Step& step = sweep_.step(tasks_in_part());
    out.emplace_back(ListTasks{part_, step.full, by_quorum_, 0, step.below});
  }
  if (!doubted_.empty() && now >= doubted_until_) {
    wanted_.insert(doubted_.begin(), doubted_.end());
    doubted_.clear();
  }
  if (now >= fetch_at_) send_fetch(now, out);
}

Instant Listing::oldest_request() const {
  Instant oldest = Instant::max();
  if (watch_) oldest = std::min(oldest, watch_emitted_);
  if (part_) oldest = std::min(oldest, part_emitted_);
  if (fetch_) oldest = std::min(oldest, fetch_emitted_);
  return oldest;
}

Instant Listing::next_deadline() const {
  Instant next = Instant::max();
  if (!running_) return next;
  if (!watch_) next = next_watch();
  if (wants_part()) next = std::min(next, part_at_);
  if (!fetch_ && !wanted_.empty()) next = std::min(next, fetch_at_);
  if (!doubted_.empty()) next = std::min(next, doubted_until_);
  return next;
}

}  // namespace lictor::core
