// The balancers of a fleet over locks that are granted as Consul does, with views that come late,
// in simulated time.

#include "core/leadership/balancer.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"

namespace lictor::core::test {
namespace {

using namespace std::chrono_literals;

constexpr Duration kViewLag = 300ms;
constexpr Duration kLockTime = 200ms;
constexpr Duration kLockDelay = 30s;
constexpr Duration kTtl = 20s;

class Fleet {
 public:
  // `ids` have started, and run for `time`.
  Fleet(std::uint64_t seed, std::size_t partitions, const std::vector<std::string>& ids = {},
        Duration time = {})
      : random_(seed),
        owners_(partitions),
        barred_(partitions),
        last_(partitions),
        moves(partitions) {
    for (const std::string& id : ids) start(id);
    run(time);
  }

  void start(const std::string& id) {
    Host& host = hosts_[id];
    if (host.balancer) return;
    host.balancer = std::make_unique<Balancer>(id);
    members_[id] = {id, weight, false};
    changed();
  }
  // Stops the host, which gives everything back, as on SIGTERM.
  void stop(const std::string& id) { leave(id, false); }
  // Loses the host: its session lives on until its TTL is over, and then bars its locks.
  void lose(const std::string& id) {
    if (!is_up(id)) return;
    hosts_[id] = {};
    const int life = ++lives_[id];
    after(between(kTtl, 2 * kTtl), [=, this] {
      if (lives_[id] == life && !is_up(id)) leave(id, true);
    });
  }
  void freeze(const std::string& id, Duration time) {
    if (!is_up(id)) return;
    hosts_[id].frozen_until = now + time;
    after(time, [=, this] { look(id); });
  }
  void drain(const std::string& id, bool draining) {
    const auto member = members_.find(id);
    if (member == members_.end() || member->second.draining == draining) return;
    member->second.draining = draining;
    changed();
  }

  void run(Duration time) {
    const Instant end = now + time;
    while (!events_.empty() && events_.begin()->first <= end) {
      now = events_.begin()->first;
      const auto event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      event();
    }
    now = end;
  }

  [[nodiscard]] Duration between(Duration least, Duration most) {
    return least + Duration{static_cast<Duration::rep>(
                       random_.next() % static_cast<std::uint64_t>((most - least).count() + 1))};
  }
  [[nodiscard]] std::size_t any(std::size_t count) { return random_.next() % count; }
  [[nodiscard]] bool is_up(const std::string& id) {
    return hosts_.contains(id) && hosts_[id].balancer != nullptr;
  }
  [[nodiscard]] const std::vector<std::string>& owners() const { return owners_; }
  [[nodiscard]] std::size_t owned_by(const std::string& id) const {
    return static_cast<std::size_t>(std::count(owners_.begin(), owners_.end(), id));
  }
  [[nodiscard]] std::size_t all_moves() const {
    return static_cast<std::size_t>(std::accumulate(moves.begin(), moves.end(), 0));
  }
  [[nodiscard]] BalancerView view() const {
    BalancerView told{{}, owners_, barred_};
    for (const auto& [id, member] : members_) told.members.push_back(member);
    return told;
  }

  Instant now{1h};
  std::uint32_t weight = 1;  // of those that start
  Duration drain_time = 2s;  // at most, of a partition

 private:
  struct Host {
    std::unique_ptr<Balancer> balancer;
    BalancerView seen;
    std::set<std::uint32_t> asked;
    bool giving = false;
    Instant frozen_until{};
    Instant wakes = Instant::max();
  };

  void after(Duration time, std::function<void()> event) {
    events_.emplace(now + time, std::move(event));
  }

  void leave(const std::string& id, bool barred) {
    if (!members_.contains(id)) return;
    hosts_[id] = {};
    ++lives_[id];
    members_.erase(id);
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      if (owners_[i] != id) continue;
      owners_[i].clear();
      if (barred) barred_[i] = now + kLockDelay;
    }
    changed();
  }

  void changed() {
    for (const auto& [id, host] : hosts_) {
      if (!host.balancer) continue;
      after(between(1ms, kViewLag), [this, id = id, life = lives_[id]] {
        if (life == lives_[id] && now >= hosts_[id].frozen_until) look(id);
      });
    }
  }
  void look(const std::string& id) {
    Host& host = hosts_[id];
    if (!host.balancer) return;
    host.seen = view();
    host.balancer->on_view(now, host.seen);
    act(id);
  }

  void act(const std::string& id) {
    Host& host = hosts_[id];
    if (now < host.frozen_until) return;
    for (const std::uint32_t partition : host.balancer->to_take(now)) {
      REQUIRE(host.seen.owners.at(partition).empty());
      if (host.asked.insert(partition).second) ask(id, partition);
    }
    const auto given = host.balancer->to_hand_over(now);
    if (given) {
      REQUIRE(host.seen.owners.at(*given) == id);
      REQUIRE(host.balancer->to_hand_over(now) == given);
      if (owners_[*given] == id && !std::exchange(host.giving, true)) give(id, *given);
    }
    const Instant next = host.balancer->next_deadline(now);
    REQUIRE(next > now);
    if (next == Instant::max() || (host.wakes > now && host.wakes <= next)) return;
    host.wakes = next;
    after(next - now, [this, id, life = lives_[id]] {
      if (hosts_[id].balancer && life == lives_[id]) act(id);
    });
  }

  void ask(const std::string& id, std::uint32_t partition) {
    after(between(1ms, kLockTime), [this, id, partition, life = lives_[id]] {
      Host& host = hosts_[id];
      if (!host.balancer || life != lives_[id]) return;
      if (owners_[partition].empty() && now < barred_[partition]) {
        after(barred_[partition] - now, [this, id, partition, life] {
          if (hosts_[id].balancer && life == lives_[id]) ask(id, partition);
        });
        return;
      }
      host.asked.erase(partition);
      if (!owners_[partition].empty()) return;
      owners_[partition] = id;
      if (!last_[partition].empty() && last_[partition] != id) ++moves[partition];
      last_[partition] = id;
      changed();
    });
  }

  void give(const std::string& id, std::uint32_t partition) {
    after(between(1ms, drain_time), [this, id, partition, life = lives_[id]] {
      Host& host = hosts_[id];
      if (!host.balancer || life != lives_[id]) return;
      host.giving = false;
      if (owners_[partition] != id || host.balancer->to_hand_over(now) != partition) return act(id);
      owners_[partition].clear();
      changed();
    });
  }

  Random random_;
  std::multimap<Instant, std::function<void()>> events_;
  std::map<std::string, Host> hosts_;
  std::map<std::string, int> lives_;
  std::map<std::string, BalancerMember> members_;
  std::vector<std::string> owners_;
  std::vector<Instant> barred_;
  std::vector<std::string> last_;

 public:
  std::vector<int> moves;  // of each partition, from one owner to another
};

std::vector<std::string> names(std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back("host-" + std::to_string(i));
  return all;
}

// The largest of the hosts' numbers of partitions less the smallest.
std::size_t spread(Fleet& fleet, const std::vector<std::string>& hosts) {
  std::size_t least = SIZE_MAX, most = 0;
  for (const std::string& host : hosts) {
    least = std::min(least, fleet.owned_by(host));
    most = std::max(most, fleet.owned_by(host));
  }
  return most - least;
}

BalancerView view_of(const std::vector<std::string>& ids, std::size_t partitions) {
  BalancerView view{{}, std::vector<std::string>(partitions), {}};
  for (const std::string& id : ids) view.members.push_back({id});
  return view;
}

std::size_t share_of(const BalancerView& view, const std::string& id) {
  return partition_shares(view).at(id).share;
}

TEST_CASE("shares are within one, the same for all, and those who own the most have the most") {
  for (const std::size_t partitions : {1U, 2U, 7U, 16U, 64U, 256U}) {
    for (std::size_t count = 1; count <= 12; ++count) {
      CAPTURE(partitions);
      CAPTURE(count);
      const auto ids = names(count);
      BalancerView view = view_of(ids, partitions);
      for (std::size_t i = 0; i < partitions; ++i) view.owners[i] = ids[count - 1 - i % count];
      std::size_t moving = 0, whole = 0;
      for (const auto& [id, member] : partition_shares(view)) {
        CHECK(member.share == member.owned);
        whole += member.share;
      }
      CHECK(whole == partitions);
      std::reverse(view.members.begin(), view.members.end());
      view.members.push_back({"host-new"});
      for (const auto& [id, member] : partition_shares(view)) {
        CHECK(member.share >= partitions / (count + 1));
        CHECK(member.share <= partitions / (count + 1) + 1);
        moving += member.owned > member.share ? member.owned - member.share : 0;
      }
      CHECK(moving == partitions / (count + 1));  // no more than the new one's
    }
  }
  CHECK(partition_shares(view_of({}, 2)).empty());
  BalancerView draining = view_of({"a", "b"}, 4);
  draining.members[0].draining = true;
  CHECK_FALSE(partition_shares(draining).contains("a"));
  CHECK(share_of(draining, "b") == 4);
}

TEST_CASE("shares follow the weights, and a weight of 0 counts as 1") {
  BalancerView view = view_of({"a", "b", "c"}, 64);
  view.members[0].weight = 2;
  view.members[2].weight = 5;
  for (const std::uint32_t least : {1U, 0U}) {
    view.members[1].weight = least;
    CHECK(share_of(view, "a") == 16);
    CHECK(share_of(view, "b") == 8);
    CHECK(share_of(view, "c") == 40);
  }
}

TEST_CASE("the target takes a free partition at once, the others step by step") {
  const auto ids = names(4);
  BalancerView view = view_of(ids, 8);
  std::map<std::string, Balancer> fleet;
  for (const std::string& id : ids) {
    Balancer& balancer = fleet.emplace(id, id).first->second;
    balancer.on_view(Instant{1h}, view);
    CHECK(balancer.to_take(Instant{1h}).size() == 2);
    const Instant next = balancer.next_deadline(Instant{1h});
    CHECK((next > Instant{1h} && next <= Instant{1h + 3s}));
    balancer.on_view(Instant{1h + 500ms}, view);  // this delays nothing
    CHECK(balancer.to_take(Instant{1h + 3s}).size() == 8);
  }
  for (std::uint32_t i = 0; i < 8; ++i) {
    for (int step = 0; step < 4; ++step) {
      std::size_t ask = 0;
      for (auto& [id, balancer] : fleet) {
        const auto taken = balancer.to_take(Instant{1h + step * 1s});
        ask += std::count(taken.begin(), taken.end(), i) == 1 ? 1U : 0U;
      }
      CHECK(ask == static_cast<std::size_t>(step) + 1);
    }
  }
  // A host without an entry of its own takes nothing, nor does one that drains.
  Balancer stranger{"stranger"};
  stranger.on_view(Instant{1h}, view);
  CHECK(stranger.to_take(Instant{2h}).empty());
  view.members[0].draining = true;
  fleet.at(ids[0]).on_view(Instant{2h}, view);
  CHECK(fleet.at(ids[0]).to_take(Instant{3h}).empty());
}

TEST_CASE("the steps count from the end of the lock-delay") {
  const auto ids = names(4);
  BalancerView view = view_of(ids, 8);
  view.free_from.assign(8, Instant{1h + 30s});
  std::size_t at_once = 0;
  for (const std::string& id : ids) {
    Balancer balancer{id};
    balancer.on_view(Instant{1h}, view);
    CHECK(balancer.to_take(Instant{1h + 29s}).empty());
    at_once += balancer.to_take(Instant{1h + 30s}).size();
    CHECK(balancer.next_deadline(Instant{1h + 30s}) <= Instant{1h + 33s});
    CHECK(balancer.to_take(Instant{1h + 33s}).size() == 8);
  }
  CHECK(at_once == 8);
}

// The balancer of host a, which owns all of nine partitions; b and c join after an hour.
struct Giver {
  Balancer balancer{"a"};
  BalancerView view = view_of({"a"}, 9);
  Instant now{1h};

  Giver() {
    view.owners.assign(9, "a");
    show(0s);
    view.members.push_back({"b"});
    view.members.push_back({"c"});
    show(1h);
  }
  void show(Duration later) {
    now += later;
    balancer.on_view(now, view);
  }
  std::optional<std::uint32_t> given(Duration later = {}) {
    return balancer.to_hand_over(now + later);
  }
  // The partition that a gives now becomes free, and then that member's.
  void move(const std::string& to, Duration taken_after) {
    const std::uint32_t partition = given().value();
    view.owners[partition] = "";
    show(1s);
    view.owners[partition] = to;
    show(taken_after);
  }
};

TEST_CASE("a partition whose owner has died goes to the next host at once, though it is listed") {
  const auto ids = names(4);
  BalancerView view = view_of(ids, 8);
  for (std::uint32_t i = 0; i < 8; ++i) view.owners[i] = ids[i % 4];
  for (std::uint32_t i = 0; i < 8; ++i) {
    BalancerView free_view = view;
    free_view.owners[i].clear();
    std::size_t others = 0;
    for (const std::string& id : ids) {
      Balancer balancer{id};
      balancer.on_view(Instant{1h}, view);
      balancer.on_view(Instant{1h + 1min}, free_view);
      const bool asks = balancer.to_take(Instant{1h + 1min}) == std::vector<std::uint32_t>{i};
      others += asks && id != view.owners[i] ? 1U : 0U;
    }
    CHECK(others == 1);
  }
}

TEST_CASE("partitions above the share are handed over one at a time, when the fleet is settled") {
  Giver a;
  CHECK_FALSE(a.given(9s));
  CHECK(a.balancer.next_deadline(a.now) == a.now + 10s);
  const std::uint32_t first = a.given(10s).value();
  CHECK(a.given(1min) == first);  // still at work on it
  a.view.owners[first] = "";
  a.show(1min);
  CHECK_FALSE(a.given(2s));
  a.view.owners[first] = "b";
  a.show(900ms);
  const std::uint32_t second = a.given().value();
  // No member takes it.
  a.view.owners[second] = "";
  a.show(1s);
  CHECK_FALSE(a.given(9s));
  CHECK(a.balancer.next_deadline(a.now + 9s) == a.now + 10s);
  const std::uint32_t third = a.given(10s).value();
  CHECK(third != second);
  // A change of the fleet does not stop a move that has begun, but the next one.
  a.view.members.push_back({"d"});
  a.show(10s);
  CHECK(a.given() == third);
  a.view.owners[third] = "b";
  a.show(1s);
  CHECK_FALSE(a.given(8s));
  // A host that has its share gives nothing.
  Giver even;
  for (std::size_t i = 0; i < 6; ++i) even.view.owners[i] = i < 3 ? "b" : "c";
  even.show(1min);
  CHECK_FALSE(even.given());
}

TEST_CASE("a member that lets another one take its own partition gets nothing for a while") {
  using Taken = std::pair<std::string, Duration>;
  for (const auto& [by, waited] : {Taken{"b", 999ms}, Taken{"b", 1s}, Taken{"c", 1s}}) {
    Giver a;
    a.now += 1min;
    // c has one of its three; two more are for it, and b takes the first.
    for (std::size_t i = 0; i < 4; ++i) a.view.owners[i] = i < 3 ? "b" : "c";
    a.show(0s);
    a.move(by, waited);
    CHECK(a.given().has_value() == (by == "c" || waited < 1s));
    CHECK(a.given(31s).has_value());
  }
}

TEST_CASE("hosts that start one after the other share, and nothing moves after that") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Fleet fleet{seed, 16};
    const auto ids = names(8);
    for (const std::string& id : ids) {
      fleet.start(id);
      fleet.run(fleet.between(0s, 3s));
    }
    fleet.run(2min);
    CHECK(spread(fleet, ids) <= 1);
    const auto moves = fleet.moves;
    fleet.run(1h);
    CHECK(fleet.moves == moves);
  }
}

TEST_CASE("a rolling restart moves each partition twice on average, and ends with even shares") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const auto ids = names(2 + seed % 6);
    const std::size_t partitions = seed % 3 == 0 ? 64U : 16U;
    Fleet fleet{seed, partitions, ids, 10min};
    std::fill(fleet.moves.begin(), fleet.moves.end(), 0);
    const bool drained = seed % 4 == 1;
    const Duration most_down = seed % 2 == 0 ? 60s : 5s;
    for (const std::string& id : ids) {
      if (drained) {
        fleet.drain(id, true);
        fleet.run(1min);
        CHECK(fleet.owned_by(id) == 0);
      }
      fleet.stop(id);
      fleet.run(fleet.between(500ms, most_down));
      fleet.start(id);
      fleet.run(fleet.between(1s, seed % 5 == 0 ? Duration{4s} : Duration{90s}));
    }
    fleet.run(3min);
    CHECK(spread(fleet, ids) <= 1);
    CHECK(fleet.all_moves() <= 2 * (partitions + ids.size()));
  }
}

TEST_CASE("a member that leaves and comes back moves no more than its share, twice") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const auto ids = names(5);
    Fleet fleet{seed, 32, ids, 10min};
    const std::size_t own = fleet.owned_by(ids[2]);
    std::fill(fleet.moves.begin(), fleet.moves.end(), 0);
    fleet.stop(ids[2]);
    fleet.run(1s);
    CHECK(fleet.owned_by("") == 0);  // all are taken
    CHECK(spread(fleet, {ids[0], ids[1], ids[3], ids[4]}) <= 1);
    CHECK(fleet.all_moves() == own);
    fleet.run(4min);
    fleet.start(ids[2]);
    fleet.run(2min);
    CHECK(spread(fleet, ids) <= 1);
    CHECK(fleet.all_moves() == own + fleet.owned_by(ids[2]));
  }
}

TEST_CASE("a member that gave up its own partition does not get it back at once") {
  BalancerView view = view_of({"a", "b"}, 4);
  view.owners = {"a", "b", "a", "b"};
  Balancer other{"b"};
  other.on_view(Instant{1h}, view);
  view.owners[0].clear();  // a steps down
  other.on_view(Instant{2h}, view);
  CHECK(other.to_take(Instant{2h}).size() == 1);
  view.owners[0] = "b";
  other.on_view(Instant{2h + 100ms}, view);
  CHECK_FALSE(other.to_hand_over(Instant{2h + 29s}));
  CHECK(other.next_deadline(Instant{2h + 29s}) == Instant{2h + 30s});
  CHECK(other.to_hand_over(Instant{2h + 30s}));
}

TEST_CASE("partitions of another daemon of this name count, and this one cannot hand them over") {
  Giver a;
  a.view.of_namesake.assign(9, true);
  a.view.of_namesake[5] = false;
  a.show(1min);
  CHECK(a.given() == 5);
  a.view.owners[5] = "b";
  a.show(900ms);
  CHECK_FALSE(a.given());
}

TEST_CASE("a partition that stays with its host for now does not keep others from moving") {
  Giver giver;
  giver.now += 10min;
  const std::uint32_t first = giver.given().value();
  giver.balancer.keep(first, giver.now + 1min);
  const std::uint32_t second = giver.given().value();
  CHECK(second != first);
  CHECK(giver.balancer.next_deadline(giver.now) <= giver.now + 1min);
  // A partition without jobs goes first.
  Giver busy;
  busy.now += 10min;
  busy.view.jobs.assign(9, 0);
  busy.view.jobs[first] = 1;
  busy.show(0s);
  REQUIRE(busy.given());
  CHECK(busy.given() != first);
}

TEST_CASE("a draining host ends with none, and gets them back") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const auto ids = names(4);
    Fleet fleet{seed, 32, ids, 10min};
    fleet.drain(ids[3], true);
    fleet.run(1min);
    CHECK(fleet.owned_by(ids[3]) == 0);
    CHECK(fleet.owned_by("") == 0);
    fleet.run(1h);
    CHECK(fleet.owned_by(ids[3]) == 0);
    fleet.drain(ids[3], false);
    fleet.run(10min);
    CHECK(spread(fleet, ids) <= 1);
  }
  Fleet alone{1, 4};
  alone.start("a");
  alone.run(1min);
  CHECK(alone.owned_by("a") == 4);
  alone.drain("a", true);
  alone.run(10s);  // it waits for nobody
  CHECK(alone.owned_by("a") == 0);
}

TEST_CASE("partitions that a hanging member does not take go to others, and not back to it") {
  Fleet fleet{1, 16};
  const auto ids = names(3);
  fleet.start(ids[0]);
  fleet.start(ids[1]);
  fleet.run(10min);
  fleet.start(ids[2]);
  fleet.run(1s);
  fleet.freeze(ids[2], 65s);
  fleet.run(60s);
  CHECK(fleet.owned_by(ids[2]) == 0);
  CHECK(fleet.owned_by("") == 0);
  CHECK(fleet.all_moves() <= 16 + 4);
  fleet.run(5min);
  CHECK(spread(fleet, ids) <= 1);
}

TEST_CASE("after any faults every partition has an owner and the shares are within one") {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    constexpr std::size_t kPartitions[] = {1, 5, 16, 32};
    Fleet fleet{seed, kPartitions[seed % 4]};
    const auto ids = names(2 + seed % 5);
    fleet.weight = seed % 7 == 0 ? 3 : 1;
    for (int fault = 0; fault < 30; ++fault) {
      const std::string& id = ids[fleet.any(ids.size())];
      const std::size_t drawn = fleet.any(7);
      if (drawn == 0) fleet.stop(id);
      if (drawn == 1) fleet.lose(id);
      if (drawn == 2) fleet.freeze(id, fleet.between(0s, 30s));
      if (drawn == 3) fleet.drain(id, fleet.any(2) == 0);
      if (drawn > 3) fleet.start(id);
      fleet.run(fleet.between(0s, fleet.any(2) == 0 ? Duration{2s} : Duration{60s}));
    }
    fleet.run(2min);  // those that are lost have ended
    for (const std::string& id : ids) {
      fleet.start(id);
      fleet.drain(id, false);
    }
    fleet.run(20min);
    CHECK(fleet.owned_by("") == 0);
    CHECK(spread(fleet, ids) <= 1);
  }
}

}  // namespace
}  // namespace lictor::core::test
