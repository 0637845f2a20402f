#include "cli/admin_client.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/text.h"
#include "base/try.h"

namespace lictor::cli {

using namespace std::chrono_literals;

Result<AdminClient> AdminClient::open(std::vector<std::string> addresses,
                                      std::chrono::milliseconds limit, std::string token) {
  net::Options options;
  options.addresses = std::move(addresses);
  options.server = "a lictor daemon";
  LICTOR_TRY(auto transport, net::Transport::open(std::move(options)));
  return AdminClient{std::move(transport), limit, std::move(token)};
}

Result<std::string> AdminClient::get(std::string target, std::chrono::seconds wait) {
  http::Request request;
  request.target = std::move(target);
  request.timeout = limit_ + wait;
  request.long_poll = wait > 0s;
  if (!token_.empty()) request.headers.emplace_back("Authorization", "Bearer " + token_);
  http::Response response = transport_->perform(std::move(request));
  if (response.delivery != http::Delivery::kReplied) {
    const bool connected = response.delivery == http::Delivery::kLost;
    return fail(connected ? ErrorCode::kTimeout : ErrorCode::kUnavailable, response.error);
  }
  if (response.status == 200) return std::move(response.body);
  if (response.status == 401) {
    return fail(ErrorCode::kPermissionDenied,
                response.endpoint +
                    (token_.empty() ? " asks for the admin token"
                                    : " refuses the admin token that was sent") +
                    "; --config must name a file whose admin.token_file holds that daemon's token");
  }
  return fail(response.status == 404   ? ErrorCode::kNotFound
              : response.status == 403 ? ErrorCode::kPermissionDenied
                                       : ErrorCode::kFailed,
              fmt::format("{} answered {} ({})", response.endpoint, response.status,
                          excerpt(response.body, 200)));
}

void ask_each(std::size_t count, const std::function<void(std::size_t)>& ask) {
  constexpr std::size_t kAtOnce = 16;  // a few threads each
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) ask(i);
  };
  std::vector<std::jthread> others;
  while (others.size() + 1 < std::min(count, kAtOnce)) others.emplace_back(work);
  work();
}

}  // namespace lictor::cli
