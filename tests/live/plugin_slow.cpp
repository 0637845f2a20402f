// A plug-in whose start takes longer than a lease.

#include <chrono>
#include <thread>

#include <lictor/plugin.h>

LICTOR_PLUGIN(registry) {
  std::this_thread::sleep_for(std::chrono::seconds{15});
  registry.add("Slow", [](const lictor::Context&) {});
}
