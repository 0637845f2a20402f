#define DOCTEST_CONFIG_IMPLEMENT  // the next implies it, but not where the header was read before
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
