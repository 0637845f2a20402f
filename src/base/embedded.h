#pragma once

#include <cstddef>
#include <string_view>

/// Makes the file at `path`, a text literal, part of the program: the assembler reads it. At
/// namespace scope, once for each `symbol`. The build must list the file as a dependency.
#define LICTOR_EMBED(symbol, path)                                        \
  asm(".pushsection .rodata\n"                                            \
      ".global lictor_file_" #symbol "\n.global lictor_file_" #symbol     \
      "_end\n"                                                            \
      "lictor_file_" #symbol ":\n.incbin \"" path                         \
      "\"\n"                                                              \
      "lictor_file_" #symbol "_end:\n.byte 0\n.popsection\n");            \
  extern "C" {                                                            \
  extern const char lictor_file_##symbol[], lictor_file_##symbol##_end[]; \
  }
/// The file's bytes; a zero byte follows them.
#define LICTOR_EMBEDDED(symbol)                                                     \
  std::string_view {                                                                \
    lictor_file_##symbol,                                                           \
        static_cast<std::size_t>(lictor_file_##symbol##_end - lictor_file_##symbol) \
  }
