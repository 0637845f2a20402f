#include "wire/transaction_plan.h"

#include <memory>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "core/commits/write.h"
#include "wire/consul.h"
#include "wire/record.h"
#include "wire/schedule_record.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::wire;
using namespace std::chrono_literals;

namespace {

constexpr WallTime kAt{std::chrono::milliseconds{1'795'228'350'949}};
constexpr const char* kSession = "d5c5d9f0-1b1f-4b8e-a1c5-0c5b5d9f01b1";

Layout layout() { return Layout::under("l/", "q"); }

// Operations of every kind, with texts that JSON must escape and bytes that are no text.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  Op op() {
    switch (below(6)) {
      case 0:
        return restamp();
      case 1:
        return finish();
      case 2:
        return bury();
      case 3:
        return MarkOp{static_cast<MarkOp::What>(below(3))};
      case 4:
        return tick();
      default:
        return PruneOp{key(), index()};
    }
  }

  std::size_t below(std::size_t n) { return random_.next() % n; }

 private:
  bool chance() { return below(2) == 0; }
  std::uint64_t index() { return random_.next() >> below(64); }

  std::string text(std::size_t most) {
    static const std::vector<std::string> kPieces = nlohmann::json::parse(
        R"(["a", "Z", "7", "\"", "\\", "\n", "\t", "\u0000", "\u001f", "\u007f", "\u00fc",
            "\u65e5", "\ud83d\ude00", "</"])");
    std::string made;
    const std::size_t size = below(most + 1);
    const bool plain = chance();
    while (made.size() < size) made += plain ? "abc" : kPieces[below(kPieces.size())];
    return made;
  }
  std::string bytes(std::size_t most) {
    std::string made = text(most);
    if (chance()) made += "\xff\xfe\x80 \xc3";
    return made;
  }
  std::string key() { return layout().tasks_prefix + "k" + text(40); }

  Stamp stamp() {
    Stamp s{.taken = chance(),
            .attempt = static_cast<std::uint32_t>(index()),
            .lost = static_cast<std::uint32_t>(index())};
    if (chance()) s.retry_at = kAt;
    if (chance()) s.claim = Claim{text(30), kSession, text(30), kAt};
    if (chance()) s.error = bytes(3'000);
    return s;
  }

  // Some records have lictor's own fields, and no spaces.
  std::shared_ptr<const std::string> record() {
    std::string made = "{\"p\":" + json_quoted(text(300));
    if (chance()) made += R"(,"taskTaken":)" + std::string{chance() ? "\"false\"" : "true"};
    if (chance()) made += R"(,"taskError":"old")";
    return std::make_shared<const std::string>(made + R"(,"taskType":"T"})");
  }
  RestampOp restamp() {
    RestampOp op;
    const auto stored = read_record(layout(), {key(), *record(), {}, index(), 5, index()});
    const Task& task = std::get<Task>(stored);
    std::optional<RateMark> rate;
    if (chance()) rate = RateMark{index(), kAt};
    return {task.key, task.modify_index, task.record, stamp(), task.flags, rate};
  }
  FinishOp finish() {
    FinishOp op{key(), index()};
    for (std::size_t i = below(4); i > 0; --i) {
      KvWrite write{"app/" + text(20), chance() ? bytes(200) : "", false, {}};
      write.erase = write.value.empty() && chance();
      if (chance()) write.cas = index();
      op.writes.push_back(std::move(write));
    }
    if (!chance()) return op;
    DoneRecord done;
    if (chance()) done.record = record();
    if (chance()) done.result = json_quoted(text(200));
    done.result_left_out = chance();
    done.attempts = static_cast<std::uint32_t>(index());
    done.lost = static_cast<std::uint32_t>(index());
    done.started = done.at = kAt;
    op.done = std::make_shared<const DoneRecord>(std::move(done));
    return op;
  }
  ScheduleOp tick() {
    schedule::Zones zones;
    std::string made = R"({"every":"10s","jitter":"1m","task":{"taskType":"T","taskPara":[)" +
                       json_quoted("{tick}" + text(100)) + R"(,"{tick}{tick}"]})";
    if (chance()) made += R"(,"lastTick":"2026-11-24T09:30:00Z","overlap":"queue")";
    auto record = std::make_shared<const std::string>(made + "}");
    const std::string name = "s" + text(20);
    auto definition = read_schedule(name, *record, zones).value();
    const schedule::Tick last = std::chrono::floor<std::chrono::seconds>(kAt);
    return {layout().schedule_key(name),
            index(),
            name,
            record,
            std::make_shared<const schedule::Definition>(std::move(definition)),
            last,
            chance() ? schedule::tick_id(name, last) : std::string{},
            chance(),
            index(),
            chance(),
            chance()};
  }
  BuryOp bury() {
    BuryOp op;
    op.key = key();
    op.index = index();
    op.readable = chance();
    op.record = op.readable ? record() : std::make_shared<const std::string>(bytes(400));
    op.stamp = stamp();
    op.reason = "owner lost";
    op.error = bytes(3'000);
    if (chance()) op.output_tail = bytes(2'000);
    op.at = kAt;
    op.taken = static_cast<std::uint32_t>(below(3));
    return op;
  }

  Random random_;
};

const Binding kPlanned{.layout = layout(), .queue = "q", .node = "host \"a\""};
const TransactionPlan kPlan{layout(), kPlanned.node};

std::string body_of(Ops ops) { return encode(kPlanned, Commit{{}, kSession, std::move(ops)}).body; }

Cost cost_of(const Ops& ops) {
  Cost cost = kPlan.fence(1, 1);
  for (const Op& op : ops) cost += kPlan.cost(op);
  return cost;
}

}  // namespace

TEST_CASE("a plan costs as much as its body: the operations exactly, the bytes hardly more") {
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    CAPTURE(seed);
    Draw draw{seed};
    Ops ops;
    for (std::size_t i = draw.below(4); i < 4; ++i) ops.push_back(draw.op());
    const std::string body = body_of(ops);
    const Cost cost = cost_of(ops);
    REQUIRE(cost.operations == nlohmann::json::parse(body).size());
    REQUIRE(cost.bytes >= body.size());
  }
  for (const std::size_t partitions : {1U, 2U, 16U}) {
    Commit commit{{}, kSession, {}, {}, 256, 18'446'744'073'709'551'615U};
    for (std::uint32_t i = 0; i < partitions; ++i) commit.partitions.push_back(255 - i);
    const std::string body = encode(kPlanned, commit).body;
    CHECK(kPlan.fence(256, partitions).operations == nlohmann::json::parse(body).size());
    CHECK(kPlan.fence(256, partitions).bytes >= body.size());
  }
  // The parts of most transactions are not overestimated.
  Stamp claimed{.taken = true,
                .attempt = 1,
                .claim = Claim{"host \"a\"", kSession, "0123456789abcdef-17", kAt}};
  const auto record = std::make_shared<const std::string>(R"({"taskType":"T"})");
  const Ops ops{RestampOp{"l/q/tasks/1", 123'456, record, claimed}, FinishOp{"l/q/tasks/2", 7}};
  CHECK(cost_of(ops).bytes < body_of(ops).size() + 300);
}

TEST_CASE("each part that a write may have costs what it adds to the body") {
  const auto record = std::make_shared<const std::string>(R"({"taskType":"T"})");
  const auto check = [&](const auto& op, const std::string& part, auto add) {
    CAPTURE(part);
    auto more = op;
    add(more);
    CHECK(kPlan.cost(more).bytes + body_of({op}).size() >=
          kPlan.cost(op).bytes + body_of({more}).size());
  };
  const RestampOp restamp{"l/q/tasks/1", 7, record, {}};
  check(restamp, "retry_at", [](RestampOp& op) { op.stamp.retry_at = kAt; });
  check(restamp, "error", [](RestampOp& op) { op.stamp.error = "no \"luck\""; });
  check(restamp, "claim", [](RestampOp& op) {
    op.stamp.claim = Claim{"host \"a\"", kSession, "0123456789abcdef-17", kAt};
  });
  check(restamp, "rate", [](RestampOp& op) { op.rate = RateMark{7, kAt}; });
  BuryOp bury = dead_letter(std::get<Task>(read_record(layout(), {restamp.key, *record})), "failed",
                            "no luck", kAt);
  check(bury, "output", [](BuryOp& op) { op.output_tail = "a \"tail\"\n"; });
  check(bury, "name", [](BuryOp& op) { op.taken = 2; });
  const FinishOp finish{restamp.key, 7};
  check(finish, "write", [](FinishOp& op) { op.writes.push_back({"app/x", "text", false, 7}); });
}

TEST_CASE("a full batch is never larger than what Consul takes") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Draw draw{seed};
    Ops ops;
    Cost cost = kPlan.fence(1, 1);
    for (;;) {
      Op op = draw.op();
      Cost more = cost;
      more += kPlan.cost(op);
      if (more.bytes > limits::kTransactionBytes) break;
      cost = more;
      ops.push_back(std::move(op));
    }
    CHECK(body_of(ops).size() <= limits::kTransactionBytes);
  }
}

TEST_CASE("a failed operation is identified by the operation that was written there") {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    Draw draw{seed};
    Commit commit{{}, kSession, {}};
    for (std::size_t i = draw.below(6); i < 6; ++i) commit.ops.push_back(draw.op());
    const auto written = nlohmann::json::parse(encode(kPlanned, commit).body);
    CHECK(target_of(commit, 0).op == Committed::kFence);
    for (std::size_t i = 1; i < written.size(); ++i) {
      const OpTarget place = target_of(commit, i);
      REQUIRE(place.op < commit.ops.size());
      const std::string key = written[i].at("KV").at("Key");
      const bool of_job = key.starts_with("app/");
      const bool of_letter = key.starts_with(layout().dead_prefix);
      CHECK((place.part == Committed::Part::kJobWrite) == of_job);
      CHECK((place.part == Committed::Part::kDeadLetter) == of_letter);
      CHECK((place.part == Committed::Part::kRate) == (key == layout().rate_key));
      if (!of_job && key.starts_with(layout().tasks_prefix) && key != layout().tasks_prefix) {
        CHECK((place.part == Committed::Part::kNewTask) ==
              std::holds_alternative<ScheduleOp>(commit.ops[place.op]));
        CHECK(std::visit(
                  [](const auto& op) {
                    if constexpr (std::is_same_v<std::decay_t<decltype(op)>, ScheduleOp>) {
                      return layout().task_key(schedule::tick_id(op.name, op.last));
                    }
                    if constexpr (requires { op.key; }) return op.key;
                    return std::string{};
                  },
                  commit.ops[place.op]) == key);
      }
    }
    CHECK(target_of(commit, written.size()).op == Committed::kFence);
  }
}

TEST_CASE("an output's tail costs its escaped size") {
  const TransactionPlan plan{layout(), "a"};
  BuryOp bury{.key = "l/q/tasks/1", .record = std::make_shared<const std::string>("{}")};
  const std::size_t without = plan.cost(bury).bytes;
  bury.output_tail = std::string(3'000, '\0');
  CHECK(plan.cost(bury).bytes >= without + 6 * 3'000 * 4 / 3);
  bury.output_tail = std::string(3'000, 'x');
  CHECK(plan.cost(bury).bytes < without + 3'000 * 4 / 3 + 100);
}

TEST_CASE("the longest record has room for its claim, its retry and its dead letter") {
  for (const std::string& id : {std::string{"1"}, std::string(10'000, '\x01')}) {
    const std::string key = layout().task_key(id);
    const std::size_t most = record_limit(layout(), key);
    CHECK(most > (id.size() == 1 ? 385'000 : 70'000));
    const std::string frame = R"({"taskType":"T","p":""})";
    const auto record = std::make_shared<const std::string>(
        R"({"taskType":"T","p":")" + std::string(most - frame.size(), 'x') + "\"}");
    Stamp worst;
    worst.attempt = worst.lost = 4'294'967'295U;
    worst.retry_at = kAt;
    worst.claim =
        Claim{std::string(200, '\\'), kSession, "0123456789abcdef-18446744073709551615", kAt};
    worst.error = std::string(5'000, '"');
    const std::uint64_t last = static_cast<std::uint64_t>(-1);
    const RestampOp claim{key, last, record, worst, last, RateMark{last, kAt}};
    CHECK(body_of({claim}).size() <= limits::kTransactionBytes);
    BuryOp bury{.key = key,
                .index = last,
                .record = record,
                .stamp = worst,
                .reason = "unreadable",
                .error = worst.error,
                .at = kAt,
                .taken = 2};
    CHECK(body_of({bury}).size() <= limits::kTransactionBytes);
    bury.readable = false;
    bury.record = std::make_shared<const std::string>(std::string(most / 4 * 3 - 20, '\xff'));
    CHECK(record_size(BadRecord{key, 1, 1, "no", bury.record}) <= most);
    CHECK(body_of({bury}).size() <= limits::kTransactionBytes);
  }
  CHECK(record_limit(layout(), std::string(100'000, '\x01')) == 0);  // not even its key fits
}

TEST_CASE("a short record has room for all that, whatever its key") {
  for (const std::size_t transaction_bytes : {32'768UL, limits::kTransactionBytes}) {
    const std::size_t both = transaction_bytes / 64;
    CHECK_FALSE(limits::is_short_record(both, 1, transaction_bytes));
    for (const std::size_t key_bytes : {1UL, both / 2, both - 1}) {
      CHECK(limits::is_short_record(both - key_bytes, key_bytes, transaction_bytes));
      const std::string key(key_bytes, '\x01');
      CHECK(record_limit(layout(), key, transaction_bytes) >= both - key_bytes);
    }
  }
}
