#include <lictor/plugin.h>

extern "C" const lictor::PluginDescriptor* lictor_plugin();
extern "C" const lictor::PluginDescriptor* lictor_plugin() {
  static const lictor::PluginDescriptor descriptor = [] {
    lictor::PluginDescriptor made{.build = "libstdc++ 99"};
    return made;
  }();
  return &descriptor;
}
