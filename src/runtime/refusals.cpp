#include "runtime/refusals.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/clock.h"
#include "wire/consul.h"

namespace lictor::runtime {
namespace {

// An answer to a request speaks for the other requests about the same subject.
struct Subject {
  std::string_view request;
  std::string_view text;
};
constexpr std::array<Subject, 9> kSubjects{{{"create_session", "holding a session"},
                                            {"renew_session", "holding a session"},
                                            {"watch_leader", "reading the lock"},
                                            {"read_leader", "reading the lock"},
                                            {"acquire_lock", "acquiring the lock"},
                                            {"list_tasks", "listing the tasks"},
                                            {"watch_tasks", "listing the tasks"},
                                            {"watch_control", "reading the key control"},
                                            {"read_members", "reading the members"}}};

// If the token may not read a list, Consul answers 404, as for an empty list. A leader's list is
// never empty: the leader makes a folder there.
bool is_refused(std::string_view request, const http::Response& response) {
  if (response.status == 403) return true;
  if (response.status == 404) return request == "list_tasks" || request == "watch_tasks";
  return response.status >= 400 && response.body.find("Permission denied") != std::string::npos;
}

}  // namespace

void Refusals::on_reply(const std::string& queue, std::string_view request,
                        const http::Response& response, Duration /*took*/) {
  if (response.delivery != http::Delivery::kReplied) return;
  const auto* subject = std::find_if(kSubjects.begin(), kSubjects.end(),
                                     [&](const Subject& each) { return each.request == request; });
  if (subject == kSubjects.end()) return;
  const std::lock_guard lock{mutex_};
  const std::string key = queue + '\n' + std::string{subject->text};
  if (is_refused(request, response)) {
    Refusal& refusal = refused_.try_emplace(key, Refusal{boot_now(), {}, {}}).first->second;
    refusal.last = boot_now();
    refusal.text = "queue " + queue + ": Consul refuses " + std::string{subject->text} + ": " +
                   wire::describe(response);
  } else {
    refused_.erase(key);
  }
}

std::string Refusals::first(Instant now) const {
  const std::lock_guard lock{mutex_};
  for (const auto& [subject, refusal] : refused_) {
    // A refused request is repeated every few seconds. A follower does not ask for a lock that
    // another host holds, so it may have got the right since.
    const bool is_current = now - refusal.last <= std::chrono::seconds{30};
    if (is_current && now - refusal.since >= std::chrono::seconds{1}) return refusal.text;
  }
  return {};
}

}  // namespace lictor::runtime
