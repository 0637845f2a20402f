#include "cli/control.h"

#include <pwd.h>
#include <unistd.h>

#include <array>

#include "base/text.h"
#include "base/time_text.h"
#include "wire/json_text.h"

namespace lictor::cli {

using wire::json_quoted;

Result<std::string> with_step_down(std::string_view control, std::string_view id,
                                   std::string_view by, WallTime at) {
  std::string text{'{'};
  if (!control.empty()) {
    const auto members = wire::split_object(control);
    if (!members) {
      return fail(ErrorCode::kInvalid, "the control key holds no JSON object (" +
                                           members.error().message + "); delete or correct it");
    }
    for (const wire::Member& member : *members) {
      if (member.name == "step_down") continue;
      text += text.size() > 1 ? "," : "";
      text += member.name_text;
      text += ':';
      text += member.value_text;
    }
  }
  text += text.size() > 1 ? "," : "";
  return text + R"("step_down":{"id":)" + json_quoted(id) + R"(,"by":)" + json_quoted(by) +
         R"(,"at":)" + json_quoted(format_rfc3339(at)) + "}}";
}

std::string who_asks() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const uid_t uid = ::geteuid();
  const passwd* user = ::getpwuid(uid);
  const std::string name = user != nullptr ? user->pw_name : "uid " + std::to_string(uid);
  return to_utf8(name + '@' + host.data());
}

}  // namespace lictor::cli
