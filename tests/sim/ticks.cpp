// sim_ticks: recurring tasks through months of virtual time, with changes of leader, clocks that
// drift and step, and outages of Consul. Each tick makes one task, or is skipped for a reason that
// the schedule gives.

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "cluster.h"
#include "fault.h"
#include "schedule/zone.h"

namespace lictor::core::test {
namespace {

using schedule::Definition;
using schedule::Missed;
using schedule::Overlap;
using schedule::Tick;
using std::chrono::floor;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// The longest time between a decision and its write in Consul, retries included.
constexpr seconds kWriteTakes{20};
// A leader sees a new schedule within this, and makes a tick that is due.
constexpr seconds kSeesWithin{30};
// The configuration's schedule.
constexpr const char* kConfigured = "configured";
constexpr seconds kClocksDiffer{10};  // at most by half of it

QueueOptions options_for_ticks(const std::string& node) {
  QueueOptions options = options_of(node);
  options.concurrency = 8;
  options.session_ttl = 60s;  // fewer requests a day
  options.renew_interval = 20s;
  options.lock_delay = 60s;
  options.any_type->max_attempts = 1'000;
  options.max_losses = 1'000;
  return options;
}

class TickSimulation {
 public:
  TickSimulation(std::uint64_t seed, int days) : random_(seed), cluster_(seed), days_(days) {}

  std::string run();
  [[nodiscard]] std::size_t made() const { return made_; }
  [[nodiscard]] std::size_t skipped() const { return skipped_; }
  [[nodiscard]] std::size_t terms() const { return terms_; }

 private:
  struct Watched {
    std::shared_ptr<const Definition> definition;
    std::optional<Tick> last;  // what was decided up to it; nothing: not seen by a leader yet
    std::string task;          // the last one's key
    Instant task_gone = Instant::min();
    // The leader when it was rewritten without lastTick: another one does not know that lastTick.
    std::optional<std::string> rewritten_under;
    // The end of its pause by a user, and the leader then: another one does not know of the pause.
    std::optional<Tick> resumed;
    std::string resumed_under;
  };

  [[nodiscard]] std::shared_ptr<const Definition> definition(std::string_view rule, Missed missed,
                                                             Overlap overlap);
  void add(const std::string& name, std::string_view rule, Missed missed, Overlap overlap);
  void configure(Daemon& daemon);
  void put(const std::string& name, bool paused, bool with_last);
  void check(const Daemon& sender, const ScheduleOp& op);
  void check_skipped(const std::string& name, const Watched& watched, Tick tick, Tick clock);
  void check_up_to_date();
  void trouble();
  void fail(const std::string& what) { cluster_.violation(what); }
  void set_right(Daemon& daemon) {
    cluster_.step_clock(daemon, cluster_.wall() - Cluster::wall_of(daemon, cluster_.now));
  }
  [[nodiscard]] bool strikes_in(Duration mean, Duration pause) {
    return random_.fraction() <
           static_cast<double>(pause.count()) / static_cast<double>(mean.count());
  }
  [[nodiscard]] Duration between(Duration least, Duration most) {
    return least + std::chrono::duration_cast<Duration>((most - least) * random_.fraction());
  }

  Random random_;
  Cluster cluster_;
  schedule::Zones zones_;
  const int days_;
  std::map<std::string, Watched> schedules_;
  Instant outage_until_ = Instant::min();
  std::map<const Daemon*, Instant> stepped_at_;
  std::size_t made_ = 0, skipped_ = 0, terms_ = 0;
};

std::shared_ptr<const Definition> TickSimulation::definition(std::string_view rule, Missed missed,
                                                             Overlap overlap) {
  const auto plan = [&]() -> schedule::Plan {
    if (rule.ends_with('s')) {
      return {schedule::Every{seconds{std::atoi(std::string{rule}.c_str())}}, nullptr, {}, {}};
    }
    return {schedule::Cron::parse(rule).value(), zones_.find("Europe/Rome").value(), {}, {}};
  };
  Definition made{schedule::Schedule::make(plan()).value(),
                  std::string{rule},
                  missed,
                  overlap,
                  {},
                  false,
                  {},
                  {},
                  {}};
  return std::make_shared<const Definition>(std::move(made));
}

void TickSimulation::add(const std::string& name, std::string_view rule, Missed missed,
                         Overlap overlap) {
  schedules_[name].definition = definition(rule, missed, overlap);
  put(name, false, false);
}

// Gives its configuration the schedule, in one of three versions that make the same ticks.
void TickSimulation::configure(Daemon& daemon) {
  Definition version = *schedules_.at(kConfigured).definition;
  version.configured = "version " + std::to_string(random_.next() % 3);
  version.paused = false;
  version.last_tick.reset();
  version.last_task.clear();
  daemon.options.schedules.insert_or_assign(kConfigured, configured(kConfigured, version));
  if (!daemon.queue) return;
  cluster_.tell(daemon, Reconfigured{std::make_shared<const QueueOptions>(daemon.options)});
}

// Writes as a user does; without lastTick as from a file that is written again and again.
void TickSimulation::put(const std::string& name, bool paused, bool with_last) {
  Watched& watched = schedules_.at(name);
  Definition next = *watched.definition;
  next.paused = paused;
  if (watched.definition->paused && !paused) {
    watched.resumed = floor<seconds>(Cluster::wall_at(cluster_.now));
    watched.resumed_under = cluster_.store.leader_session();
  }
  watched.definition = std::make_shared<const Definition>(next);
  const dev::KvRecord* stored = cluster_.store.find("schedules/" + name);
  auto record =
      nlohmann::ordered_json::parse(stored == nullptr ? schedule_text(next) : stored->value);
  record["paused"] = paused;
  if (!with_last) record.erase("lastTick");
  if (!with_last) watched.rewritten_under = cluster_.store.leader_session();
  cluster_.store.write("schedules/" + name, record.dump());
}

// A write of the leader was applied: its account of the ticks since the last one must be right.
void TickSimulation::check(const Daemon& sender, const ScheduleOp& op) {
  Watched& watched = schedules_.at(op.name);
  const auto& rule = watched.definition->schedule;
  const Tick clock = floor<seconds>(Cluster::wall_of(sender, cluster_.now));
  const bool trusts_clock = cluster_.now > stepped_at_[&sender] + kWriteTakes;
  const std::string what = schedule::tick_id(op.name, op.last);
  if (op.index == 0) watched.last.reset();  // somebody had deleted it
  if (watched.last && op.last < *watched.last) {
    return fail(what + " goes back before " + schedule::tick_text(*watched.last));
  }
  const bool is_tick = rule.count(op.last - seconds{1}, op.last) == 1;
  if (op.makes_task) {
    ++made_;
    if (!is_tick) return fail(what + " is no tick");
    if (cluster_.store.ticks[what] != 1) return fail(what + " made twice");
    const bool overlaps = watched.definition->overlap == Overlap::kSkip && !watched.task.empty() &&
                          cluster_.store.has(watched.task);
    if (overlaps) return fail(what + " is made while " + watched.task + " is there");
    if (trusts_clock && op.last > clock) return fail(what + " made before its time");
    const bool was_paused = watched.resumed && op.last + kClocksDiffer < *watched.resumed &&
                            watched.resumed_under == cluster_.store.leader_session();
    if (was_paused && watched.definition->missed.policy == Missed::Policy::kSkip) {
      return fail(what + " is made, and was paused then");
    }
  }
  const bool counts_anew =
      !watched.last ||
      (watched.rewritten_under && *watched.rewritten_under != cluster_.store.leader_session());
  if (counts_anew && !op.makes_task) {
    if (trusts_clock && (op.last > clock || op.last < clock - kWriteTakes)) {
      return fail(what + " counts from another time than now");
    }
  } else if (watched.last) {
    const std::uint64_t ticks = rule.count(*watched.last, op.last) - (op.makes_task ? 1 : 0);
    skipped_ += ticks;
    // At first it checks all of them, and of very many the newest.
    for (const Tick tick :
         rule.newest(*watched.last, op.makes_task ? op.last - seconds{1} : op.last, 200)) {
      if (trusts_clock) check_skipped(what, watched, tick, clock);
    }
  }
  watched.last = op.last;
  watched.rewritten_under.reset();
  if (op.makes_task) watched.task = std::string{kTasks} + what;
}

// Checks that `tick` makes no task for one of the allowed reasons.
void TickSimulation::check_skipped(const std::string& what, const Watched& watched, Tick tick,
                                   Tick clock) {
  const Definition& definition = *watched.definition;
  const bool is_there = cluster_.store.has(watched.task);
  const bool overlaps = definition.overlap == Overlap::kSkip && !watched.task.empty() &&
                        (is_there || cluster_.now <= watched.task_gone + kWriteTakes);
  if (overlaps) return;
  const Duration grace = 2 * 60s + 60s;
  const std::string text = schedule::tick_text(tick) + " is skipped by " + what;
  const bool was_paused = watched.resumed && tick < *watched.resumed + kClocksDiffer;
  if (clock - tick < grace && !was_paused) return fail(text + ", although it is on time");
  const std::uint64_t newer = definition.schedule.count(tick, clock);
  const bool right =
      definition.missed.policy == Missed::Policy::kSkip ? true
      : definition.missed.policy == Missed::Policy::kOnce
          ? newer > 0
          : newer >= definition.missed.limit || clock - tick > definition.missed.max_age;
  if (!right) fail(text + ", although it is to be made up for");
}

// While all is well, no due tick is left.
void TickSimulation::check_up_to_date() {
  const Tick now = floor<seconds>(Cluster::wall_at(cluster_.now));
  for (const auto& [name, watched] : schedules_) {
    const std::string stored = cluster_.store.schedule(name).configured;
    const Daemon* leader = cluster_.leader();
    if (name == kConfigured && leader != nullptr &&
        stored != leader->options.schedules.at(name).definition->configured) {
      return fail(name + " is not as the leader's configuration has it");
    }
    if (watched.definition->paused) continue;
    if (!watched.last) return fail(name + " was never seen");
    const auto next = watched.definition->schedule.next_after(*watched.last);
    if (next && *next <= now - kSeesWithin) {
      fail(schedule::tick_id(name, *next) + " is due and not made");
    }
  }
}

// Ten changes of leader a day, by all that can end a term; and the other troubles.
void TickSimulation::trouble() {
  constexpr Duration kPause = 1min;
  const auto& daemons = cluster_.daemons();
  Daemon& daemon = *daemons[random_.next() % daemons.size()];
  Daemon* leader = cluster_.leader();
  if (leader != nullptr && strikes_in(2h, kPause)) {
    ++terms_;
    const auto drawn = random_.next() % 4;
    if (drawn == 0) {
      cluster_.crash(*leader);
      cluster_.restart_after(*leader, between(1s, 5min));
    }
    if (drawn == 1) cluster_.kill_session();
    if (drawn == 2) cluster_.pause(*leader, between(1s, 3min));
    if (drawn == 3) cluster_.store.control(false, "step-down " + std::to_string(random_.next()));
  }
  if (strikes_in(hours{24}, kPause)) outage_until_ = cluster_.now + between(1s, 1h);
  if (strikes_in(hours{8}, kPause)) {
    stepped_at_[&daemon] = cluster_.now;
    if (random_.next() % 2 == 0) {
      set_right(daemon);
    } else {
      cluster_.step_clock(daemon, std::chrono::milliseconds{random_.next() % 10'000} - 5s);
    }
  }
  if (strikes_in(hours{6}, kPause)) configure(daemon);
  if (strikes_in(hours{48}, kPause)) cluster_.store.remove("schedules/" + std::string{kConfigured});
  if (strikes_in(hours{12}, kPause)) {
    auto it = schedules_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(random_.next() % schedules_.size()));
    const bool quiet = cluster_.now > outage_until_ + 5min && leader != nullptr;
    if (quiet && it->second.last && cluster_.store.has("schedules/" + it->first)) {
      const bool paused = it->second.definition->paused;
      put(it->first, random_.next() % 3 == 0 ? !paused : paused, random_.next() % 2 == 0);
    }
  }
}

std::string TickSimulation::run() {
  for (const char* node : {"a", "b", "c"}) {
    Daemon& daemon = cluster_.add(options_for_ticks(node));
    daemon.drift = static_cast<std::int64_t>(random_.next() % 3) - 1;
  }
  cluster_.stop_at_violation = true;
  cluster_.exclusive = false;
  cluster_.fault = [this](const Daemon&, const Effect&) {
    Fault fault;
    fault.out = between(100us, 5ms);
    fault.back = between(100us, 5ms);
    if (cluster_.now < outage_until_) fault.lose_request = true;
    fault.lose_reply = random_.fraction() < 0.01;
    if (random_.fraction() < 0.002) fault.out = between(1s, 30s);  // it lands after a time-out
    return fault;
  };
  cluster_.plan = [this](const Task&) {
    return JobPlan{
        random_.next() % 4 == 0 ? between(1s, 20min) : between(1ms, 10s), JobEnding::kDone, {}};
  };
  cluster_.on_served = [this](const Daemon& daemon, const Effect& effect, const Event&) {
    const auto* commit = std::get_if<Commit>(&effect);
    if (commit == nullptr || !cluster_.store.applied()) return;
    // A task that ended in the same transaction existed when the ticks were decided.
    for (const Op& op : commit->ops) {
      const auto* finish = std::get_if<FinishOp>(&op);
      for (auto& [name, watched] : schedules_) {
        if (finish != nullptr && watched.task == finish->key) watched.task_gone = cluster_.now;
      }
    }
    for (const Op& op : commit->ops) {
      if (const auto* tick = std::get_if<ScheduleOp>(&op)) check(daemon, *tick);
    }
  };
  add("every", "600s", {}, Overlap::kAllow);
  add("skips", "300s", {}, Overlap::kSkip);
  add("fast", "20s", {Missed::Policy::kAll, 5, hours{24}}, Overlap::kSkip);
  add("nightly", "30 2 * * *", {Missed::Policy::kOnce, 0, {}}, Overlap::kQueue);
  add("hourly", "7 * * * *", {Missed::Policy::kAll, 50, hours{24}}, Overlap::kAllow);
  add("all", "900s", {Missed::Policy::kAll, 3, 1h}, Overlap::kAllow);
  schedules_[kConfigured].definition =
      definition("700s", {Missed::Policy::kAll, 4, 2h}, Overlap::kAllow);
  for (const auto& daemon : cluster_.daemons()) configure(*daemon);
  const auto failed = [this] { return !cluster_.violations().empty(); };
  const auto run_for = [&](Duration duration) {
    return cluster_.run_until(failed, duration) || failed();
  };
  for (int day = 0; day < days_ && !failed(); ++day) {
    const Instant end = cluster_.now + hours{24} - 20min;
    while (cluster_.now < end && !run_for(1min)) trouble();
    outage_until_ = Instant::min();
    for (const auto& daemon : cluster_.daemons()) {
      stepped_at_[daemon.get()] = cluster_.now;
      set_right(*daemon);
    }
    if (run_for(20min)) break;
    check_up_to_date();
  }
  return failed() ? cluster_.violations().front() : std::string{};
}

}  // namespace
}  // namespace lictor::core::test

namespace {

using lictor::core::Fault;
using lictor::core::test::TickSimulation;

struct Named {
  Fault fault;
  const char* name;
  const char* what;
};
constexpr Named kFaults[] = {
#define X(name, what, found_by) {Fault::k##name, #name, what},
    LICTOR_FAULTS_OF_TICKS(X)
#undef X
};

bool find_faults(std::uint64_t first, std::uint64_t seeds, int days) {
  bool all = true;
  for (const Named& named : kFaults) {
    lictor::core::active_fault = named.fault;
    std::string found;
    std::uint64_t seed = first;
    for (; seed < first + seeds; ++seed) {
      found = TickSimulation{seed, days}.run();
      if (!found.empty()) break;
    }
    all &= !found.empty();
    std::cout << std::left << std::setw(18) << named.name
              << (found.empty() ? std::string{"NOT FOUND: "} + named.what
                                : "seed " + std::to_string(seed) + "  " + found)
              << std::endl;
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Recurring tasks in virtual time, by seed. LICTOR_TRACE=1 prints every effect."};
  std::uint64_t first = 1, seeds = 1;
  int days = 365;
  bool faults = false;
  app.add_option("--first", first, "the first seed");
  app.add_option("--seeds", seeds, "how many are run; exit 1 if anything is found");
  app.add_option("--days", days, "of each");
  app.add_flag("--faults", faults, "find each deliberate fault (faults.py)");
  CLI11_PARSE(app, argc, argv)
  if (faults) return find_faults(first, seeds, days) ? 0 : 1;
  std::size_t made = 0, skipped = 0, terms = 0, failed = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    TickSimulation simulation{seed, days};
    const std::string found = simulation.run();
    made += simulation.made();
    skipped += simulation.skipped();
    terms += simulation.terms();
    if (found.empty()) continue;
    ++failed;
    std::cout << "seed " << seed << ": " << found << std::endl;
  }
  std::cout << seeds << " seeds of " << days << " days: " << made << " ticks made, " << skipped
            << " skipped, " << terms << " terms ended; " << failed << " failed" << std::endl;
  const bool enough = made > seeds * static_cast<std::size_t>(days) * 300;
  if (failed == 0 && !enough) std::cout << "too little happened\n";
  return failed == 0 && enough ? 0 : 1;
}
