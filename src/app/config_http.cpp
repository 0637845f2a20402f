#include "app/config_http.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/errno_text.h"
#include "base/text.h"
#include "exec/http_post.h"

namespace lictor::app {
namespace {

// What HTTP itself lives on.
constexpr std::array<std::string_view, 5> kOwnHeaders{"Connection", "Content-Length", "Expect",
                                                      "Transfer-Encoding", "Upgrade"};

// RFC 9110, 5.6.2.
bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
  });
}

Result<void> read_header(const Place& place, HttpConfig& target) {
  const std::string& name = place.value().key;
  if (!is_token(name)) {
    return place.refuse("a header's name has letters, digits and \"-\", no space and no \":\"");
  }
  const bool is_ours = name.size() >= 7 && equal_but_for_case(name.substr(0, 7), "lictor-");
  if (is_ours || std::any_of(kOwnHeaders.begin(), kOwnHeaders.end(),
                             [&](std::string_view own) { return equal_but_for_case(name, own); })) {
    return place.refuse("lictor sets this header itself; remove it");
  }
  for (const auto& [known, value] : target.headers) {
    if (equal_but_for_case(known, name))
      return place.refuse("is written twice; remove one of the two");
  }
  const JsonValue& value = place.value();
  const bool fits = value.kind == JsonKind::kString &&
                    std::none_of(value.text.begin(), value.text.end(), [](char c) {
                      return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
                    });
  // Not quoted: it may be a secret.
  if (!fits) return place.refuse("expected text of one line");
  target.headers[name] = value.text;
  return {};
}

Reader headers(HttpConfig& target) {
  return [&target](const Place& place) -> Result<void> {
    if (place.value().kind != JsonKind::kObject) {
      return place.expected(R"(an object such as {"X-Source": "lictor"})");
    }
    for (const JsonValue& item : place.value().items) {
      if (auto read = read_header(place.member(item), target); !read) return read;
    }
    return {};
  };
}

Reader url(std::string& target) {
  return [&target](const Place& place) -> Result<void> {
    const std::string what = R"(a URL such as "http://127.0.0.1:9000/notify")";
    if (place.value().kind != JsonKind::kString) return place.expected(what);
    auto parsed = exec::parse_http_target(place.value().text);
    if (!parsed) return place.refuse(parsed.error().message);
    target = std::move(parsed->url);
    return {};
  };
}

Reader readable_file(std::string& target, Mode mode) {
  return [&target, mode](const Place& place) -> Result<void> {
    if (auto read = absolute_path(target)(place); !read || mode == Mode::kClient) return read;
    if (::faccessat(AT_FDCWD, target.c_str(), R_OK, AT_EACCESS) != 0) {
      return place.refuse('"' + excerpt(target, 200) + "\": " + errno_text() +
                          "; correct the path or the file's rights");
    }
    return {};
  };
}

}  // namespace

Reader http(HttpConfig& target, Mode mode) {
  return [&target, mode](const Place& place) -> Result<void> {
    if (place.value().kind == JsonKind::kString) return url(target.url)(place);
    if (place.value().kind != JsonKind::kObject) {
      return place.expected(
          R"(a URL, or an object such as {"url": "http://127.0.0.1:9000/notify"})");
    }
    auto read = read_settings(place, {{"url", url(target.url)},
                                      {"headers", headers(target)},
                                      {"token_file", readable_file(target.token_file, mode)},
                                      {"ca_file", readable_file(target.ca_file, mode)}});
    if (!read) return read;
    if (target.url.empty()) {
      return place.refuse(R"(has no "url"; add one such as "http://127.0.0.1:9000/notify")");
    }
    const bool own_authorization =
        exec::parse_http_target(target.url)->has_user ||
        std::any_of(target.headers.begin(), target.headers.end(), [](const auto& header) {
          return equal_but_for_case(header.first, "Authorization");
        });
    if (!target.token_file.empty() && own_authorization) {
      return place.member("token_file")
          .refuse("the URL or a header says already who asks; remove one of the two");
    }
    return {};
  };
}

}  // namespace lictor::app
