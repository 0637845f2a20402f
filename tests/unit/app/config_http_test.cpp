#include <variant>

#include <doctest/doctest.h>

#include "config_text.h"
#include "contains.h"

namespace lictor::app {
namespace {

using unit::contains;

// What is wrong with "http": `value`, without where it stands.
std::string http_error(const std::string& value, Mode mode = Mode::kDaemon) {
  const std::string error = error_of(executor_text("{\"http\": " + value + "}"), mode);
  const std::string start = "lictor.json:2: queues[0].executors.A.http";
  return error.starts_with(start) ? error.substr(start.size()) : error;
}

template <class Kind>
Kind executor_of(const std::string& text, Mode mode = Mode::kDaemon) {
  const Config config = parsed(executor_text(text), mode);
  const auto* kind = std::get_if<Kind>(&config.queues.front().executors.at("A"));
  REQUIRE(kind != nullptr);
  return *kind;
}

}  // namespace

TEST_SUITE_BEGIN("app");

TEST_CASE("an http executor is a URL, or an object with one") {
  CHECK(executor_of<HttpConfig>(R"({"http": "http://127.0.0.1:9000/notify"})").target.url ==
        "http://127.0.0.1:9000/notify");
  const auto http = executor_of<HttpConfig>(
      R"({"http": {"url": "https://host/x", "headers": {"X-A": "b", "Host": "c"},
          "token_file": "/etc/passwd", "ca_file": "/etc/passwd"}, "timeout": "5s"})");
  CHECK(http.target.url == "https://host/x");
  CHECK(http.headers ==
        std::vector<std::pair<std::string, std::string>>{{"X-A", "b"}, {"Host", "c"}});
  CHECK(http.token_file == "/etc/passwd");
  CHECK(http.ca_file == "/etc/passwd");
}

TEST_CASE("a bad http executor is refused without quoting its secrets") {
  const auto with = [](const std::string& rest) { return R"({"url": "http://h/", )" + rest + "}"; };
  const std::pair<std::string, std::string> refused[] = {
      {"7", ": expected a URL, or an object such as {\"url\": "},
      {"{}", ": has no \"url\"; add one such as"},
      {R"({"url": 7})", ".url: expected a URL such as \"http://127.0.0.1:9000/notify\", got the"},
      {R"("ftp://me:s3cret@h/")", ": expected a URL such as"},
      {with(R"("header": {})"), ".header: unknown key; did you mean \"headers\"?"},
      {with(R"("headers": [])"), ".headers: expected an object such as {\"X-Source\": \"lictor\"}"},
      {with(R"("headers": {"X A": "b"})"), ".headers[\"X A\"]: a header's name has letters"},
      {with(R"("headers": {"lictor-Attempt": "b"})"), ".headers.lictor-Attempt: lictor sets this"},
      {with(R"("headers": {"content-length": "b"})"), ".headers.content-length: lictor sets this"},
      {with(R"("headers": {"X-A": "s3cret\r\nX-B: c"})"),
       ".headers.X-A: expected text of one line"},
      {with(R"("headers": {"X-A": "b", "x-a": "c"})"), ".headers.x-a: is written twice"},
      {with(R"("token_file": "/no/such")"), ".token_file: \"/no/such\": No such file or directory"},
      {R"({"url": "http://me:s3cret@h/", "token_file": "/etc/passwd"})",
       ".token_file: the URL or a header already has credentials"}};
  for (const auto& [value, start] : refused) {
    CAPTURE(value);
    const std::string error = http_error(value);
    CAPTURE(error);
    CHECK(error.starts_with(start));
    CHECK_FALSE(contains(error, "s3cret"));
  }
  CHECK(http_error(with(R"("token_file": "/no/such")"), Mode::kClient) == "");
}

TEST_CASE("a plug-in is a file, or an object with a file, and only the daemon checks the file") {
  CHECK(executor_of<PluginConfig>(R"({"plugin": "/no/such.so"})", Mode::kClient).file ==
        "/no/such.so");
  const auto plugin = executor_of<PluginConfig>(
      R"({"plugin": {"file": "/no/such.so", "executor": "Resize"}})", Mode::kClient);
  CHECK(plugin.file == "/no/such.so");
  CHECK(plugin.executor == "Resize");

  const auto error = [](const std::string& value) {
    return error_of(executor_text("{\"plugin\": " + value + "}"));
  };
  const std::string start = "lictor.json:2: queues[0].executors.A.plugin";
  CHECK(error("\"/no/such.so\"").starts_with(start + ": plug-in \"/no/such.so\": No such file"));
  CHECK(error(R"({"file": "/etc/passwd"})")
            .starts_with(start + ".file: plug-in \"/etc/passwd\": expected a shared object"));
  CHECK(error("\"resize.so\"") == start + ": expected an absolute path, got \"resize.so\"");
  CHECK(error(R"({"executor": "x"})").starts_with(start + ": has no \"file\"; expected "));
  CHECK(error("[]").starts_with(start + ": expected an absolute path, or an object such as "));
}

TEST_SUITE_END();

}  // namespace lictor::app
