// An experiment: would a claim journal be faster than one cas a task?
//
// With it a claim does not touch the task: one key names a batch of claims with their indexes,
// under the fence, and each finish is a fenced delete-cas at the index that the producer's write
// gave. So that nothing starts that was withdrawn or rewritten before it was claimed, as with a
// cas, each index is to be checked in the transaction that writes the journal. `unchecked` leaves
// that out: what a journal without this promise would reach. Raw transactions on both sides.

#include <algorithm>
#include <atomic>
#include <map>

#include "bench.h"
#include "raw.h"
#include "wire/txn.h"

namespace lictor::bench {
namespace {

enum class Claim { kCas, kJournal, kJournalUnchecked };

// How many tasks are claimed and finished in one transaction of 64 operations.
std::size_t batch_of(Claim claim) {
  switch (claim) {
    case Claim::kCas:
      return 31;  // a fence, 31 cas, 31 delete-cas
    case Claim::kJournal:
      return 31;  // a fence, the journal, 31 check-index, 31 delete-cas
    case Claim::kJournalUnchecked:
      return 62;  // a fence, the journal, 62 delete-cas
  }
  return 0;
}

struct Slice {
  std::size_t begin = 0, end = 0;
};

// Claims `next`, and finishes `before`, whose claims have the ModifyIndex `claimed_at`.
std::string transaction(const RawLock& lock, const std::vector<RawTask>& tasks, Claim claim,
                        const std::string& journal, Slice next, Slice before,
                        std::uint64_t claimed_at) {
  wire::Txn txn;
  txn.verb("check-session", lock.key()).session(lock.session());
  for (std::size_t i = before.begin; i < before.end; ++i) {
    txn.verb("delete-cas", tasks[i].key).index(claim == Claim::kCas ? claimed_at : tasks[i].index);
  }
  std::string claims;
  for (std::size_t i = next.begin; i < next.end; ++i) {
    if (claim == Claim::kCas) {
      txn.verb("cas", tasks[i].key)
          .index(tasks[i].index)
          .value(claimed(task_record(i, "Noop"), lock.session()));
      continue;
    }
    if (claim == Claim::kJournal) txn.verb("check-index", tasks[i].key).index(tasks[i].index);
    claims += (claims.empty() ? "" : ",") + tasks[i].key.substr(std::string{kRawPrefix}.size()) +
              ":" + std::to_string(tasks[i].index);
  }
  if (claim != Claim::kCas) txn.verb("set", journal).value(lock.session() + ":" + claims);
  return std::move(txn).body();
}

double rate(const live::ConsulAgent& consul, std::size_t count, std::size_t connections,
            Claim claim) {
  load(consul, kRawPrefix, count, [](std::size_t i) { return task_record(i, "Noop"); });
  const RawLock lock{consul};
  const std::vector<RawTask> tasks = raw_tasks(consul, kRawPrefix);
  require(tasks.size() == count, "the raw tasks are not all there");
  const std::size_t batch = batch_of(claim);
  std::atomic<std::size_t> next = 0, connection = 0;
  const double seconds = in_parallel(consul, connections, [&](live::Kv& kv) {
    const std::string journal = "raw/journal/" + std::to_string(connection.fetch_add(1));
    Slice before;
    std::uint64_t claimed_at = 0;
    while (true) {
      const std::size_t begin = std::min(count, next.fetch_add(batch));
      const Slice part{begin, std::min(count, begin + batch)};
      if (part.begin == part.end && before.begin == before.end) return;
      const auto answer = kv.request(
          "PUT", "/v1/txn", transaction(lock, tasks, claim, journal, part, before, claimed_at));
      require(answer.status == 200, "a raw transaction was refused: " + answer.body);
      if (part.begin != part.end) claimed_at = written_index(answer);
      before = part;
    }
  });
  require(raw_tasks(consul, kRawPrefix).empty(), "raw tasks are left");
  return static_cast<double>(count) / seconds;
}

}  // namespace

void measure_journal(Bench& bench) {
  const std::size_t count = bench.sizes().drained;
  const std::map<Claim, std::string> names{{Claim::kCas, "one cas a task"},
                                           {Claim::kJournal, "a journal, each index checked"},
                                           {Claim::kJournalUnchecked, "a journal, unchecked"}};
  std::map<Claim, std::map<std::size_t, std::vector<double>>> rates;
  for (std::size_t run = 0; run < bench.sizes().runs; ++run) {
    bench.tell("claim journal, run " + std::to_string(run + 1));
    for (const std::size_t connections : bench.sizes().connections) {
      for (const auto& [claim, name] : names) {
        rates[claim][connections].push_back(
            bench.on_consul([&](const auto& at) { return rate(at, count, connections, claim); }));
      }
    }
  }
  for (const std::size_t connections : bench.sizes().connections) {
    for (const auto& [claim, name] : names) {
      if (claim == Claim::kCas) continue;
      bench.add({"raw, " + std::to_string(connections) + " connection(s): " + name, "tasks/s",
                 median(rates[claim][connections]), median(rates[Claim::kCas][connections]),
                 names.at(Claim::kCas)});
    }
  }
}

}  // namespace lictor::bench
