#include "core/commits/write_batcher.h"

#include <doctest/doctest.h>

#include "wire/transaction_plan.h"

namespace lictor::core::test {
namespace {

using namespace std::chrono_literals;

constexpr Instant kNow{100s};

SharedOptional<Claim> claim_on(const std::string& key) {
  return Claim{"a", "s", "nonce of " + key, {}};
}
Write finish(const std::string& key, std::uint64_t index = 5) {
  return {Purpose::kFinish, FinishOp{key, index}, claim_on(key)};
}
Write bury(const std::string& key, std::size_t bytes = 10) {
  BuryOp op;
  op.key = key;
  op.index = 5;
  op.record = std::make_shared<const std::string>(std::string(bytes, '.'));
  return {Purpose::kBury, std::move(op), claim_on(key)};
}
Write claim(const std::string& key, std::size_t bytes = 10) {
  RestampOp op;
  op.key = key;
  op.index = 5;
  op.record = std::make_shared<const std::string>(std::string(bytes, '.'));
  op.stamp.taken = true;
  return {Purpose::kClaim, std::move(op), claim_on(key)};
}

Write requeue(const std::string& key) {
  Write write = claim(key);
  write.purpose = Purpose::kRequeue;
  return write;
}

Task stored(const std::string& key, std::uint64_t index, const std::string& nonce = {}) {
  Task task;
  task.key = key;
  task.modify_index = index;
  task.record = std::make_shared<const std::string>("what is stored");
  task.flags = 77;
  if (!nonce.empty()) task.stamp.claim = Claim{"a", "s", nonce, {}};
  return task;
}

struct Fixture {
  explicit Fixture(QueueOptions o = {})
      : options(with_costs(std::move(o))), commits(options, requests) {}
  static QueueOptions with_costs(QueueOptions options) {
    options.costs = std::make_shared<wire::TransactionPlan>(wire::Layout::under("", ""), "a");
    return options;
  }

  void add(const std::vector<Write>& writes) {
    for (const Write& write : writes) commits.add(kNow, write);
  }
  // The transactions sent now.
  std::vector<Commit> send(Instant now = kNow) {
    Effects out;
    commits.on_time(now, out);
    commits.send(now, "s", out);
    std::vector<Commit> sent;
    for (const Effect& effect : out) {
      if (const auto* commit = std::get_if<Commit>(&effect)) sent.push_back(*commit);
    }
    note(out);
    return sent;
  }
  Commit send_one(Instant now = kNow) {
    const auto sent = send(now);
    REQUIRE(sent.size() == 1);
    return sent.front();
  }
  template <class Event>
  WriteBatcher::Result reply(const Event& event, Instant now = kNow) {
    Effects out;
    auto result = commits.on(now, event, out);
    note(out);
    return result;
  }
  void note(const Effects& out) {
    for (const Effect& effect : out) {
      if (const auto* fetch = std::get_if<FetchTasks>(&effect)) fetched = *fetch;
    }
  }

  QueueOptions options;
  Requests requests;
  WriteBatcher commits;
  FetchTasks fetched;
};

Committed rejected(const Commit& commit, std::vector<Committed::Failure> failures) {
  return {commit.request, Outcome::kRejected, 0, std::move(failures), {}};
}
// The refusal of a whole transaction.
Committed refused(const Commit& commit, OpFailure why) {
  return rejected(commit, {{Committed::kFence, why, Committed::Part::kTask, "no"}});
}
Committed applied(const Commit& commit, std::uint64_t index = 9) {
  return {commit.request, Outcome::kApplied, index, {}, {}};
}
Committed unknown(const Commit& commit) {
  return {commit.request, Outcome::kUnknown, 0, {}, "no answer"};
}

TEST_CASE("a key in doubt that cannot be read back holds up no other, and is read again") {
  Fixture f;
  f.add({claim("a"), claim("b")});
  const Commit sent = f.send_one();
  f.reply(unknown(sent));
  REQUIRE(f.fetched.keys == std::vector<std::string>{"a", "b"});
  TasksFetched answer;
  answer.request = f.fetched.request;
  answer.ok = true;
  answer.records = {stored("b", 6, "nonce of b")};
  const auto result = f.reply(answer);
  REQUIRE(result.settled.size() == 1);
  CHECK(result.settled.front().verdict == WriteBatcher::Verdict::kApplied);
  CHECK(f.commits.has_room(kNow + 1s));
  CHECK_FALSE(f.commits.idle());
  CHECK(f.commits.next_deadline() <= kNow + 5s);
  f.commits.add(kNow + 1s, finish("b"));
  CHECK(f.send(kNow + 1s).size() == 1);
  static_cast<void>(f.send(kNow + 4900ms));
  CHECK(f.fetched.request == answer.request);

  static_cast<void>(f.send(kNow + 5s));
  CHECK(f.fetched.request != answer.request);
  REQUIRE(f.fetched.keys == std::vector<std::string>{"a"});
  answer.request = f.fetched.request;
  answer.records = {};
  answer.missing = {"a"};
  CHECK(f.reply(answer).settled.size() == 1);
}

TEST_CASE("waiting writes go out together, and a few wait for the transaction under way") {
  Fixture f;
  f.add({finish("a"), claim("b")});
  const Commit first = f.send_one();
  CHECK(first.ops.size() == 2);
  CHECK(first.session == "s");
  f.commits.add(kNow, finish("c"));
  CHECK(f.send().empty());
  CHECK(f.commits.has_room(kNow));
  const auto result = f.reply(applied(first, 42));
  CHECK(result.settled.size() == 2);
  CHECK(result.settled[1].modify_index == 42);
  CHECK(result.proof == kNow);
  CHECK(f.send().size() == 1);
}

TEST_CASE("a second transaction goes when it is full, and no third") {
  QueueOptions options;
  options.max_operations = 4;
  options.transactions_in_flight = 2;
  Fixture f{options};
  f.commits.add(kNow, finish("a"));
  REQUIRE(f.send().size() == 1);
  f.add({finish("b"), claim("c")});
  CHECK(f.send().empty());
  f.commits.add(kNow, finish("d"));
  REQUIRE(f.send().size() == 1);
  for (const char* key : {"e", "f", "g"}) f.commits.add(kNow, finish(key));
  CHECK(f.send().empty());
  CHECK_FALSE(f.commits.has_room(kNow));
}

TEST_CASE("a few writes wait beside a transaction under way, but not for long") {
  Fixture f;
  f.commits.add(kNow, finish("a"));
  REQUIRE(f.send().size() == 1);
  f.commits.add(kNow + 1ms, finish("b"));
  f.commits.add(kNow + 5ms, finish("c"));
  const Instant later = f.commits.next_deadline();
  CHECK(later == kNow + 1ms + 20ms);
  CHECK(f.send(later - 1ms).empty());
  const Commit beside = f.send_one(later);
  CHECK(beside.ops.size() == 2);
  f.commits.add(later, finish("d"));
  CHECK(f.send(later + 1s).empty());  // beside two only a full one goes
  CHECK(f.commits.next_deadline() == Instant::max());
}

TEST_CASE("while there is enough to do, a few writes wait for more, and not for long") {
  Fixture f;
  f.commits.set_patient(true);
  f.commits.add(kNow, finish("a"));
  CHECK(f.send().empty());
  const Instant later = f.commits.next_deadline();
  CHECK(later == kNow + 20ms);
  f.commits.add(kNow + 1ms, finish("b"));
  CHECK(f.send(later - 1ms).empty());
  REQUIRE(f.send(later).size() == 1);
  f.commits.add(later, finish("c"));
  f.commits.set_patient(false);
  CHECK(f.send(later).empty());  // beside the first
}

TEST_CASE("a transaction holds no more operations and bytes than Consul takes") {
  QueueOptions options;
  options.max_operations = 8;
  options.transactions_in_flight = 10;
  Fixture f{options};
  f.add({bury("a"), bury("b")});
  for (int i = 0; i < 8; ++i) f.commits.add(kNow, finish("c" + std::to_string(i)));
  auto sent = f.send();
  REQUIRE(sent.size() == 2);  // 1 + 3 + 3 + 1, and 1 + 7
  CHECK(sent[0].ops.size() == 3);

  Fixture g;
  g.options.transactions_in_flight = 10;
  for (int i = 0; i < 10; ++i) g.commits.add(kNow, claim("k" + std::to_string(i), 100'000));
  sent = g.send();
  CHECK(sent.size() == 3);  // 140 kB each in base64; the last alone does not fill one
  for (const Commit& commit : sent) CHECK(commit.ops.size() <= 3);
}

TEST_CASE("two writes of one key go in two transactions, also if a job asked for one of them") {
  Fixture f;
  f.options.transactions_in_flight = 10;
  FinishOp commits_task{"a", 5, {{"b", "as it is now", false, {}}, {"app/x", "1", false, {}}}};
  f.add({claim("b"), {Purpose::kFinish, commits_task, claim_on("a")}});
  f.commits.add(kNow,
                {Purpose::kFinish, FinishOp{"c", 5, {{"app/x", "2", false, {}}}}, claim_on("c")});
  const Commit first = f.send_one();
  REQUIRE(first.ops.size() == 1);
  CHECK(key_of(first.ops.front()) == "a");
  CHECK(f.send_one(kNow + 20ms).ops.size() == 2);  // of "b" and "c"
}

TEST_CASE("a transaction of more operations than Consul takes goes again in what it takes") {
  Fixture f;
  f.options.transactions_in_flight = 10;
  for (int i = 0; i < 100; ++i) f.commits.add(kNow, finish("k" + std::to_string(i)));
  Commit sent = f.send_one();
  CHECK(sent.ops.size() == 100);
  Committed too_many = refused(sent, OpFailure::kTooLarge);
  too_many.most_operations = f.options.max_operations = 64;  // as Queue learns it
  const auto result = f.reply(too_many);
  CHECK(result.settled.empty());
  sent = f.send_one();
  CHECK(sent.ops.size() == 63);
  CHECK(key_of(sent.ops.front()) == "k0");
  CHECK(f.send(kNow + 20ms).size() == 1);
  CHECK(f.commits.writes() == 100);
}

TEST_CASE("a refused write is taken out, and the rest goes again") {
  Fixture f;
  f.add({finish("a"), finish("b"), finish("c")});
  const auto sent = f.send();
  f.reply(rejected(sent[0], {{1, OpFailure::kStale, Committed::Part::kTask, "index is stale"}}));
  const Commit again = f.send_one();
  REQUIRE(again.ops.size() == 2);
  CHECK(key_of(again.ops[0]) == "a");
  CHECK(key_of(again.ops[1]) == "c");
  CHECK(f.fetched.keys == std::vector<std::string>{"b"});
}

Write of(std::uint32_t partition, Write write) {
  write.partition = partition;
  return write;
}

QueueOptions sixteen() {
  QueueOptions options;
  options.partitions = 16;
  options.partitions_index = 77;
  return options;
}

TEST_CASE("writes of several partitions share a transaction, under the fence of each") {
  Fixture f{sixteen()};
  f.add({of(5, finish("a")), of(3, finish("b")), of(5, finish("c"))});
  const Commit sent = f.send_one();
  CHECK(sent.partitions == std::vector<std::uint32_t>{3, 5});
  CHECK(sent.partition_count == 16);
  CHECK(sent.count_index == 77);
  const auto result = f.reply(applied(sent, 90));
  CHECK(result.settled.size() == 3);
  CHECK(result.proof == kNow);
}

TEST_CASE("the fence of a lost partition names it, and all writes wait for what follows") {
  Fixture f{sixteen()};
  f.add({of(5, finish("a")), of(3, finish("b"))});
  const auto sent = f.send();
  Committed::Failure lost{Committed::kFence, OpFailure::kNotLeader, Committed::Part::kTask, "", 5};
  const auto result = f.reply(rejected(sent[0], {lost}));
  CHECK(result.not_leader == std::vector<std::uint32_t>{5});
  CHECK(f.commits.writes() == 2);
}

TEST_CASE("each fence takes its place in a transaction") {
  Fixture f{sixteen()};
  for (std::uint32_t i = 0; i < 256; ++i) {
    f.commits.add(kNow, of(i % 16, finish("task " + std::to_string(i))));
  }
  std::size_t written = 0;
  for (auto sent = f.send(); !sent.empty(); sent = f.send()) {
    for (const Commit& commit : sent) {
      CHECK(commit.ops.size() + commit.partitions.size() + 1 <= f.options.max_operations);
      written += commit.ops.size();
      f.reply(applied(commit, 90));
    }
  }
  CHECK(written == 256);
}

TEST_CASE("a write whose reply was lost is judged by what is stored") {
  struct Row {
    const char* what;
    Write write;
    std::optional<Task> stored;
    bool again;  // else settled so:
    WriteBatcher::Verdict verdict;
  };
  using Verdict = WriteBatcher::Verdict;
  const Row table[] = {
      {"a finish that landed", finish("a"), {}, false, Verdict::kVoid},
      {"a finish that did not", finish("a"), stored("a", 5, "nonce of a"), true, {}},
      {"a finish, touched beside", finish("a"), stored("a", 9, "nonce of a"), true, {}},
      {"a finish, rewritten", finish("a"), stored("a", 9), false, Verdict::kVoid},
      {"a finish, another's by now", finish("a"), stored("a", 9, "another"), false, Verdict::kVoid},
      {"a claim that landed", claim("a"), stored("a", 9, "nonce of a"), false, Verdict::kApplied},
      {"a claim that did not", claim("a"), stored("a", 5), true, {}},
      {"a claim, rewritten", claim("a"), stored("a", 9), false, Verdict::kVoid},
      {"a claim, deleted", claim("a"), {}, false, Verdict::kVoid},
      {"a requeue, touched beside", requeue("a"), stored("a", 9, "nonce of a"), true, {}},
      {"a bury, touched beside", bury("a"), stored("a", 9, "nonce of a"), true, {}},
      {"a bury that did not land", bury("a"), stored("a", 5), true, {}},
  };
  for (const Row& row : table) {
    CAPTURE(row.what);
    Fixture f;
    f.commits.add(kNow, row.write);
    const auto sent = f.send();
    CHECK(f.reply(unknown(sent[0])).settled.empty());
    REQUIRE(f.fetched.keys == std::vector<std::string>{"a"});
    CHECK(f.send().empty());
    TasksFetched read{f.fetched.request, true, {}, {}, {}, {}, 0};
    if (row.stored) {
      read.records.emplace_back(*row.stored);
    } else {
      read.missing.emplace_back("a");
    }
    const auto result = f.reply(read);
    CHECK(result.settled.size() == (row.again ? 0 : 1));
    if (!row.again) CHECK(result.settled.at(0).verdict == row.verdict);
    CHECK(f.send(kNow + 499ms).empty());  // the store is in trouble: no tight loop
    const auto again = f.send(kNow + 500ms);
    CHECK(again.size() == (row.again ? 1 : 0));
    if (row.again) {
      CHECK(std::visit(
                [](const auto& op) {
                  if constexpr (requires { op.index; }) return op.index;
                  return std::uint64_t{0};
                },
                again[0].ops[0]) == row.stored->modify_index);
      const auto* restamp = std::get_if<RestampOp>(&again[0].ops[0]);
      const bool is_new = restamp != nullptr && row.stored->modify_index != 5;
      if (is_new) CHECK(restamp->flags == row.stored->flags);
      if (is_new) CHECK(*restamp->record == *row.stored->record);
      const auto* letter = std::get_if<BuryOp>(&again[0].ops[0]);
      if (letter != nullptr && letter->index != 5) CHECK(*letter->record == *row.stored->record);
    }
    CHECK(f.commits.idle() == !row.again);
  }
}

TEST_CASE("a reading that failed is tried again, and nothing is sent meanwhile") {
  Fixture f;
  f.commits.add(kNow, finish("a"));
  f.reply(unknown(f.send_one()));
  const RequestId first = f.fetched.request;
  CHECK_FALSE(f.commits.has_room(kNow + 1s));
  f.reply(TasksFetched{first, false, {}, {}, "no answer", {}, 0}, kNow + 2s);
  CHECK(f.commits.next_deadline() == kNow + 2500ms);
  f.commits.add(kNow + 2s, finish("b"));
  CHECK(f.send(kNow + 2100ms).empty());
  CHECK(f.fetched.request == first);
  f.send(kNow + 2500ms);
  CHECK(f.fetched.request != first);
}

TEST_CASE("a reading of many keys in doubt that fails goes again for half of them") {
  Fixture f;
  for (int i = 0; i < 8; ++i) f.commits.add(kNow, finish("k" + std::to_string(i)));
  f.reply(unknown(f.send_one()));
  REQUIRE(f.fetched.keys.size() == 4);
  f.reply(TasksFetched{f.fetched.request, false, {}, {}, "no answer", {}, 0}, kNow + 2s);
  f.send(kNow + 2500ms);
  CHECK(f.fetched.keys.size() == 2);
}

TEST_CASE("a claim that is refused for itself comes back; a finish is kept and tried again") {
  Fixture f;
  f.add({claim("a"), finish("b")});
  const auto sent = f.send();
  const auto result =
      f.reply(rejected(sent[0], {{0, OpFailure::kDenied, Committed::Part::kTask, "denied"},
                                 {1, OpFailure::kDenied, Committed::Part::kTask, "denied"}}));
  REQUIRE(result.settled.size() == 1);
  CHECK(result.settled[0].verdict == WriteBatcher::Verdict::kRefused);
  CHECK_FALSE(f.commits.idle());
  CHECK(f.commits.has_room(kNow));
  CHECK(f.commits.next_deadline() == kNow + 5s);
  CHECK(f.send(kNow + 4s).empty());
  CHECK(f.send(kNow + 5s).size() == 1);
}

TEST_CASE("a transaction refused as a whole or never sent goes again after a pause; so do claims") {
  struct Row {
    std::vector<Committed::Failure> failures;
    Duration pause;
  };
  const auto whole = [](OpFailure why) {
    return Committed::Failure{Committed::kFence, why, Committed::Part::kTask, "no"};
  };
  for (const auto& [failures, pause] :
       {Row{{}, 500ms}, {{whole(OpFailure::kOther)}, 500ms}, {{whole(OpFailure::kDenied)}, 5s}}) {
    Fixture f;
    f.commits.add(kNow, finish("a"));
    f.reply(rejected(f.send_one(), failures));
    const Instant again = kNow + pause;
    CHECK(f.commits.next_deadline() == again);
    CHECK(f.send(again - 1ms).empty());
    CHECK_FALSE(f.commits.has_room(again - 1ms));
    CHECK(f.send(again).size() == 1);
  }
}

TEST_CASE("a record that somebody made too large under our claim is let go") {
  for (const std::size_t bytes : {300'000U, 400'000U}) {
    CAPTURE(bytes);
    const bool fits = bytes == 300'000U;
    Fixture f;
    f.commits.add(kNow, bury("a"));
    f.reply(rejected(f.send_one(), {{0, OpFailure::kStale, Committed::Part::kTask, "stale"}}));
    Task rewritten = stored("a", 9, "nonce of a");
    rewritten.record = std::make_shared<const std::string>(std::string(bytes, '.'));
    CHECK(f.commits.too_large(rewritten).empty() == fits);
    const auto result = f.reply(TasksFetched{f.fetched.request, true, {rewritten}, {}, {}, {}, 0});
    CHECK(f.send().size() == (fits ? 1 : 0));
    REQUIRE(result.settled.size() == (fits ? 0 : 1));
    if (!fits) CHECK(result.settled[0].verdict == WriteBatcher::Verdict::kVoid);
    if (!fits) CHECK(result.settled[0].stored != nullptr);
  }
}

TEST_CASE("late replies to forgotten writes find nobody") {
  Fixture f;
  f.add({finish("a"), finish("z")});
  f.reply(rejected(f.send_one(), {{1, OpFailure::kDenied, Committed::Part::kTask, "denied"}}));
  CHECK(f.commits.first_refusal() == "denied");
  const Commit sent = f.send_one();
  f.commits.add(kNow, claim("b"));
  Effects out;
  f.commits.clear(out);
  CHECK(f.commits.idle());
  CHECK(f.commits.next_deadline() == Instant::max());
  const auto result = f.reply(applied(sent, 42));
  CHECK(result.settled.empty());
  CHECK_FALSE(result.proof.has_value());
  CHECK(f.send(kNow + 1h).empty());
}

TEST_CASE("an older answer settles no later doubt about a key of a partition that was dropped") {
  Fixture f;
  f.add({claim("a"), requeue("b")});
  f.reply(unknown(f.send_one()));
  TasksFetched answer{f.fetched.request, true};
  answer.missing = {"a", "b"};
  f.commits.drop(0);
  f.add({claim("a")});
  f.reply(unknown(f.send_one(kNow + 1s)));
  CHECK(f.reply(answer).settled.empty());
  answer.request = f.fetched.request;
  CHECK(f.reply(answer).settled.size() == 1);
}

TEST_CASE("the writes of a partition that was dropped take no room, and are not sent again") {
  Fixture f{sixteen()};
  f.add({of(5, finish("a")), of(5, finish("b"))});
  const Commit sent = f.send_one();
  for (int i = 0; i < 3'000; ++i) f.commits.add(kNow, of(5, finish(std::to_string(i))));
  CHECK_FALSE(f.commits.has_room(kNow));
  f.commits.drop(5);
  CHECK(f.commits.has_room(kNow));
  f.reply(refused(sent, OpFailure::kTooLarge));
  CHECK(f.send().empty());
}

TEST_CASE("a claim whose token another leader took waits, and is not in doubt") {
  Fixture f;
  f.commits.add(kNow, claim("a"));
  const auto result =
      f.reply(rejected(f.send_one(), {{0, OpFailure::kStale, Committed::Part::kRate, "stale"}}));
  REQUIRE(result.settled.size() == 1);
  CHECK(result.settled[0].verdict == WriteBatcher::Verdict::kNoToken);
}

TEST_CASE("ends and claims are spread over the transactions under way, each kind in its order") {
  QueueOptions options;
  options.max_operations = 7;  // the fence and six
  options.transactions_in_flight = 2;
  Fixture f{options};
  for (const char* key : {"e1", "e2", "e3", "e4", "e5", "e6"}) f.commits.add(kNow, finish(key));
  CHECK(f.commits.has_room(kNow));  // in the second
  for (const char* key : {"c1", "c2", "c3", "c4", "c5", "c6"}) f.commits.add(kNow, claim(key));
  CHECK_FALSE(f.commits.has_room(kNow));
  const auto sent = f.send();
  REQUIRE(sent.size() == 2);
  const auto keys = [](const Commit& commit) {
    std::vector<std::string> names;
    for (const Op& op : commit.ops) names.push_back(key_of(op));
    return names;
  };
  CHECK(keys(sent[0]) == std::vector<std::string>{"e1", "c1", "e2", "c2", "e3", "c3"});
  CHECK(keys(sent[1]) == std::vector<std::string>{"e4", "c4", "e5", "c5", "e6", "c6"});
}

TEST_CASE("a transaction refused for its size goes again in halves, at once") {
  Fixture f;
  for (int i = 0; i < 8; ++i) f.commits.add(kNow, finish("k" + std::to_string(i)));
  CHECK(f.reply(refused(f.send_one(), OpFailure::kTooLarge)).settled.empty());
  const auto halves = f.send();
  REQUIRE(halves.size() == 2);
  CHECK(halves[0].ops.size() == 4);
  CHECK(key_of(halves[0].ops[0]) == "k0");
  CHECK(halves[1].ops.size() == 4);
  CHECK(f.reply(applied(halves[0])).settled.size() == 4);
  f.reply(refused(halves[1], OpFailure::kTooLarge));
  const auto quarters = f.send();
  REQUIRE(quarters.size() == 2);
  for (const Commit& commit : quarters) CHECK(f.reply(applied(commit)).settled.size() == 2);
  CHECK(f.commits.idle());
  // Later transactions are no larger than the one that passed.
  for (int i = 0; i < 8; ++i) f.commits.add(kNow, finish("k" + std::to_string(i)));
  CHECK(f.send().at(0).ops.size() < 4);
}

TEST_CASE("a write that is refused alone goes on with less in it, or is given up") {
  using Verdict = WriteBatcher::Verdict;
  Fixture f;
  const auto record = std::make_shared<const std::string>("{}");
  FinishOp writing{"b", 5};
  for (const char* key : {"app/x", "app/y", "app/z"})
    writing.writes.push_back({key, "1", false, {}});
  f.options.max_operations = 3;  // Consul takes no more, as is known since
  for (const auto& [write, verdict] :
       {std::pair{claim("a"), Verdict::kRefused},
        {Write{Purpose::kTick, ScheduleOp{"s", 5, "s", record}, {}}, Verdict::kRefused},
        {Write{Purpose::kPrune, PruneOp{"p", 5}, {}}, Verdict::kVoid},
        {Write{Purpose::kFinish, writing, claim_on("b")}, Verdict::kRefused}}) {
    f.commits.add(kNow, write);
    const auto result = f.reply(refused(f.send_one(), OpFailure::kTooLarge));
    REQUIRE(result.settled.size() == 1);
    CHECK(result.settled[0].verdict == verdict);
    CHECK(result.settled[0].error == (verdict == Verdict::kRefused ? "no" : ""));
  }
  f.options.max_operations = 128;

  Write letter = bury("c");
  BuryOp with_tail = std::get<BuryOp>(letter.op);
  with_tail.output_tail = "the end";
  with_tail.error = std::string(1'000, 'e');
  f.commits.add(kNow, {Purpose::kBury, with_tail, claim_on("c")});
  CHECK(f.reply(refused(f.send_one(), OpFailure::kTooLarge)).settled.empty());
  Commit sent = f.send_one();
  CHECK(std::get<BuryOp>(sent.ops[0]).output_tail.empty());
  f.reply(refused(sent, OpFailure::kTooLarge));
  sent = f.send_one();
  CHECK(std::get<BuryOp>(sent.ops[0]).error.size() == 200);
  f.reply(refused(sent, OpFailure::kTooLarge));  // nothing is left to do without
  CHECK(f.send(kNow + 4s).empty());
  CHECK(f.commits.has_room(kNow));
  sent = f.send_one(kNow + 5s);
  f.reply(applied(sent));

  auto done = std::make_shared<DoneRecord>();
  done->result = "1";
  f.commits.add(kNow, {Purpose::kFinish, FinishOp{"d", 5, {}, done}, claim_on("d")});
  f.reply(refused(f.send_one(), OpFailure::kTooLarge));
  sent = f.send_one();
  CHECK(std::get<FinishOp>(sent.ops[0]).done->result_left_out);
  f.reply(refused(sent, OpFailure::kTooLarge));
  sent = f.send_one();
  CHECK(std::get<FinishOp>(sent.ops[0]).done == nullptr);
  f.reply(refused(sent, OpFailure::kTooLarge));  // later: its job has run
  f.reply(applied(f.send_one(kNow + 5s), 0));
  CHECK(f.commits.idle());

  f.commits.add(kNow, claim("e"));
  CHECK(f.reply(refused(f.send_one(), OpFailure::kMalformed)).settled.size() == 1);
  CHECK_FALSE(f.commits.has_room(kNow));  // the next may be refused as well: no tight loop
  CHECK(f.commits.has_room(kNow + 500ms));
}

TEST_CASE("a dead letter whose name is taken gets one by the index of what it ends") {
  Fixture f;
  f.add({bury("a"), finish("b")});
  const auto taken = [](const Commit& commit) {
    return rejected(commit,
                    {{0, OpFailure::kStale, Committed::Part::kDeadLetter, "index is stale"}});
  };
  const auto& letter_of = [](const Commit& commit) { return std::get<BuryOp>(commit.ops[0]); };
  Commit sent = f.send_one();
  CHECK(letter_of(sent).name_end().empty());
  f.reply(taken(sent));
  sent = f.send_one();
  CHECK(sent.ops.size() == 2);
  const std::string index = std::to_string(letter_of(sent).index);
  CHECK(letter_of(sent).name_end() == "," + index);
  // A task of another client has such an id, and died.
  f.reply(taken(sent));
  sent = f.send_one();
  CHECK(letter_of(sent).name_end() == "," + index + "," + index);
  f.reply(applied(sent));
  CHECK(f.commits.idle());
}

}  // namespace
}  // namespace lictor::core::test
