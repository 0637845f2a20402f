#include <variant>

#include <doctest/doctest.h>

#include "config_text.h"

namespace lictor::app {
namespace {

// What is wrong with "http": `value`, without where it stands.
std::string http_error(const std::string& value, Mode mode = Mode::kDaemon) {
  const std::string error = error_of(executor_text("{\"http\": " + value + "}"), mode);
  const std::string start = "lictor.json:2: queues[0].executors.A.http";
  return error.starts_with(start) ? error.substr(start.size()) : error;
}

template <class Kind>
Kind executor_of(const std::string& text, Mode mode = Mode::kDaemon) {
  const auto config = parse_config(executor_text(text), "lictor.json", request_for(mode));
  REQUIRE(config);
  const auto* kind = std::get_if<Kind>(&config->queues.front().executors.at("A"));
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
  const std::string url = "\"url\": \"http://h/\"";
  CHECK(http_error("7") ==
        ": expected a URL, or an object such as {\"url\": \"http://127.0.0.1:9000/notify\"}, got "
        "the number 7");
  CHECK(http_error("{}") == ": has no \"url\"; add one such as \"http://127.0.0.1:9000/notify\"");
  CHECK(http_error(R"({"url": 7})") ==
        ".url: expected a URL such as \"http://127.0.0.1:9000/notify\", got the number 7");
  CHECK(http_error(R"("ftp://me:s3cret@h/")") ==
        ": expected a URL such as \"http://127.0.0.1:9000/notify\", got the scheme \"ftp\"; use "
        "http or https");
  CHECK(http_error("{" + url + R"(, "header": {}})") ==
        ".header: unknown key; did you mean \"headers\"?");
  CHECK(http_error("{" + url + R"(, "headers": []})") ==
        ".headers: expected an object such as {\"X-Source\": \"lictor\"}, got an empty array");
  CHECK(http_error("{" + url + R"(, "headers": {"X A": "b"}})")
            .ends_with(": a header's name has letters, digits and \"-\", no space and no \":\""));
  for (const char* own : {"lictor-Attempt", "content-length", "Transfer-Encoding"}) {
    CHECK(http_error("{" + url + R"(, "headers": {")" + own + R"(": "b"}})")
              .ends_with(": lictor sets this header itself; remove it"));
  }
  CHECK(http_error("{" + url + R"(, "headers": {"X-A": "s3cret\r\nX-B: c"}})") ==
        ".headers.X-A: expected text of one line");
  CHECK(http_error("{" + url + R"(, "headers": {"X-A": "b", "x-a": "c"}})") ==
        ".headers.x-a: is written twice; remove one of the two");
  CHECK(http_error("{" + url + R"(, "token_file": "/no/such"})") ==
        ".token_file: \"/no/such\": No such file or directory; correct the path or the file's "
        "rights");
  CHECK(http_error(R"({"url": "http://me:s3cret@h/", "token_file": "/etc/passwd"})") ==
        ".token_file: the URL or a header already has credentials; remove one of the two");
  CHECK(http_error("{" + url + R"(, "token_file": "/no/such"})", Mode::kClient) == "");
  CHECK(error_of(executor_text(R"({"http": "http://h/", "env": {}})")) ==
        "lictor.json:2: queues[0].executors.A.env: is for \"exec\" and \"worker\", this executor "
        "is \"http\"; "
        "remove it");
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
  CHECK(error("\"/no/such.so\"") ==
        start +
            ": plug-in \"/no/such.so\": No such file or directory; install the plug-in or "
            "correct the path");
  CHECK(error(R"({"file": "/etc/passwd"})")
            .starts_with(start + ".file: plug-in \"/etc/passwd\": expected a shared object"));
  CHECK(error("\"resize.so\"") == start + ": expected an absolute path, got \"resize.so\"");
  CHECK(error(R"({"executor": "x"})").starts_with(start + ": has no \"file\"; expected "));
  CHECK(error("[]").starts_with(start + ": expected an absolute path, or an object such as "));
}

TEST_SUITE_END();

}  // namespace lictor::app
