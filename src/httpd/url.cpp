#include "httpd/url.h"

#include <charconv>

namespace lictor::httpd {
namespace {

// "+" is a space in a query only. std::nullopt: a "%" without two hexadecimal digits.
std::optional<std::string> unescape(std::string_view text, bool query) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += query && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned char byte = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (error != std::errc{} || digits.size() != 2 || end != digits.data() + 2) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

}  // namespace

std::string Url::get(std::string_view name) const {
  const auto it = query.find(name);
  return it == query.end() ? std::string{} : it->second.front();
}

std::optional<Url> parse_url(std::string_view target) {
  const std::size_t mark = target.find('?');
  auto path = unescape(target.substr(0, mark), false);
  if (!path) return std::nullopt;
  Url url{std::move(*path), {}};
  std::string_view rest = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::size_t end = rest.find_first_of("&;");
    const std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    const auto name = unescape(pair.substr(0, equals), true);
    const auto value = unescape(
        equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1), true);
    if (name && value) url.query[*name].push_back(*value);
  }
  return url;
}

}  // namespace lictor::httpd
