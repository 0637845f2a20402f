#pragma once

/// CMakeLists.txt takes the project's version from here.
#define LICTOR_VERSION "0.1.0"
