#include "runtime/membership.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/time_text.h"
#include "runtime/log.h"
#include "wire/consul.h"
#include "wire/layout.h"

namespace lictor::runtime {
namespace {

using http::put;
using nlohmann::json;
using namespace std::chrono_literals;

// Consul ends the session between one and two TTLs after the last renewal; two may be lost.
constexpr Duration kTtl = 30s;
constexpr auto kRenewInterval = 10s;
constexpr auto kFirstBackoff = 1s;
// No longer than the lease's pauses: a daemon that leads again is soon listed again.
constexpr auto kMaxBackoff = 5s;

// Removes digits, since the error of a time-out says how long it took.
std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

}  // namespace

Membership::Membership(Options options, Loop& loop, net::Transport& transport)
    : options_(std::move(options)),
      // No queue has this name. Without the file a restarted daemon is missing from the list for up
      // to two TTLs.
      file_(options_.state_dir, "~member", options_.node, kTtl, {}),
      loop_(loop),
      transport_(transport),
      session_(file_.load().value_or("")) {}

void Membership::send(http::Request request, std::function<void(const http::Response&)> on_reply) {
  ++waiting_;
  transport_.send(std::move(request), [this, &loop = loop_, alive = std::weak_ptr{alive_},
                                       on_reply = std::move(on_reply)](http::Response response) {
    loop.post([this, alive, on_reply, response = std::move(response)] {
      if (alive.expired()) return;  // then `this` is gone, too
      --waiting_;
      on_reply(response);
      step(now_);
    });
  });
}

void Membership::step(Instant now) {
  now_ = now;
  if (held_ && waiting_ == 0 && std::exchange(changed_, false)) next_at_ = Instant::min();
  if (waiting_ != 0 || now < next_at_) return;
  next_at_ = Instant::max();  // until the replies are there
  if (!lost_session_.empty()) return destroy_lost();
  if (session_.empty()) return create();
  http::Request renewal = put("/v1/session/renew/" + wire::query_value(session_));
  renewal.urgent = true;
  send(std::move(renewal), [this](const http::Response& response) { on_renewed(response); });
}

void Membership::create() {
  // No lock-delay: nothing relies on the lock, and a restarted daemon must be listed at once.
  const json session{{"Name", wire::member_session_name(options_.node)},
                     {"TTL", format_duration(kTtl)},
                     {"LockDelay", "0s"},
                     {"Behavior", "delete"},
                     {"NodeChecks", options_.session_checks}};
  send(put("/v1/session/create", session.dump(-1, ' ', false, json::error_handler_t::replace)),
       [this](const http::Response& response) { on_created(response); });
}

void Membership::on_created(const http::Response& response) {
  const json answer = replied(response, 200) ? json::parse(response.body, nullptr, false) : json{};
  const std::string id = text_member(answer, "ID");
  if (id.empty()) {
    report_error("session", "no session for this member's entry; it is not shown among the members",
                 wire::describe(response));
    trouble_ = wire::describe(response);
    return retry();
  }
  report_answered();
  session_ = id;
  file_.save(session_);
  acquire();
}

void Membership::on_renewed(const http::Response& response) {
  if (replied(response, 404)) return lose();
  if (!replied(response, 200)) {
    report_error("session", "this member's session could not be renewed", wire::describe(response));
    // A remembered session may belong to another daemon; a new session serves as well.
    if (!held_ && replied(response, 403)) session_.clear();
    if (!held_) trouble_ = wire::describe(response);
    return retry();
  }
  report_answered();
  acquire();
}

// Runs with each renewal: the entry says when this daemon was last seen, and a client may have
// deleted it. Consul accepts the holder's own acquire.
void Membership::acquire() {
  json value = json::parse(options_.value);
  value["seen"] = format_rfc3339(wall_now());
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  held_ = true;
  changed_ = false;
  trouble_.clear();
  backoff_ = {};
  next_at_ = now_ + kRenewInterval;
  for (const std::string& key : options_.keys) {
    send(put(wire::kv_path(key) + "?acquire=" + wire::query_value(session_), text),
         [this, key](const http::Response& response) { on_acquired(key, response); });
  }
}

void Membership::on_acquired(const std::string& key, const http::Response& response) {
  if (replied(response, 200) && response.body.starts_with("true")) {
    reported_.erase(key);
    return;
  }
  if (replied(response, 200)) {
    return report_error(
        key,
        "this member's entry is held by another session: this node's last one, which ends "
        "within a minute, or another daemon of the same name; give each node a name of "
        "its own",
        key);
  }
  report_error(key, "this member's entry could not be written; it is not shown among the members",
               wire::describe(response));
}

void Membership::lose() {
  if (!session_.empty()) lost_session_ = std::exchange(session_, {});
  held_ = false;
  next_at_ = now_;
}

// A server that has just started may report a live session as gone. A new session would then find
// the entries held, and this daemon would take the holder for another daemon. So no session is
// created before Consul has answered.
void Membership::destroy_lost() {
  send(put("/v1/session/destroy/" + wire::query_value(lost_session_)),
       [this](const http::Response& response) {
         const bool is_answered =
             response.delivery == http::Delivery::kReplied && response.status < 500;
         if (!is_answered) return retry();
         lost_session_.clear();
         next_at_ = now_;
       });
}

void Membership::set_value(std::string value) {
  options_.value = std::move(value);
  if (held_ && waiting_ == 0) {
    next_at_ = Instant::min();
  } else {
    changed_ = true;
  }
}

void Membership::retry() {
  backoff_ = std::clamp<Duration>(backoff_ * 2, kFirstBackoff, kMaxBackoff);
  next_at_ = now_ + backoff_;
}

void Membership::report_error(const std::string& about, const std::string& message,
                              const std::string& error) {
  // Report another error again: at a boot Consul is absent first, and then it may refuse.
  std::string kind = without_digits(error);
  if (std::exchange(reported_[about], kind) == kind) return;
  log(Level::kWarn, message, {{"node", options_.node}, {"error", error}});
}

// Logs the end of an outage that was reported.
void Membership::report_answered() {
  if (reported_.erase("session") == 0) return;
  log(Level::kInfo, "Consul answers again: this member's session is held",
      {{"node", options_.node}});
}

void Membership::withdraw() {
  file_.save({});
  for (std::string* session : {&session_, &lost_session_}) {
    if (session->empty()) continue;
    const std::string target = "/v1/session/destroy/" + wire::query_value(*session);
    static_cast<void>(transport_.perform(put(target, {}, 1s)));
    session->clear();
  }
}

}  // namespace lictor::runtime
