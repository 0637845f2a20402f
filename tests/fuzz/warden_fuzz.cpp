// The messages between daemon and warden: only those that encode() makes are read, and unchanged.

#include "exec/warden_protocol.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lictor;
  const std::string_view bytes = fuzz::text_of(data, size);
  const AttemptId head = exec::spawn_head(bytes);
  if (const auto order = exec::decode_order(bytes)) {
    FUZZ_REQUIRE(exec::encode(*order) == bytes);
    if (const auto* spawn = std::get_if<exec::Spawn>(&*order)) FUZZ_REQUIRE(spawn->attempt == head);
  }
  if (const auto report = exec::decode_report(bytes)) {
    FUZZ_REQUIRE(exec::encode(*report) == bytes);
  }
  return 0;
}
