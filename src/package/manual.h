#pragma once

// The manual: a page of Markdown becomes a man page and a page of the web site.
//
//   src/manual/<topic>.md   --cmark-gfm--> lictor-<topic>.7, <topic>.html
//   the program's commands  -------------> lictor.1
//
// A page begins with a heading and, as a paragraph of its own, one line that says what it holds.

#include <string>
#include <vector>

#include "app/config_internal.h"

namespace lictor::package {

/// `text` with `from` replaced by `to` wherever it is.
[[nodiscard]] std::string replaced(std::string text, const std::string& from,
                                   const std::string& to);
/// Roff whose quotes, tildes and carets are shown as those of ASCII, fit to be copied.
[[nodiscard]] std::string roff_quotes(std::string text);
/// `text` as roff shows it unchanged, on a line of its own or within one.
[[nodiscard]] std::string roff_escaped(std::string text);

/// The man page `page` with @VERSION@, @OPTIONS@, @COMMANDS@ and @NOTES@ filled in.
[[nodiscard]] std::string man_page(const std::string& page);

struct ManualPage {
  std::string topic, title, summary, markdown;
};

/// The title and line come from the top of the Markdown; without them throws std::runtime_error.
[[nodiscard]] ManualPage manual_page(std::string topic, std::string markdown);

/// "lictor-concepts.7"; of the configuration's "lictor.json.5".
[[nodiscard]] std::string man_file(const std::string& topic);
[[nodiscard]] std::string man_of(const ManualPage& page);

/// `frame`: page.html.in; `pages`: all, for the links at the top.
[[nodiscard]] std::string html_of(const ManualPage& page, const std::string& frame,
                                  const std::vector<ManualPage>& pages);
/// The page at "/manual/": all topics.
[[nodiscard]] std::string html_index(const std::string& frame,
                                     const std::vector<ManualPage>& pages);

/// Holds the page on the configuration against the table by which the program reads the file: a
/// heading "## Queues" names an object, "### timeout, max_attempts" keys of it, and below it stand
/// the form and the default of each. Throws std::runtime_error, which says what is missing, for a
/// key without a heading, a heading without a key, and another form or default.
void check_forms(const std::string& markdown, const std::vector<app::ObjectForm>& forms);

}  // namespace lictor::package
