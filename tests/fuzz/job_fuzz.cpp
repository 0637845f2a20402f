// A job's input and output: the environment made of its record, and the files LICTOR_COMMIT and
// LICTOR_RESULT that it may write.

#include <algorithm>
#include <memory>
#include <string>

#include "base/base64.h"
#include "base/json_text.h"
#include "base/text.h"
#include "exec/environment.h"
#include "fuzz.h"
#include "wire/commit.h"

namespace lictor::fuzz {
namespace {

// A record sets variables LICTOR_PARA_<name> and no others.
void check_environment(const std::string& text) {
  exec::Attempt attempt;
  const auto before = exec::job_environment({{"PATH", "/bin"}}, {}, attempt, std::nullopt);
  attempt.record = std::make_shared<const std::string>(text);
  for (const std::string& variable :
       exec::job_environment({{"PATH", "/bin"}}, {}, attempt, std::nullopt)) {
    FUZZ_REQUIRE(variable.find('\0') == std::string::npos);
    if (std::find(before.begin(), before.end(), variable) != before.end()) continue;
    FUZZ_REQUIRE(variable.starts_with("LICTOR_PARA_"));
    const std::size_t equals = variable.find('=');
    FUZZ_REQUIRE(equals != std::string::npos);
    FUZZ_REQUIRE(is_word(variable.substr(0, equals), "_"));
  }
}

const wire::Reserved& reserved() {
  static const wire::Reserved value{
      {wire::Layout{"tasks/", "lead", "dead/", "done/", "control", "members/", "schedules/"}},
      "lictor/"};
  return value;
}

void check_commit(const std::string& text) {
  const std::string own = "tasks/own";
  const auto writes = wire::read_commit(text, reserved(), own);
  if (!writes) return FUZZ_REQUIRE(!writes.error().message.empty());
  std::string written{'['};
  for (const core::KvWrite& write : *writes) {
    FUZZ_REQUIRE(!write.key.empty() && write.key != own && write.key != "lead");
    FUZZ_REQUIRE(!write.key.starts_with("dead/") && !write.key.starts_with("lictor/q/dead/"));
    written += written.size() > 1 ? ",{" : "{";
    written += "\"key\":" + json_quoted(write.key);
    written += write.erase ? ",\"delete\":true"
                           : ",\"value_base64\":\"" + base64_encode(write.value) + '"';
    if (write.cas) written += ",\"cas\":" + std::to_string(*write.cas);
    written += '}';
  }
  const auto again = wire::read_commit(written + "]", reserved(), own);
  FUZZ_REQUIRE(again && *again == *writes);
}

}  // namespace
}  // namespace lictor::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lictor;
  const std::string text{fuzz::text_of(data, size)};
  fuzz::check_environment(text);
  fuzz::check_commit(text);
  const auto result = wire::check_result(text);
  // A result that passes is put into the history as it is.
  if (result) FUZZ_REQUIRE(split_object("{\"result\":" + text + "}"));
  return 0;
}
