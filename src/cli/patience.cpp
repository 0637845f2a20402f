#include "cli/patience.h"

#include <utility>

#include "base/printable.h"
#include "net/patient_transport.h"

namespace lictor::cli {
namespace {

constexpr Duration kPatience = std::chrono::seconds{3};

}  // namespace

std::unique_ptr<net::Transport> patient(std::unique_ptr<net::Transport> transport,
                                        const std::vector<std::string>& addresses,
                                        const Console& console) {
  std::string where;
  for (const std::string& address : addresses) where += (where.empty() ? "" : ", ") + address;
  // From another thread than what else is printed: whole lines do not mind.
  const std::string line = (console.err_terminal().is_terminal ? "\r\x1b[K" : "") +
                           ("lictor: Consul at " + printable(where)) +
                           " has not answered for 3 s; waiting on\n";
  return std::make_unique<net::PatientTransport>(std::move(transport), kPatience,
                                                 [line] { std::fputs(line.c_str(), stderr); });
}

}  // namespace lictor::cli
