#include <lictor/plugin.h>

// An executor of a later lictor: only the first fields are where they were.
namespace {
struct Later {
  std::array<char, 8> magic{'l', 'i', 'c', 't', 'o', 'r', '\0', '\0'};
  std::uint32_t abi = 7;
  std::uint32_t size = sizeof(Later);
  const char* lictor_version = "9.1.0";
  const char* build = "whatever";
  double something_else = 1;
};
}  // namespace

extern "C" const void* lictor_plugin();
extern "C" const void* lictor_plugin() {
  static const Later later;
  return &later;
}
