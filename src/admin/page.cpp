// The web page: its files are part of the program (src/admin/page).
//
// All of them are public: they are the same in every daemon and hold no data. The page asks the API
// for data, with the token that its reader enters.

#include <string>
#include <string_view>
#include <utility>

#include "admin/routes.h"
#include "base/embedded.h"
#include "manual/manual.h"

// Each file: symbol, file in LICTOR_PAGE_FOLDER (from CMakeLists.txt), path, content type.
#define LICTOR_FILES(X)                                              \
  X(index, "index.html", "/", kHtml)                                 \
  X(style, "style.css", "/style.css", "text/css; charset=utf-8")     \
  X(icon, "icon.svg", "/icon.svg", "image/svg+xml")                  \
  X(theme, "theme.js", "/theme.js", kScript)                         \
  X(app, "app.js", "/app.js", kScript)                               \
  X(api, "api.js", "/api.js", kScript)                               \
  X(dom, "dom.js", "/dom.js", kScript)                               \
  X(charts, "charts.js", "/charts.js", kScript)                      \
  X(hosts, "hosts.js", "/hosts.js", kScript)                         \
  X(overview, "overview.js", "/overview.js", kScript)                \
  X(queues, "queues.js", "/queues.js", kScript)                      \
  X(list, "list.js", "/list.js", kScript)                            \
  X(tasks, "tasks.js", "/tasks.js", kScript)                         \
  X(task, "task.js", "/task.js", kScript)                            \
  X(schedules, "schedules.js", "/schedules.js", kScript)             \
  X(schedule_form, "schedule_form.js", "/schedule_form.js", kScript) \
  X(json, "json.js", "/json.js", kScript)                            \
  X(submit, "submit.js", "/submit.js", kScript)                      \
  X(openapi, "openapi.json", "/v1/openapi.json", "application/json")

#define LICTOR_FILE(symbol, name, path, type) \
  LICTOR_EMBED(page_##symbol, LICTOR_PAGE_FOLDER "/" name)
LICTOR_FILES(LICTOR_FILE)
#undef LICTOR_FILE

namespace lictor::admin {
namespace {

constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kScript = "text/javascript; charset=utf-8";

}  // namespace

void add_page_routes(Router& router) {
  const auto add = [&](std::string path, const char* content_type, std::string_view text) {
    router.add("GET", std::move(path), Access::kPublic, [=](const Call&) {
      return Response{200, content_type, std::string{text}, {}};
    });
  };
#define LICTOR_ROUTE(symbol, name, path, type) add(path, type, LICTOR_EMBEDDED(page_##symbol));
  LICTOR_FILES(LICTOR_ROUTE)
#undef LICTOR_ROUTE
  add("/manual/", kHtml, manual::index_html());
  for (const manual::Page& page : manual::pages()) {
    add("/manual/" + std::string{page.topic}, kHtml, page.html);
  }
}

}  // namespace lictor::admin
