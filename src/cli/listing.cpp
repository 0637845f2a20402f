#include "cli/listing.h"

#include <thread>
#include <utility>

#include "base/json_text.h"
#include "base/time_text.h"

namespace lictor::cli {

using namespace std::chrono_literals;
using nlohmann::json;

Result<json> leader_answer(cluster::LeaderClient& leader, const std::string& target) {
  if (!leader.admin) {
    const auto& [code, why] = leader.admin.error();
    return fail(code, why + (code == ErrorCode::kNotFound ? "; \"lictor leader\" says why" : ""));
  }
  auto body = leader.admin->get(target);
  if (!body) return fail(ErrorCode::kFailed, leader.node + ": " + body.error().message);
  auto answer = parse_json(*body);
  if (!answer || !answer->is_object()) {
    return fail(ErrorCode::kFailed, leader.node + " answered something other than a JSON object");
  }
  return *std::move(answer);
}

std::string duration_text(const json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number_integer()) return {};
  return format_duration(std::chrono::milliseconds{it->get<std::int64_t>()});
}

// An error is shown, and the next round tries again.
Result<int> watch(Console& console, const std::function<Result<int>()>& show) {
  for (;;) {
    if (console.out_terminal().moves) console.print_bytes("\x1b[H\x1b[2J");
    const auto shown = show();
    if (!shown) console.report_error(shown.error().message);  // it may pass
    if (auto handed = console.flush_keep_progress(); !handed) return tl::unexpected(handed.error());
    if (console.reader_gone()) return kDone;
    std::this_thread::sleep_for(2s);
  }
}

}  // namespace lictor::cli
