// The admin API: any request, up to the handlers. Every request is answered, and none by a handler
// that the guard should have kept it from. (How bytes become a request is libmicrohttpd's.)

#include <strings.h>

#include <memory>
#include <optional>
#include <string>

#include "../unit/admin/fake_backend.h"
#include "admin/routes.h"
#include "fuzz.h"

namespace lictor::fuzz {
namespace {

using admin::Request;
using admin::Response;

// The scheme's name is written in any case (RFC 9110, section 11.1).
bool carries_the_token(const std::optional<std::string>& given) {
  const std::string authorization = given.value_or("");
  return strncasecmp(authorization.c_str(), "bearer ", 7) == 0 &&
         authorization.substr(7) == "secret";
}

struct Site {
  admin::LogStore logs{"/nonexistent", std::make_shared<exec::ActiveLogs>()};
  admin::FakeBackend backend;
  admin::Router router{
      admin::Guard{{{"our-name"}, {"proxy"}, [] { return std::string{"secret"}; }}}};

  Site() {
    router.add("GET", "/v1/tasks/*/why", [](const admin::Call& call) {
      FUZZ_REQUIRE(!call.wildcard.empty());
      // Without a Host it is no browser.
      FUZZ_REQUIRE(!call.request.header("origin") || call.request.header("host"));
      return Response{200, "text/plain", std::string{call.wildcard}, {}};
    });
    router.add("POST", "/v1/change", [](const admin::Call& call) {
      FUZZ_REQUIRE(call.request.trusted_listener ||
                   carries_the_token(call.request.header("authorization")));
      return Response{200, "text/plain", call.request.body, {}};
    });
    admin::add_log_routes(router, backend, logs);
  }
};

// "METHOD target ...", lines of headers, an empty line, the body.
std::optional<Request> parse(std::string_view text) {
  Request request;
  std::string_view line = take_until(text, "\r\n");
  request.method = take_until(line, " ");
  request.target = take_until(line, " ");
  auto url = httpd::parse_url(request.target);
  if (!url) return std::nullopt;
  request.url = std::move(*url);
  while (!(line = take_until(text, "\r\n")).empty()) {
    std::string name{take_until(line, ":")};
    for (char& c : name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    if (line.starts_with(' ')) line.remove_prefix(1);
    request.headers.emplace(std::move(name), line);
  }
  request.body = text;
  return request;
}

}  // namespace
}  // namespace lictor::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lictor::fuzz;
  static Site site;
  auto request = parse(text_of(data, size));
  if (!request) return 0;
  for (const bool trusted : {true, false}) {
    request->trusted_listener = trusted;
    const auto exchange = std::make_shared<lictor::admin::FakeExchange>(*request);
    // Handles the request as the server does: refused before the body is read, or handled.
    if (const auto refused = site.router.refuse(*request)) {
      FUZZ_REQUIRE(refused->status >= 400);
      continue;
    }
    site.router.handle(exchange);
    FUZZ_REQUIRE(exchange->answered && exchange->answered->status >= 200);
  }
  return 0;
}
