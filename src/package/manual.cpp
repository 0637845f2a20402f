#include "package/manual.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>

namespace lictor::package {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string roff_quotes(std::string text) {
  text = replaced(replaced(std::move(text), "'", "\\(aq"), "~", "\\(ti");
  return replaced(replaced(std::move(text), "^", "\\(ha"), "`", "\\(ga");
}

std::string roff_escaped(std::string text) {
  text = replaced(replaced(std::move(text), "\\", "\\e"), "-", "\\-");
  text = roff_quotes(std::move(text));
  text = replaced(replaced(std::move(text), "µ", "\\(mc"), "×", "\\(mu");
  return text.starts_with('.') ? "\\&" + text : text;
}

namespace {

using Tree = std::unique_ptr<cmark_node, decltype(&cmark_node_free)>;

Tree parsed(const std::string& markdown) {
  cmark_gfm_core_extensions_ensure_registered();
  cmark_parser* parser = cmark_parser_new(CMARK_OPT_DEFAULT);
  for (const char* name : {"table", "autolink"}) {
    cmark_parser_attach_syntax_extension(parser, cmark_find_syntax_extension(name));
  }
  cmark_parser_feed(parser, markdown.data(), markdown.size());
  Tree tree{cmark_parser_finish(parser), cmark_node_free};
  cmark_parser_free(parser);
  return tree;
}

// Takes over the text that cmark rendered.
std::string taken(char* rendered) {
  std::string text = rendered;
  cmark_get_default_mem_allocator()->free(rendered);
  return text;
}

bool is(cmark_node* node, const char* type) {
  return std::strcmp(cmark_node_get_type_string(node), type) == 0;
}

std::vector<cmark_node*> children_of(cmark_node* node) {
  std::vector<cmark_node*> children;
  for (node = cmark_node_first_child(node); node != nullptr; node = cmark_node_next(node)) {
    children.push_back(node);
  }
  return children;
}

// Calls `visit` for each node, inner ones first. It may replace its node.
void each(cmark_node* node, const std::function<void(cmark_node*)>& visit) {
  for (cmark_node* child : children_of(node)) each(child, visit);
  visit(node);
}

// "concepts" of "concepts.md"; empty: the link leads elsewhere.
std::string topic_of(cmark_node* node) {
  const std::string url = is(node, "link") ? cmark_node_get_url(node) : "";
  const bool topic = url.ends_with(".md") && url.find('/') == std::string::npos;
  return topic ? url.substr(0, url.size() - 3) : "";
}

cmark_node* text_node(const std::string& text) {
  cmark_node* node = cmark_node_new(CMARK_NODE_TEXT);
  cmark_node_set_literal(node, text.c_str());
  return node;
}

std::string man_name(const std::string& topic) {
  return topic == "configuration" ? "lictor.json" : "lictor-" + topic;
}
char man_section(const std::string& topic) { return topic == "configuration" ? '5' : '7'; }

cmark_node* line_break() {
  cmark_node* node = cmark_node_new(CMARK_NODE_CUSTOM_INLINE);
  cmark_node_set_on_enter(node, "\n.br\n");
  return node;
}

// cmark leaves tables to tbl, which does not break the lines of cells. So each row becomes an item
// of a list: its first cell, and below it the others, from the third on with their heads.
void list_rows(cmark_node* table) {
  cmark_node* list = cmark_node_new(CMARK_NODE_LIST);
  const std::vector<cmark_node*> rows = children_of(table);
  const std::vector<cmark_node*> heads = children_of(rows.front());
  for (std::size_t i = 1; i < rows.size(); ++i) {
    cmark_node* item = cmark_node_new(CMARK_NODE_ITEM);
    cmark_node* text = cmark_node_new(CMARK_NODE_PARAGRAPH);
    cmark_node_append_child(list, item);
    cmark_node_append_child(item, text);
    const std::vector<cmark_node*> cells = children_of(rows[i]);
    for (std::size_t j = 0; j < cells.size(); ++j) {
      const std::vector<cmark_node*> words = children_of(cells[j]);
      if (j > 0 && words.empty()) continue;
      if (j > 0) cmark_node_append_child(text, line_break());
      if (j > 1) {
        for (cmark_node* word : children_of(heads[j])) {
          cmark_node_append_child(text, text_node(cmark_node_get_literal(word)));
        }
        cmark_node_append_child(text, text_node(": "));
      }
      for (cmark_node* word : words) cmark_node_append_child(text, word);
    }
  }
  cmark_node_replace(table, list);
}

// Adapts a node to man pages: sections are headings of the first level, other pages have a number.
// Returns the node if another replaces it; it must outlive that one, which has its words.
Tree adapt_for_man(cmark_node* node) {
  if (is(node, "heading")) {
    cmark_node_set_heading_level(node, cmark_node_get_heading_level(node) - 1);
  } else if (const std::string topic = topic_of(node); !topic.empty()) {
    cmark_node* strong = cmark_node_new(CMARK_NODE_STRONG);
    cmark_node_replace(node, strong);
    cmark_node_append_child(strong, text_node(man_name(topic)));
    cmark_node_insert_after(strong, text_node(std::string{'('} + man_section(topic) + ')'));
    return {node, cmark_node_free};
  } else if (is(node, "table")) {
    list_rows(node);
    return {node, cmark_node_free};
  }
  return {nullptr, cmark_node_free};
}

std::string html_escaped(std::string text) {
  return replaced(replaced(std::move(text), "&", "&amp;"), "<", "&lt;");
}

// `title` and `body` within the frame, with links to all pages but the one named `here`.
std::string framed(std::string frame, const std::string& title, const std::string& here,
                   const std::vector<ManualPage>& pages, const std::string& body) {
  std::string links;
  for (const ManualPage& page : pages) {
    links += "<a href=\"" + page.topic + '"' +
             (page.topic == here ? " aria-current=\"page\"" : "") + '>' + page.topic + "</a>";
  }
  frame = replaced(replaced(std::move(frame), "@TITLE@", html_escaped(title)), "@LINKS@", links);
  return replaced(std::move(frame), "@BODY@", body);
}

// "limits.core, limits.memory" is the place "limits.core" of its page.
std::string place_of(const std::string& heading) {
  std::string place;
  for (const char c : heading.substr(0, heading.find(','))) {
    place += c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return replaced(std::move(place), "\"", "");
}

// Gives each heading a place to link to, and returns links to those of the second level.
std::string add_places(cmark_node* root) {
  std::string links;
  std::set<std::string> known;
  for (cmark_node* node : children_of(root)) {
    if (!is(node, "heading")) continue;
    std::string title = taken(cmark_render_plaintext(node, CMARK_OPT_DEFAULT, 0));
    title.erase(title.find_last_not_of('\n') + 1);
    std::string place = html_escaped(place_of(title));
    while (!known.insert(place).second) place += '-';
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

// How the page words a key below its heading.
std::string worded(const app::KeyForm& key) {
  const bool quoted = key.default_text != "the queue's";
  const std::string standard = quoted ? '`' + key.default_text + '`' : key.default_text;
  return key.form + ". " + (key.default_text.empty() ? "" : "Default: " + standard + ". ") +
         (key.reloads ? "A reload takes over a change.\n" : "A change takes a restart.\n");
}

}  // namespace

ManualPage manual_page(std::string topic, std::string markdown) {
  const std::size_t line = markdown.find("\n\n") + 2;
  const std::size_t end = markdown.find("\n\n", line);
  if (!markdown.starts_with("# ") || line < 2 || end == std::string::npos) {
    throw std::runtime_error{topic + ".md: expected a heading, then a line on what the page holds"};
  }
  std::string title = markdown.substr(2, line - 4);
  std::string summary = markdown.substr(line, end - line);
  return {std::move(topic), std::move(title), std::move(summary), std::move(markdown)};
}

std::string man_file(const std::string& topic) {
  return man_name(topic) + '.' + man_section(topic);
}

std::string man_of(const ManualPage& page) {
  std::vector<Tree> replaced_nodes;
  const Tree tree = parsed(page.markdown.substr(page.markdown.find("\n\n", page.title.size() + 4)));
  const bool titled = is(cmark_node_first_child(tree.get()), "heading");
  each(tree.get(), [&](cmark_node* node) { replaced_nodes.push_back(adapt_for_man(node)); });
  std::string body = taken(cmark_render_man(tree.get(), CMARK_OPT_DEFAULT, 0));
  // Newer versions of groff know no font C.
  body = replaced(replaced(std::move(body), ".nf\n\\f[C]\n", ".nf\n"), "\n\\f[]\n.fi", "\n.fi");
  body = replaced(replaced(roff_quotes(std::move(body)), "\\f[C]", "\\fB"), "\\f[]", "\\fR");
  std::string name = man_name(page.topic);
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return ".TH " + roff_escaped(upper) + ' ' + man_section(page.topic) + R"( "" "lictor )" +
         LICTOR_VERSION + R"(" "The manual of lictor")" + "\n.nh\n.ad l\n.SH NAME\n" +
         roff_escaped(name) + " \\- " + roff_escaped(page.summary) + '\n' +
         (titled ? "" : ".SH DESCRIPTION\n") + body +
         ".SH SEE ALSO\n.BR lictor (1),\n.BR lictor\\-concepts (7)\n";
}

std::string html_of(const ManualPage& page, const std::string& frame,
                    const std::vector<ManualPage>& pages) {
  const Tree tree = parsed(page.markdown);
  each(tree.get(), [](cmark_node* node) {
    if (const std::string topic = topic_of(node); !topic.empty()) {
      cmark_node_set_url(node, topic.c_str());
    }
  });
  const std::string contents = add_places(tree.get());
  std::string body = taken(cmark_render_html(tree.get(), CMARK_OPT_DEFAULT, nullptr));
  // Inserted after the line that says what the page holds.
  const std::string end = "</p>\n";
  body.insert(body.find(end) + end.size(), contents);
  return framed(frame, page.title, page.topic, pages, body);
}

std::string html_index(const std::string& frame, const std::vector<ManualPage>& pages) {
  std::string body = "<h1>The manual</h1>\n<ul>\n";
  for (const ManualPage& page : pages) {
    body += "<li><a href=\"" + page.topic + "\">" + html_escaped(page.title) +
            "</a>: " + html_escaped(page.summary) + "</li>\n";
  }
  return framed(frame, "Manual", "", pages, body + "</ul>\n");
}

void check_forms(const std::string& markdown, const std::vector<app::ObjectForm>& forms) {
  std::string fault;  // the first form that is not as expected
  for (const app::ObjectForm& object : forms) {
    const std::string place = "configuration.md: " + object.name + ": ";
    const std::size_t begin = markdown.find("\n## " + object.name + '\n');
    if (begin == std::string::npos) throw std::runtime_error{place + "no section"};
    std::map<std::string, std::string> keys;
    for (const app::KeyForm& key : object.keys) keys.emplace(key.key, worded(key));
    const std::string section =
        markdown.substr(begin + 1, markdown.find("\n## ", begin + 1) - begin);
    std::istringstream lines{section};
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("### ")) continue;
      const bool several = line.find(',') != std::string::npos;
      std::istringstream names{line.substr(4)};
      std::string expected{'\n'};
      for (std::string name; std::getline(names >> std::ws, name, ',');) {
        const auto key = keys.extract(name);
        if (key.empty()) {
          throw std::runtime_error{place + "there is no key " + name + ", or it stands twice"};
        }
        expected += (several ? "- `" + name + "`: " : "Form: ") + key.mapped();
      }
      const auto at = std::min(section.size(), static_cast<std::size_t>(lines.tellg()));
      if (fault.empty() && section.compare(at, expected.size() + 1, expected + '\n') != 0) {
        fault = place + "below \"" + line + "\" expected, between blank lines:" + expected;
      }
    }
    if (!keys.empty()) throw std::runtime_error{place + "no heading for " + keys.begin()->first};
  }
  if (!fault.empty()) throw std::runtime_error{fault};
}

}  // namespace lictor::package
