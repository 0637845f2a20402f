#include <stdexcept>

#include <lictor/plugin.h>

LICTOR_PLUGIN(registry) {
  registry.add("Rotate", [](const lictor::Context&) {});
  throw std::runtime_error{"no licence"};
}
