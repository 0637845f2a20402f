// The web page: its files are part of the program (src/admin/page).

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "admin/routes.h"
#include "base/embedded.h"
#include "manual/manual.h"

// LICTOR_PAGE_FOLDER and the dependency on the files come from CMakeLists.txt.
#define LICTOR_FILE(symbol, name) LICTOR_EMBED(page_##symbol, LICTOR_PAGE_FOLDER "/" name)

LICTOR_FILE(index, "index.html")
LICTOR_FILE(style, "style.css")
LICTOR_FILE(icon, "icon.svg")
LICTOR_FILE(theme, "theme.js")
LICTOR_FILE(app, "app.js")
LICTOR_FILE(api, "api.js")
LICTOR_FILE(dom, "dom.js")
LICTOR_FILE(charts, "charts.js")
LICTOR_FILE(overview, "overview.js")
LICTOR_FILE(list, "list.js")
LICTOR_FILE(tasks, "tasks.js")
LICTOR_FILE(task, "task.js")
LICTOR_FILE(schedules, "schedules.js")
LICTOR_FILE(submit, "submit.js")
LICTOR_FILE(openapi, "openapi.json")

namespace lictor::admin {
namespace {

struct File {
  const char* path;
  const char* content_type;
  std::string_view bytes;
};

constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kScript = "text/javascript; charset=utf-8";

std::array<File, 15> files() {
#define LICTOR_BYTES(symbol) LICTOR_EMBEDDED(page_##symbol)
  return {{{"/", kHtml, LICTOR_BYTES(index)},
           {"/style.css", "text/css; charset=utf-8", LICTOR_BYTES(style)},
           {"/icon.svg", "image/svg+xml", LICTOR_BYTES(icon)},
           {"/theme.js", kScript, LICTOR_BYTES(theme)},
           {"/app.js", kScript, LICTOR_BYTES(app)},
           {"/api.js", kScript, LICTOR_BYTES(api)},
           {"/dom.js", kScript, LICTOR_BYTES(dom)},
           {"/charts.js", kScript, LICTOR_BYTES(charts)},
           {"/overview.js", kScript, LICTOR_BYTES(overview)},
           {"/list.js", kScript, LICTOR_BYTES(list)},
           {"/tasks.js", kScript, LICTOR_BYTES(tasks)},
           {"/task.js", kScript, LICTOR_BYTES(task)},
           {"/schedules.js", kScript, LICTOR_BYTES(schedules)},
           {"/submit.js", kScript, LICTOR_BYTES(submit)},
           {"/v1/openapi.json", "application/json", LICTOR_BYTES(openapi)}}};
#undef LICTOR_BYTES
}

}  // namespace

void add_page_routes(Router& router) {
  const auto add = [&](std::string path, const char* content_type, std::string_view text) {
    router.add("GET", std::move(path), [=](const Call&) {
      return Response{200, content_type, std::string{text}, {}};
    });
  };
  for (const File& file : files()) add(file.path, file.content_type, file.bytes);
  add("/manual/", kHtml, manual::index_html());
  for (const manual::Page& page : manual::pages()) {
    add("/manual/" + std::string{page.topic}, kHtml, page.html);
  }
}

}  // namespace lictor::admin
