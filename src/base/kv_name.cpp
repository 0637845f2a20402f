#include "base/kv_name.h"

#include <algorithm>

namespace lictor {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ',' ||
         c == '_' || c == '.' || c == '/' || c == '-';
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

bool fits_path(std::string_view name) {
  return std::all_of(name.begin(), name.end(), is_plain) && !contains(name, "..") &&
         !contains(name, "//") && !contains(name, "/./") && !name.starts_with('/') &&
         !name.starts_with("./") && !name.ends_with("/.") && name != ".";
}

std::string_view part_that_fits_path(std::string_view name) {
  const auto special = std::find_if_not(name.begin(), name.end(), is_plain);
  name = name.substr(0, static_cast<std::size_t>(special - name.begin()));
  while (!fits_path(name)) name.remove_suffix(1);
  return name;
}

bool refuses_name(const http::Response& response) {
  if (response.delivery != http::Delivery::kReplied || response.status == 200) return false;
  return response.status == 301 || response.status == 400 ||
         contains(response.body, "invalid key name") ||
         contains(response.body, "Invalid key in transaction");
}

}  // namespace lictor
