#include "core/listing.h"

#include <algorithm>
#include <utility>

namespace lictor::core {
namespace {

// A reading that took c is paid for with 10 c: a tenth of the time at most, over any length of time
// but this, so that a task that comes alone after a pause is not made to wait.
constexpr int kWatchPrice = 10;
constexpr Duration kWatchCredit = 300ms;
// The whole of a long list is read in a twentieth of the time at most.
constexpr int kFullPause = 19;
// What Consul spends on an answer does not show in our own cost.
constexpr Duration kLeastPause = 1ms;
constexpr Duration kLongestPause = 10s;
constexpr Duration kRetry = 500ms;
constexpr Duration kDeniedRetry = 5s;
// Below this a reading with values costs Consul no more than one with names (CONSUL-FACTS.md 11).
constexpr double kWholeBytes = 64.0 * 1024;

}  // namespace

void Listing::start(Instant now, Effects& out) {
  stop(out);
  running_ = true;
  watch_emitted_ = now;
  watch_ = requests_.next();
  out.emplace_back(ListTasks{watch_, true, true, 0});
}

void Listing::stop(Effects& out) {
  for (RequestId* request : {&watch_, &full_, &fetch_}) {
    if (*request) out.emplace_back(CancelRequest{*request});
    *request = {};
  }
  running_ = complete_ = by_name_ = want_full_ = false;
  index_ = 0;
  watch_at_ = Instant::max();
  full_at_ = fetch_at_ = Instant::min();
  wanted_.clear();
  fetching_.clear();
}

bool Listing::accept(Instant now, const TasksListed& reply, Instant& emitted, Effects& out) {
  if (reply.request == full_ && full_) {
    full_ = {};
    emitted = full_emitted_;
    full_at_ = now + std::clamp(reply.cost * kFullPause, kLeastPause, 6 * kLongestPause);
    if (!reply.ok) {
      want_full_ = true;
      full_at_ = now + kRetry;
      return false;
    }
    choose_mode(reply);
    return reply.ok;
  }
  if (reply.request != watch_ || !watch_) return false;
  watch_ = {};
  emitted = watch_emitted_;
  if (!reply.ok) {
    // Anything may have happened meanwhile: begin with a whole reading.
    index_ = 0;
    by_name_ = false;
    watch_at_ = now + (reply.denied ? kDeniedRetry : kRetry);
    if (std::exchange(in_trouble_, true)) return false;  // one line an outage, not one a try
    out.emplace_back(Fact{reply.denied ? Fact::Kind::kDenied : Fact::Kind::kStoreTrouble,
                          {},
                          0,
                          0,
                          "listing the tasks: " + reply.error,
                          {}});
    return false;
  }
  in_trouble_ = false;
  if (reply.full) complete_ = true;
  // Went backwards: tombstones were reaped or a snapshot was restored (CONSUL-FACTS.md 4.3, 4.4).
  // An index above the server's would not wake.
  index_ = reply.consul_index < index_ ? 0 : reply.consul_index;
  choose_mode(reply);
  // The whole of a long list was read this once; what is asked for from now on is its names, and
  // those are not to wait for ten times what the whole cost.
  const Duration cost = reply.full && by_name_ ? Duration::zero() : reply.cost;
  watch_paid_ = std::max(watch_paid_, now) + cost * kWatchPrice;
  const Duration pause = std::max(cost, watch_paid_ - now - kWatchCredit);
  watch_at_ = now + std::clamp(pause, kLeastPause, kLongestPause);
  return true;
}

void Listing::choose_mode(const TasksListed& reply) {
  const auto count = static_cast<double>(reply.full ? reply.records.size() : reply.keys.size());
  if (reply.full && count > 0) bytes_per_task_ = static_cast<double>(reply.bytes) / count;
  const bool by_name = count * bytes_per_task_ > kWholeBytes;
  if (by_name_ && !by_name) index_ = 0;  // what was rewritten meanwhile is to be seen, too
  by_name_ = by_name;
}

bool Listing::accept(Instant now, const TasksFetched& reply, Effects& out) {
  if (reply.request != fetch_ || !fetch_) return false;
  fetch_ = {};
  std::vector<std::string> asked = std::exchange(fetching_, {});
  if (!reply.ok) {
    wanted_.insert(asked.begin(), asked.end());
    fetch_at_ = now + kRetry;
    return false;
  }
  std::set<std::string_view> read;
  for (const StoredRecord& record : reply.records) {
    read.insert(std::visit([](const auto& r) -> std::string_view { return r.key; }, record));
  }
  for (const std::string& key : reply.missing) read.insert(key);
  for (std::string& key : asked) {
    if (!read.contains(key)) wanted_.insert(std::move(key));
  }
  send_fetch(now, out);
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

void Listing::on_time(Instant now, Effects& out) {
  if (!running_) return;
  if (!watch_ && now >= watch_at_) {
    watch_at_ = Instant::max();
    watch_emitted_ = now;
    watch_ = requests_.next();
    out.emplace_back(ListTasks{watch_, !by_name_, false, index_});
  }
  if (by_name_ && want_full_ && !full_ && now >= full_at_) {
    want_full_ = false;
    full_emitted_ = now;
    full_ = requests_.next();
    out.emplace_back(ListTasks{full_, true, false, 0});
  }
  if (now >= fetch_at_) send_fetch(now, out);
}

Instant Listing::oldest_request() const {
  Instant oldest = Instant::max();
  if (watch_) oldest = std::min(oldest, watch_emitted_);
  if (full_) oldest = std::min(oldest, full_emitted_);
  if (fetch_) oldest = std::min(oldest, fetch_emitted_);
  return oldest;
}

Instant Listing::next_deadline() const {
  Instant next = Instant::max();
  if (!running_) return next;
  if (!watch_) next = watch_at_;
  if (by_name_ && want_full_ && !full_) next = std::min(next, full_at_);
  if (!fetch_ && !wanted_.empty()) next = std::min(next, fetch_at_);
  return next;
}

}  // namespace lictor::core
