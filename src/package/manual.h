#pragma once

// The manual: a page of Markdown becomes a man page, plain text and a page of the web site.
//
//   src/manual/<topic>.md --cmark-gfm--> a tree --> lictor-<topic>.7, <topic>.txt, <topic>.html
//
// A page begins with a heading and, as a paragraph of its own, one line that says what it holds.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "app/config_parts.h"

struct cmark_node;

namespace lictor::package {

/// A page as a tree. Of Markdown without the two lines at its top: throws std::runtime_error.
class ManualPage {
 public:
  ManualPage(std::string topic, const std::string& markdown);

  [[nodiscard]] const std::string& topic() const { return topic_; }
  [[nodiscard]] const std::string& title() const { return title_; }
  [[nodiscard]] const std::string& summary() const { return summary_; }

  /// As "lictor help TOPIC" prints it, 79 columns wide. The first line names topic and summary.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string man() const;
  /// `topics`: of all pages, for the links at the top. Changes the tree, so it comes last.
  [[nodiscard]] std::string html(const std::vector<std::string>& topics);

 private:
  struct Freed {
    void operator()(cmark_node* node) const;
  };

  std::string topic_, title_, summary_;
  std::unique_ptr<cmark_node, Freed> document_;
};

/// The name of a topic's man page: "lictor-concepts"; of the configuration's "lictor.json".
[[nodiscard]] std::string man_name(const std::string& topic);
/// 7, or 5 for the configuration's.
[[nodiscard]] char man_section(const std::string& topic);

/// The page at "/manual/": all topics.
[[nodiscard]] std::string manual_index(const std::vector<ManualPage>& pages);

/// Holds the page on the configuration against the table by which the program reads the file: a
/// heading "## Queues" names an object, "### timeout, max_attempts" keys of it, and below it stand
/// the form and the default of each. Throws std::runtime_error, which says what is missing, for a
/// key without a heading, a heading without a key, and another form or default.
void check_forms(const std::string& markdown, const std::vector<app::ObjectForm>& forms);

/// A table as lines of at most `width` columns, its first row the heads. Where the columns don't
/// fit beside each other, each row becomes a paragraph.
[[nodiscard]] std::string text_table(const std::vector<std::vector<std::string>>& rows,
                                     std::size_t width);

}  // namespace lictor::package
