#include <lictor/plugin.h>

LICTOR_PLUGIN(registry) { (void)registry; }
