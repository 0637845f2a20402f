#include "core/requests.h"

namespace lictor::core {

void cancel(RequestId& request, Effects& out) {
  if (request) out.emplace_back(CancelRequest{std::exchange(request, {})});
}

void StoreTrouble::tell(const std::string& what, const std::string& error, Effects& out) {
  if (std::exchange(told_, true)) return;
  out.emplace_back(Fact{Fact::Kind::kStoreTrouble, {}, what + ": " + error});
}

}  // namespace lictor::core
