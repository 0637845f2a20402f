#include "cli/admin_client.h"

#include <utility>

#include "base/text.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;

ErrorCode code_of(int status) {
  return status == 404   ? ErrorCode::kNotFound
         : status == 403 ? ErrorCode::kPermissionDenied
                         : ErrorCode::kFailed;
}

}  // namespace

Result<AdminClient> AdminClient::open(std::vector<std::string> addresses,
                                      std::chrono::milliseconds limit) {
  net::Options options;
  options.addresses = std::move(addresses);
  options.server = "a lictor daemon";
  auto transport = net::Transport::open(std::move(options));
  if (!transport) return tl::unexpected(std::move(transport.error()));
  return AdminClient{std::move(*transport), limit};
}

Result<std::string> AdminClient::get(std::string target, std::chrono::seconds wait) {
  http::Request request;
  request.target = std::move(target);
  request.timeout = limit_ + wait;
  request.long_poll = wait > 0s;
  http::Response response = transport_->perform(std::move(request));
  if (response.delivery != http::Delivery::kReplied) {
    return fail(ErrorCode::kUnavailable, response.error);
  }
  if (response.status == 200) return std::move(response.body);
  return fail(code_of(response.status), response.endpoint + " answered " +
                                            std::to_string(response.status) + " (" +
                                            excerpt(response.body, 200) + ")");
}

}  // namespace lictor::cli
