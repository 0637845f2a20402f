// The configuration: each refusal names a line of the file.

#include <string>

#include "app/config.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lictor;
  const std::string_view text = fuzz::text_of(data, size);
  for (const app::Mode mode : {app::Mode::kDaemon, app::Mode::kClient, app::Mode::kEmbedded}) {
    app::LoadRequest request;
    request.mode = mode;
    const auto config = app::parse_config(text, "lictor.json", request);
    if (!config) {
      FUZZ_REQUIRE(config.error().code == ErrorCode::kInvalid);
      FUZZ_REQUIRE(config.error().message.starts_with("lictor.json:"));
      FUZZ_REQUIRE(config.error().message.find('\n') == std::string::npos);
      continue;
    }
    FUZZ_REQUIRE(!config->queues.empty());
    for (const app::QueueConfig& queue : config->queues) {
      FUZZ_REQUIRE(queue.layout.tasks_prefix.ends_with('/'));
      FUZZ_REQUIRE(queue.options.session_ttl > Duration::zero());
      FUZZ_REQUIRE(queue.options.concurrency > 0);
    }
  }
  return 0;
}
