#include "manual/manual.h"

#include <array>
#include <cstddef>

// LICTOR_MANUAL_FOLDER and topics.inc, which has LICTOR_TOPIC(topic) for each, come from
// CMakeLists.txt. The files are read by the assembler.
#define LICTOR_FILE(symbol, name)                                             \
  asm(".pushsection .rodata\n"                                                \
      ".global lictor_manual_" #symbol "\n.global lictor_manual_" #symbol     \
      "_end\n"                                                                \
      "lictor_manual_" #symbol ":\n.incbin \"" LICTOR_MANUAL_FOLDER "/" name  \
      "\"\n"                                                                  \
      "lictor_manual_" #symbol "_end:\n.byte 0\n.popsection\n");              \
  extern "C" {                                                                \
  extern const char lictor_manual_##symbol[], lictor_manual_##symbol##_end[]; \
  }
#define LICTOR_TOPIC(topic)                \
  LICTOR_FILE(topic##_text, #topic ".txt") \
  LICTOR_FILE(topic##_html, #topic ".html")
#include "topics.inc"
LICTOR_FILE(index, "index.html")
#undef LICTOR_TOPIC

namespace lictor::manual {
namespace {

std::string_view bytes(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::span<const Page> pages() {
#define LICTOR_TOPIC(topic)                                                           \
  Page{#topic, bytes(lictor_manual_##topic##_text, lictor_manual_##topic##_text_end), \
       bytes(lictor_manual_##topic##_html, lictor_manual_##topic##_html_end)},
  static const auto all = std::to_array<Page>({
#include "topics.inc"
  });
#undef LICTOR_TOPIC
  return all;
}

std::string_view index_html() { return bytes(lictor_manual_index, lictor_manual_index_end); }

}  // namespace lictor::manual
