#include <curl/curl.h>
#include <nlohmann/json.hpp>

#include "app/program.h"
#include "cli/json_output.h"

namespace lictor::app {
namespace {

constexpr std::string_view kConsul = "1.8 or newer, HTTP API v1";

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

Result<int> version(const Program& program) {
  const curl_version_info_data* curl = curl_version_info(CURLVERSION_NOW);
  const std::string tls = curl->ssl_version != nullptr ? curl->ssl_version : "no TLS";
  if (program.json) {
    program.console.print(cli::json_document({{"version", LICTOR_VERSION},
                                              {"compiler", compiler()},
                                              {"libcurl", curl->version},
                                              {"tls", tls},
                                              {"consul", kConsul}}));
  } else {
    program.console.print("lictor " LICTOR_VERSION "\ncompiler  " + compiler() + "\nlibcurl   " +
                          curl->version + " (" + tls + ")\nConsul    " + std::string{kConsul} +
                          '\n');
  }
  return cli::kDone;
}

}  // namespace

void add_version(cli::Commands& to, Program& program) {
  to.add("version", "Show the version", R"(Examples:
  lictor version
  lictor version --json | jq -r .version
)",
         {.alone = [&program] { return version(program); }});
}

}  // namespace lictor::app
