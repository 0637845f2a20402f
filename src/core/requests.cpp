#include "core/requests.h"

#include <algorithm>

namespace lictor::core {

void cancel(RequestId& request, Effects& out) {
  if (request) out.emplace_back(CancelRequest{std::exchange(request, {})});
}

void StoreTrouble::tell(const std::string& what, const std::string& error, Effects& out) {
  constexpr std::size_t kMost = 4;
  std::string kind = error;
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  if (told_.size() >= kMost || std::find(told_.begin(), told_.end(), kind) != told_.end()) return;
  told_.push_back(std::move(kind));
  out.emplace_back(Fact{Fact::Kind::kStoreTrouble, {}, what + ": " + error});
}

}  // namespace lictor::core
