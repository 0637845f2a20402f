#include "exec/http_target.h"

#include <memory>

#include <curl/curl.h>

#include "base/assert.h"

namespace lictor::exec {
namespace {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
  void operator()(char* text) const { curl_free(text); }
};

std::string part(CURLU* url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, 0) != CURLUE_OK) return {};
  const std::unique_ptr<char, FreeUrl> owner{text};
  return text;
}

}  // namespace

Result<HttpTarget> parse_http_target(const std::string& url) {
  const std::unique_ptr<CURLU, FreeUrl> parsed{curl_url()};
  LICTOR_ASSERT(parsed != nullptr);
  const std::string what = "expected a URL such as \"http://127.0.0.1:9000/notify\", got ";
  if (const CURLUcode code = curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0);
      code != CURLUE_OK) {
    return fail(ErrorCode::kInvalid,
                what + "one that cannot be read (" + std::string{curl_url_strerror(code)} + ")");
  }
  const std::string scheme = part(parsed.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") {
    return fail(ErrorCode::kInvalid, what + "the scheme \"" + scheme + "\"; use http or https");
  }
  HttpTarget target{url, {}, !part(parsed.get(), CURLUPART_USER).empty()};
  for (const CURLUPart secret : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS,
                                 CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    curl_url_set(parsed.get(), secret, nullptr, 0);
  }
  target.shown = part(parsed.get(), CURLUPART_URL);
  return target;
}

}  // namespace lictor::exec
