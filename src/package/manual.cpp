#include "package/manual.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>

#include "base/printable.h"
#include "package/command_tree.h"

namespace lictor::package {
namespace {

constexpr std::size_t kWidth = 79;
constexpr std::size_t kManWidth = 72;  // man indents by 7

std::string literal_of(cmark_node* node) {
  const char* text = cmark_node_get_literal(node);
  return text != nullptr ? text : "";
}

bool is(cmark_node* node, const char* type) {
  return std::strcmp(cmark_node_get_type_string(node), type) == 0;
}

// "concepts" of "concepts.md"; empty: the link leads elsewhere.
std::string topic_of(cmark_node* link) {
  std::string url = cmark_node_get_url(link);
  if (!url.ends_with(".md") || url.find('/') != std::string::npos) return {};
  return url.substr(0, url.size() - 3);
}

// What stands between words: plain, or as roff.
struct Inline {
  bool roff = false;

  [[nodiscard]] std::string plain(const std::string& text) const {
    return roff ? roff_escaped(text) : text;
  }
  [[nodiscard]] std::string bold(const std::string& text) const {
    return roff ? "\\fB" + text + "\\fR" : text;
  }

  [[nodiscard]] std::string link(cmark_node* node) const {
    const std::string label = of(node);
    const std::string topic = topic_of(node);
    if (topic.empty()) {
      const std::string url = cmark_node_get_url(node);
      return plain(url) == label ? label : label + " (" + plain(url) + ")";
    }
    if (!roff) return label == topic ? "\"lictor help " + topic + '"' : label;
    return bold(roff_escaped(man_name(topic))) + '(' + man_section(topic) + ')';
  }

  // Of all that is within `node`.
  [[nodiscard]] std::string of(cmark_node* node) const {
    std::string text;
    for (cmark_node* child = cmark_node_first_child(node); child != nullptr;
         child = cmark_node_next(child)) {
      switch (cmark_node_get_type(child)) {
        case CMARK_NODE_TEXT:
          text += plain(literal_of(child));
          break;
        case CMARK_NODE_SOFTBREAK:
        case CMARK_NODE_LINEBREAK:
          text += ' ';
          break;
        case CMARK_NODE_CODE:
          text += bold(plain(literal_of(child)));
          break;
        case CMARK_NODE_LINK:
          text += link(child);
          break;
        case CMARK_NODE_IMAGE:
          break;
        default:
          text += of(child);
      }
    }
    return text;
  }
};

std::vector<std::vector<std::string>> rows_of(cmark_node* table) {
  std::vector<std::vector<std::string>> rows;
  for (cmark_node* row = cmark_node_first_child(table); row != nullptr;
       row = cmark_node_next(row)) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (cmark_node* cell = cmark_node_first_child(row); cell != nullptr;
         cell = cmark_node_next(cell)) {
      cells.push_back(Inline{}.of(cell));
    }
  }
  return rows;
}

[[noreturn]] void refuse(const char* type) {
  throw std::runtime_error{std::string{"a page of the manual has no way to show a "} + type};
}

// Lines indented by `indent`, the first one by `mark`, which is as long.
std::string block(const std::string& text, const std::string& mark, const std::string& indent) {
  std::string out;
  for (const std::string& line : wrapped(text, kWidth - indent.size())) {
    out += (out.empty() ? mark : indent) + line + '\n';
  }
  return out;
}

std::string mark_of(cmark_node* list, int& number) {
  return cmark_node_get_list_type(list) == CMARK_ORDERED_LIST ? std::to_string(number++) + ". "
                                                              : "- ";
}

std::string text_of_blocks(cmark_node* node) {
  std::string text;
  const auto paragraph = [&](const std::string& lines) {
    text += (text.empty() ? "" : "\n") + lines;
  };
  for (; node != nullptr; node = cmark_node_next(node)) {
    if (is(node, "heading")) {
      const std::string title = Inline{}.of(node);
      const bool inner = cmark_node_get_heading_level(node) > 2;
      paragraph(title + '\n' + std::string(columns(title), inner ? '-' : '=') + '\n');
    } else if (is(node, "paragraph")) {
      paragraph(block(Inline{}.of(node), "", ""));
    } else if (is(node, "code_block")) {
      std::string lines;
      std::istringstream code{literal_of(node)};
      for (std::string line; std::getline(code, line);) {
        lines += (line.empty() ? "" : "    ") + line + '\n';
      }
      paragraph(lines);
    } else if (is(node, "list")) {
      std::string items;
      int number = cmark_node_get_list_start(node);
      for (cmark_node* item = cmark_node_first_child(node); item != nullptr;
           item = cmark_node_next(item)) {
        const std::string mark = mark_of(node, number);
        items +=
            block(Inline{}.of(cmark_node_first_child(item)), mark, std::string(mark.size(), ' '));
      }
      paragraph(items);
    } else if (is(node, "table")) {
      paragraph(text_table(rows_of(node), kWidth));
    } else {
      refuse(cmark_node_get_type_string(node));
    }
  }
  return text;
}

std::string literal_roff(const std::string& text) {
  std::string page = ".PP\n.nf\n";
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) page += roff_escaped(line) + '\n';
  return page + ".fi\n";
}

// A line that begins with a request's character is text all the same.
std::string roff_line(std::string text) {
  if (text.starts_with('.') || text.starts_with('\'')) text.insert(0, "\\&");
  return text + '\n';
}

std::string man_of_blocks(cmark_node* node) {
  std::string page;
  for (; node != nullptr; node = cmark_node_next(node)) {
    if (is(node, "heading")) {
      const bool inner = cmark_node_get_heading_level(node) > 2;
      page += (inner ? ".SS " : ".SH ") + Inline{true}.of(node) + '\n';
    } else if (is(node, "paragraph")) {
      page += ".PP\n" + roff_line(Inline{true}.of(node));
    } else if (is(node, "code_block")) {
      page += ".RS 4\n" + literal_roff(literal_of(node)) + ".RE\n";
    } else if (is(node, "list")) {
      int number = cmark_node_get_list_start(node);
      for (cmark_node* item = cmark_node_first_child(node); item != nullptr;
           item = cmark_node_next(item)) {
        const std::string mark = mark_of(node, number);
        page += ".IP " + (mark == "- " ? "\\(bu 2" : mark + '4') + '\n' +
                roff_line(Inline{true}.of(cmark_node_first_child(item)));
      }
    } else if (is(node, "table")) {
      page += literal_roff(text_table(rows_of(node), kManWidth));
    } else {
      refuse(cmark_node_get_type_string(node));
    }
  }
  return page;
}

std::string html_escaped(std::string text) {
  return replaced(replaced(std::move(text), "&", "&amp;"), "<", "&lt;");
}

std::string html_page(const std::string& title, const std::string& links, const std::string& body) {
  return R"(<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>)" +
         html_escaped(title) + R"( - lictor</title>
    <link rel="icon" href="../icon.svg" type="image/svg+xml" />
    <link rel="stylesheet" href="../style.css" />
    <script src="../theme.js"></script>
  </head>
  <body>
    <a class="skip" href="#main">Skip to content</a>
    <header class="bar">
      <a class="brand" href="../#/" aria-label="lictor, overview">
        <img src="../icon.svg" alt="" width="22" height="22" />lictor</a>
      <button type="button" class="topics-open" popovertarget="topics">Topics</button>
      <nav id="topics" class="topics" popover aria-label="Manual">)" +
         links + R"(</nav>
    </header>
    <main id="main" tabindex="-1"><article class="card manual">
)" + body +
         R"(</article></main>
  </body>
</html>
)";
}

std::string links_to(const std::vector<std::string>& topics, const std::string& here) {
  std::string links;
  for (const std::string& topic : topics) {
    links += "<a href=\"" + topic + '"' + (topic == here ? " aria-current=\"page\"" : "") + '>' +
             topic + "</a>";
  }
  return links;
}

// Links between pages lead to their addresses on the admin API.
void lead_to_face(cmark_node* root) {
  cmark_iter* iter = cmark_iter_new(root);
  while (cmark_iter_next(iter) != CMARK_EVENT_DONE) {
    cmark_node* node = cmark_iter_get_node(iter);
    if (cmark_node_get_type(node) != CMARK_NODE_LINK) continue;
    if (const std::string topic = topic_of(node); !topic.empty()) {
      cmark_node_set_url(node, topic.c_str());
    }
  }
  cmark_iter_free(iter);
}

// "limits.core, limits.memory" is the place "limits.core" of its page.
std::string place_of(const std::string& heading) {
  std::string place;
  for (const char c : heading.substr(0, heading.find(','))) {
    const bool upper = c >= 'A' && c <= 'Z';
    place += upper ? static_cast<char>(c - 'A' + 'a') : c == ' ' ? '-' : c;
  }
  return replaced(std::move(place), "\"", "");
}

// Gives each heading a place to link to, and returns links to those of the second level.
std::string add_places(cmark_node* root) {
  std::string links;
  std::set<std::string> taken;
  for (cmark_node* node = cmark_node_first_child(root); node != nullptr;
       node = cmark_node_next(node)) {
    if (cmark_node_get_type(node) != CMARK_NODE_HEADING) continue;
    const std::string title = Inline{}.of(node);
    std::string place = html_escaped(place_of(title));
    while (!taken.insert(place).second) place += '-';
    if (cmark_node_get_heading_level(node) == 2) {
      links += "<li><a href=\"#" + place + "\">" + html_escaped(title) + "</a></li>\n";
    }
    cmark_node* anchor = cmark_node_new(CMARK_NODE_CUSTOM_INLINE);
    cmark_node_set_on_enter(anchor, ("<span id=\"" + place + "\">").c_str());
    cmark_node_set_on_exit(anchor, "</span>");
    cmark_node_prepend_child(node, anchor);
  }
  return "<nav class=\"contents\" aria-label=\"On this page\"><ul>\n" + links + "</ul></nav>\n";
}

cmark_parser* new_parser() {
  cmark_gfm_core_extensions_ensure_registered();
  cmark_parser* parser = cmark_parser_new(CMARK_OPT_DEFAULT);
  for (const char* name : {"table", "autolink"}) {
    cmark_parser_attach_syntax_extension(parser, cmark_find_syntax_extension(name));
  }
  return parser;
}

}  // namespace

void ManualPage::Freed::operator()(cmark_node* node) const { cmark_node_free(node); }

ManualPage::ManualPage(std::string topic, const std::string& markdown) : topic_(std::move(topic)) {
  cmark_parser* parser = new_parser();
  cmark_parser_feed(parser, markdown.data(), markdown.size());
  document_.reset(cmark_parser_finish(parser));
  cmark_parser_free(parser);
  cmark_node* heading = cmark_node_first_child(document_.get());
  cmark_node* line = heading != nullptr ? cmark_node_next(heading) : nullptr;
  if (line == nullptr || !is(heading, "heading") || !is(line, "paragraph")) {
    throw std::runtime_error{topic_ +
                             ".md: expected a heading, then a line on what the page holds"};
  }
  title_ = Inline{}.of(heading);
  summary_ = Inline{}.of(line);
}

std::string ManualPage::text() const {
  cmark_node* body = cmark_node_next(cmark_node_next(cmark_node_first_child(document_.get())));
  return topic_ + " - " + summary_ + "\n\n" + text_of_blocks(body);
}

std::string ManualPage::man() const {
  cmark_node* body = cmark_node_next(cmark_node_next(cmark_node_first_child(document_.get())));
  const std::string name = man_name(topic_);
  std::string upper = name;
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  std::string page = ".TH " + roff_escaped(upper) + ' ' + man_section(topic_) + R"( "" "lictor )" +
                     LICTOR_VERSION + R"(" "The manual of lictor")" + "\n.nh\n.ad l\n.SH NAME\n" +
                     roff_escaped(name) + " \\- " + roff_escaped(summary_) + '\n';
  if (body != nullptr && !is(body, "heading")) page += ".SH DESCRIPTION\n";
  return page + man_of_blocks(body) + ".SH SEE ALSO\n.BR lictor (1),\n.BR lictor\\-concepts (7)\n";
}

std::string ManualPage::html(const std::vector<std::string>& topics) {
  lead_to_face(document_.get());
  const std::string contents = add_places(document_.get());
  cmark_mem* memory = cmark_get_default_mem_allocator();
  cmark_llist* extensions =
      cmark_llist_append(memory, nullptr, cmark_find_syntax_extension("table"));
  char* rendered = cmark_render_html(document_.get(), CMARK_OPT_DEFAULT, extensions);
  cmark_llist_free(memory, extensions);
  std::string body = rendered;
  memory->free(rendered);
  // After the line that says what the page holds.
  const std::string end = "</p>\n";
  body.insert(body.find(end) + end.size(), contents);
  return html_page(title_, links_to(topics, topic_), body);
}

std::string man_name(const std::string& topic) {
  return topic == "configuration" ? "lictor.json" : "lictor-" + topic;
}

char man_section(const std::string& topic) { return topic == "configuration" ? '5' : '7'; }

std::string manual_index(const std::vector<ManualPage>& pages) {
  std::string body = "<h1>The manual</h1>\n<ul>\n";
  std::vector<std::string> topics;
  for (const ManualPage& page : pages) {
    topics.push_back(page.topic());
    body += "<li><a href=\"" + page.topic() + "\">" + html_escaped(page.title()) +
            "</a>: " + html_escaped(page.summary()) + "</li>\n";
  }
  return html_page("Manual", links_to(topics, ""), body + "</ul>\n");
}

void check_forms(const std::string& markdown, const std::vector<app::ObjectForm>& forms) {
  const std::string page = "configuration.md: ";
  std::map<std::string, app::KeyForm> keys;  // of the object that the last heading named
  std::set<std::string> objects;
  std::string object;
  const auto end_of_object = [&] {
    if (keys.empty()) return;
    throw std::runtime_error{page + object + ": no heading for " + keys.begin()->first};
  };
  std::string fault;   // the first form that is not as expected
  std::size_t at = 0;  // of the next line
  const auto next_line = [&] {
    const std::size_t end = std::min(markdown.find('\n', at), markdown.size());
    std::string line = markdown.substr(at, end - at);
    at = std::min(end + 1, markdown.size());
    return line;
  };
  while (at < markdown.size()) {
    const std::string line = next_line();
    if (line.starts_with("## ")) {
      end_of_object();
      object = line.substr(3);
      for (const app::ObjectForm& form : forms) {
        if (form.name != object) continue;
        objects.insert(object);
        for (const app::KeyForm& key : form.keys) keys.emplace(key.key, key);
      }
    }
    if (!line.starts_with("### ")) continue;
    const bool several = line.find(',') != std::string::npos;
    std::istringstream names{line.substr(4)};
    std::string expected{'\n'};
    for (std::string name; std::getline(names >> std::ws, name, ',');) {
      const auto found = keys.find(name);
      if (found == keys.end()) {
        throw std::runtime_error{page + object + ": there is no key " + name +
                                 ", or it is told twice"};
      }
      const app::KeyForm key = std::move(found->second);
      keys.erase(found);
      const bool worded = key.otherwise == "the queue's";
      expected +=
          (several ? "- `" + name + "`: " : "Form: ") + key.form + ". " +
          (key.otherwise.empty()
               ? ""
               : "Default: " + (worded ? key.otherwise : '`' + key.otherwise + '`') + ". ") +
          (key.reloads ? "A reload takes over a change.\n" : "A change takes a restart.\n");
    }
    if (fault.empty() && markdown.compare(at, expected.size() + 1, expected + '\n') != 0) {
      fault = page + "below \"" + line + "\" expected, between blank lines:" + expected;
    }
  }
  end_of_object();
  if (objects.size() != forms.size()) {
    throw std::runtime_error{page + "an object of the configuration has no section"};
  }
  if (!fault.empty()) throw std::runtime_error{fault};
}

}  // namespace lictor::package
