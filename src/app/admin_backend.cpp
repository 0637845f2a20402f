#include "app/admin_backend.h"

#include <future>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "wire/consul.h"

namespace lictor::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 2s;
constexpr auto kConsulPatience = 1500ms;
constexpr auto kConsulAnswerHolds = 1s;

// What `work` returns on the loop's thread. Nothing: not within kPatience, or the loop has ended.
template <class Value>
std::optional<Value> ask(runtime::Loop& loop, std::function<Value()> work) {
  auto promise = std::make_shared<std::promise<Value>>();
  auto answer = promise->get_future();
  const bool taken = loop.post(
      [promise = std::move(promise), work = std::move(work)] { promise->set_value(work()); });
  if (!taken || answer.wait_for(kPatience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace

AdminBackend::AdminBackend(runtime::Loop& loop, net::Transport& transport, ReadStatus read_status,
                           ReadWhy read_why)
    : loop_(loop),
      transport_(transport),
      read_status_(std::move(read_status)),
      read_why_(std::move(read_why)) {}

std::optional<admin::Status> AdminBackend::status() {
  return ask<admin::Status>(loop_, read_status_);
}

std::optional<std::string> AdminBackend::why(const std::string& queue, const std::string& id) {
  return ask<std::optional<std::string>>(loop_, [=, this] { return read_why_(queue, id); })
      .value_or(std::nullopt);
}

std::string AdminBackend::consul_trouble() {
  const std::lock_guard lock{mutex_};
  if (asked_at_ != Instant::min() && boot_now() - asked_at_ < kConsulAnswerHolds) return trouble_;
  http::Request request;
  request.target = "/v1/status/leader";
  request.timeout = kConsulPatience;
  const http::Response response = transport_.perform(std::move(request));
  asked_at_ = boot_now();
  if (response.delivery != http::Delivery::kReplied || response.status != 200) {
    trouble_ = "Consul: " + wire::describe(response);
  } else if (response.body.find_first_not_of("\"\n ") == std::string::npos) {
    trouble_ = "Consul has no leader";
  } else {
    trouble_.clear();
  }
  return trouble_;
}

}  // namespace lictor::app
