// The admin face: any bytes on a connection, up to the handlers. Every request is answered, and
// none by a handler that the guard should have kept it from.

#include <fcntl.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>

#include "admin/connection.h"
#include "admin/routes.h"
#include "base/unique_fd.h"
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
  admin::Router router{admin::Guard{{{"our-name"}, [] { return std::string{"secret"}; }}}};
  admin::HttpFace face{router};

  Site() {
    router.add("GET", "/v1/tasks/*/why", [](const Request& request) {
      FUZZ_REQUIRE(!request.wildcard.empty());
      FUZZ_REQUIRE(!request.origin || request.host);  // without one it is no browser
      return Response{200, "text/plain", request.wildcard, {}};
    });
    router.add("POST", "/v1/change", [](const Request& request) {
      FUZZ_REQUIRE(request.trusted_listener || carries_the_token(request.authorization));
      return Response{200, "text/plain", request.body, {}};
    });
    admin::add_log_routes(router, logs);
  }
};

// How the answer to `bytes` begins.
std::string ask(Site& site, std::string_view bytes, bool trusted) {
  std::array<int, 2> ends{};
  FUZZ_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const UniqueFd client{ends[0]};
  const UniqueFd server{ends[1]};
  FUZZ_REQUIRE(fcntl(server.get(), F_SETFL, O_NONBLOCK) == 0);
  FUZZ_REQUIRE(send(client.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) ==
               static_cast<ssize_t>(bytes.size()));
  shutdown(client.get(), SHUT_WR);
  site.face.serve(server.get(), trusted);
  std::array<char, 64> begin{};
  const ssize_t n = recv(client.get(), begin.data(), begin.size(), MSG_DONTWAIT);
  return {begin.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

}  // namespace
}  // namespace lictor::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lictor::fuzz;
  if (size > 100'000) return 0;  // beyond what a socket takes without a reader
  static Site site;
  for (const bool trusted : {true, false}) {
    const std::string answer = ask(site, text_of(data, size), trusted);
    FUZZ_REQUIRE(answer.empty() || answer.starts_with("HTTP/1.1 ") ||
                 answer.starts_with("HTTP/1.0 "));
  }
  return 0;
}
