#include "manual/manual.h"

#include <array>

#include "base/embedded.h"

// LICTOR_PAGES, LICTOR_WEB_PAGES and topics.inc, which has LICTOR_TOPIC(topic) for each, come from
// CMakeLists.txt.
#define LICTOR_TOPIC(topic)                                          \
  LICTOR_EMBED(manual_##topic##_text, LICTOR_PAGES "/" #topic ".md") \
  LICTOR_EMBED(manual_##topic##_html, LICTOR_WEB_PAGES "/" #topic ".html")
#include "topics.inc"
LICTOR_EMBED(manual_index, LICTOR_WEB_PAGES "/index.html")
#undef LICTOR_TOPIC

namespace lictor::manual {
std::span<const Page> pages() {
#define LICTOR_TOPIC(topic) \
  Page{#topic, LICTOR_EMBEDDED(manual_##topic##_text), LICTOR_EMBEDDED(manual_##topic##_html)},
  static const auto all = std::to_array<Page>({
#include "topics.inc"
  });
#undef LICTOR_TOPIC
  return all;
}

std::string_view index_html() { return LICTOR_EMBEDDED(manual_index); }

}  // namespace lictor::manual
