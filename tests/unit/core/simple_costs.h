#pragma once

// Costs as Consul has them, roughly: values in base64, an operation's frame of 100 bytes.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/overloaded.h"
#include "core/commits/op_cost.h"
#include "core/commits/write.h"

namespace lictor::core::test {

class SimpleCosts final : public CostModel {
 public:
  [[nodiscard]] Cost fence(std::uint32_t count, std::size_t partitions) const override {
    const std::size_t operations = partitions + (count == 1 ? 0 : 1);
    return {operations, operations * kFrame};
  }
  [[nodiscard]] Cost cost(const Op& op) const override {
    const std::size_t key = kFrame + key_of(op).size();
    return std::visit(
        Overloaded{
            [&](const RestampOp& o) {
              Cost cost{1, key + value(o.record->size() + kAdded)};
              if (o.rate) cost += {1, kFrame + value(kAdded)};
              return cost;
            },
            [&](const FinishOp& o) {
              if (o.writes.empty() && !o.done) return Cost{1, key};
              Cost cost{2, 2 * key};
              for (const KvWrite& write : o.writes) {
                cost += {1, kFrame + write.key.size() + value(write.value.size())};
              }
              if (o.done) {
                const std::size_t record = o.done->record ? o.done->record->size() : 0;
                cost += {1, key + value(record + o.done->result.size() + kAdded)};
              }
              return cost;
            },
            [&](const BuryOp& o) {
              return Cost{3, 3 * key + value(o.record->size() + o.output_tail.size() + kAdded)};
            },
            [&](const auto&) {
              return Cost{1, key};
            }},
        op);
  }
  [[nodiscard]] std::vector<std::uint64_t> written_keys(const Op& op) const override {
    const std::hash<std::string> hash;
    std::vector<std::uint64_t> keys{hash(key_of(op))};
    if (const auto* finish = std::get_if<FinishOp>(&op)) {
      for (const KvWrite& write : finish->writes) keys.push_back(hash(write.key));
    } else if (const auto* claim = std::get_if<RestampOp>(&op); claim && claim->rate) {
      keys.push_back(hash("rate"));
    } else if (const auto* tick = std::get_if<ScheduleOp>(&op); tick && tick->makes_task) {
      keys.push_back(hash("tasks/" + schedule::tick_id(tick->name, tick->last)));
    }
    if (std::holds_alternative<MarkOp>(op)) keys.clear();
    return keys;
  }
  [[nodiscard]] std::size_t record_limit(std::string_view key,
                                         std::size_t transaction_bytes) const override {
    const std::size_t frame = 4 * kFrame + 3 * key.size();
    const std::size_t most = transaction_bytes < frame ? 0 : (transaction_bytes - frame) / 4 * 3;
    return most < kAdded ? 0 : most - kAdded;
  }
  [[nodiscard]] std::size_t unreadable_size(std::string_view record) const override {
    return (record.size() + 2) / 3 * 4;
  }

 private:
  static constexpr std::size_t kFrame = 100;
  static constexpr std::size_t kAdded = 300;  // to a record, by lictor
  static std::size_t value(std::size_t bytes) { return (bytes + 2) / 3 * 4; }
};

inline std::shared_ptr<const CostModel> simple_costs() { return std::make_shared<SimpleCosts>(); }

inline Cost cost_of(const Commit& commit) {
  const SimpleCosts costs;
  Cost cost = costs.fence(commit.partition_count, commit.partitions.size());
  for (const Op& op : commit.ops) cost += costs.cost(op);
  return cost;
}

}  // namespace lictor::core::test
