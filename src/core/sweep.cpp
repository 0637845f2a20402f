#include "core/sweep.h"

#include <algorithm>
#include <utility>

#include "base/kv_name.h"

namespace lictor::core {
namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// The end of the character that begins at `at`.
std::size_t character_end(std::string_view text, std::size_t at) {
  ++at;
  while (at < text.size() && continues_character(text[at])) ++at;
  return at;
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const auto size = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  std::size_t end = size;
  while (end > 0 && end < a.size() && continues_character(a[end])) --end;
  return end;
}

}  // namespace

void Sweep::start() {
  steps_.assign(1, Step{});
  began_at_ = 0;
}

const Sweep::Step& Sweep::step(double keys_in_part) {
  Step& next = steps_.back();
  if (seen_ == 0 && next.count != 0 && static_cast<double>(next.count) <= keys_in_part) {
    next.full = true;
  }
  return next;
}

std::vector<std::string> Sweep::accept(const TasksListed& reply, double keys_in_part) {
  std::vector<std::string> single;
  const Step step = std::move(steps_.back());
  steps_.pop_back();
  if (step.below.empty()) began_at_ = reply.consul_index;
  if (!step.full && reply.consul_index > seen_) {
    const std::size_t count = reply.keys.size();
    if (count != 0 && static_cast<double>(count) <= keys_in_part) {
      steps_.push_back({step.below, true, count});
    } else if (count != 0) {
      split(reply.keys.in_order(), single);
    }
  }
  // Whatever changes after the sweep began is looked for by the next.
  if (steps_.empty()) seen_ = std::max(seen_, began_at_);
  return single;
}

// The first part is read first: in the order of the keys, as the tasks are kept.
void Sweep::split(const std::vector<std::string_view>& keys, std::vector<std::string>& single) {
  const std::size_t common = common_prefix(keys.front(), keys.back());
  const auto others = static_cast<std::ptrdiff_t>(steps_.size());
  for (auto key = keys.begin(); key != keys.end();) {
    if (key->size() == common) {  // the beginning of all the others
      single.emplace_back(*key++);
      continue;
    }
    const std::string_view part = key->substr(0, character_end(*key, common));
    const auto end = std::find_if_not(
        key, keys.end(), [part](std::string_view other) { return other.starts_with(part); });
    if (end - key > 1 && fits_path(part)) {
      steps_.push_back({std::string{part}, false, static_cast<std::size_t>(end - key)});
    } else {
      single.insert(single.end(), key, end);
    }
    key = end;
  }
  std::reverse(steps_.begin() + others, steps_.end());
}

}  // namespace lictor::core
