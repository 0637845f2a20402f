#include "core/write.h"

#include <cstdint>
#include <variant>

#include "core/overloaded.h"

namespace lictor::core {
namespace {

// What a stamp and the verb around it add to a record, at most: names, a claim (node, session,
// nonce, time) and the last error, which the wire layer cuts to 2 kB before it escapes it.
constexpr std::size_t kStampBytes = 5'000;

std::size_t base64_size(std::size_t bytes) { return (bytes + 2) / 3 * 4; }
// A key in JSON; \u00XX is the worst that can become of a byte.
std::size_t json_size(const std::string& key) { return key.size() * 6; }

std::size_t operations_of(const Op& op) {
  if (std::holds_alternative<BuryOp>(op)) return 3;  // check-index, cas, delete-cas
  const auto* finish = std::get_if<FinishOp>(&op);
  if (finish == nullptr || (finish->writes.empty() && !finish->done)) return 1;
  return 2 + finish->writes.size() + (finish->done ? 1 : 0);  // as with a dead letter
}

std::size_t bytes_of(const Op& op) {
  const std::size_t key = kVerbBytes + json_size(key_of(op));
  return std::visit(
      Overloaded{
          [&](const RestampOp& o) { return key + base64_size(o.record->size() + kStampBytes); },
          [&](const FinishOp& o) {
            std::size_t bytes = 2 * key;
            for (const KvWrite& write : o.writes) {
              bytes += kVerbBytes + json_size(write.key) + base64_size(write.value.size());
            }
            if (o.done) {
              bytes += key + base64_size(kStampBytes + o.done->result.size() +
                                         (o.done->record ? o.done->record->size() : 0));
            }
            return bytes;
          },
          [&](const BuryOp& o) {
            // What cannot be read goes into the dead letter as a string, in base64 at worst.
            const std::size_t record =
                o.readable ? o.record->size() : base64_size(o.record->size());
            return 3 * key +
                   base64_size(record + kStampBytes + o.error.size() + 2 * o.output_tail.size());
          },
          [&](const MarkOp&) { return key; }, [&](const PruneOp&) { return key; }},
      op);
}

}  // namespace

const std::string& key_of(const Op& op) {
  static const std::string kNone;
  return std::visit(Overloaded{[](const MarkOp&) -> const std::string& { return kNone; },
                               [](const auto& other) -> const std::string& { return other.key; }},
                    op);
}

std::uint64_t expected_index(const Op& op) {
  return std::visit(Overloaded{[](const MarkOp&) { return std::uint64_t{0}; },
                               [](const auto& other) { return other.index; }},
                    op);
}

Cost cost_of(const Op& op) { return {operations_of(op), bytes_of(op)}; }

}  // namespace lictor::core
