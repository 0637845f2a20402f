#include "base/kv_name.h"

#include "base/text.h"

namespace lictor {

bool fits_path(std::string_view name) {
  return (name.empty() || is_word(name, ",_./-")) && !contains(name, "..") &&
         !contains(name, "//") && !contains(name, "/./") && !name.starts_with('/') &&
         !name.starts_with("./") && !name.ends_with("/.") && name != ".";
}

std::string_view part_that_fits_path(std::string_view name) {
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
