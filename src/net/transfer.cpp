#include "net/transfer.h"

#include <algorithm>
#include <string_view>

#include "base/assert.h"
#include "base/errno_text.h"
#include "base/text.h"
#include "base/time_text.h"

namespace lictor::net {
namespace {

// TCP keep-alive probes start after 30 s, since a long poll is silent for a minute; the connection
// is given up after three probes, 10 s apart, without an answer.
constexpr KeepAlive kKeepAlive{std::chrono::seconds{30}, std::chrono::seconds{10}};
// The reply to a long poll arrives in one go. If its rest is missing, for example because of a
// wrong Content-Length, the wait is shorter than for the first byte.
constexpr long kStallS = 5;

// Longer than any of our requests, and too short to overflow libcurl's or our arithmetic.
constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours{24};

constexpr std::array kTlsFailures{CURLE_SSL_CONNECT_ERROR,  CURLE_PEER_FAILED_VERIFICATION,
                                  CURLE_SSL_CERTPROBLEM,    CURLE_SSL_CIPHER,
                                  CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR};

}  // namespace

Transfer::Transfer(RequestId new_id, Request new_request, Callback new_done, Instant sent_at)
    : id(new_id), request(std::move(new_request)), done(std::move(new_done)) {
  LICTOR_ASSERT(easy() != nullptr);
  request.timeout = std::clamp(request.timeout, std::chrono::milliseconds{0}, kLongestTimeout);
  response.sent_at = sent_at;
  time_ = request.timeout;
  deadline = sent_at + time_;
}

void Transfer::begin_turn(Instant now, std::chrono::milliseconds wait) {
  const Instant sent_at = response.sent_at;
  response = {};
  response.sent_at = sent_at;
  tried = 0;
  wait_ = "&wait=" + std::to_string(wait.count()) + "ms";
  time_ = wait * 17 / 16 + request.timeout;  // Consul adds up to a sixteenth (4.1)
  deadline = now + time_;
}

void Transfer::prepare(const Client& client, std::size_t to, const std::string& token,
                       const std::string& ca_bundle, std::chrono::milliseconds time_left) {
  endpoint = to;
  tried |= std::uint64_t{1} << to;
  too_large_ = false;
  response.endpoint = client.endpoints[to].address;

  set_up(this, kKeepAlive);
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(time_left.count()));
  connect_within_ = std::min(time_left, client.options.connect_timeout);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect_within_.count()));
  if (request.silence > std::chrono::milliseconds{0}) {
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME,
        static_cast<long>(std::chrono::ceil<std::chrono::seconds>(request.silence).count()));
  }
  set_connection(client, client.endpoints[to]);
  if (client.endpoints[to].kind == Endpoint::Kind::kHttps) {
    const Options& from = client.options;
    set_tls({from.ca_file, ca_bundle, from.client_cert, from.client_key, from.tls_verify},
            kTrustedFor);
  }
  set_method();
  set_headers(client.options, token);
  LICTOR_ASSERT(finish_setup() == CURLE_OK);
}

void Transfer::set_connection(const Client& client, const Endpoint& to) {
  url_.assign(to.origin).append(request.target).append(wait_);
  if (!client.partition.empty()) {
    url_.append(url_.find('?') == std::string::npos ? "?" : "&").append(client.partition);
  }
  set(CURLOPT_URL, url_.c_str());
  // A key may be called "a/../b": libcurl would tidy the path and ask for another key.
  set(CURLOPT_PATH_AS_IS, 1L);
  if (!to.unix_path.empty()) set(CURLOPT_UNIX_SOCKET_PATH, to.unix_path.c_str());
  if (!to.connect_to.empty()) {
    connect_to_.reset(curl_slist_append(nullptr, to.connect_to.c_str()));
    set(CURLOPT_CONNECT_TO, connect_to_.get());
  }
}

bool Transfer::is_read() const { return request.method == "GET" || request.only_reads; }

std::string Transfer::doubt() const {
  return is_read() ? std::string{} : "; the request may have been carried out";
}

void Transfer::set_method() {
  set(CURLOPT_HTTPGET, 1L);
  if (request.method == "PUT" || request.method == "POST" || !request.body.empty()) {
    set_body(request.body);
  }
  set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

void Transfer::set_headers(const Options& options, const std::string& token) {
  add_header("User-Agent", "lictor");
  bool has_type = false;
  for (const auto& [name, value] : request.headers) {
    has_type = has_type || equal_but_for_case(name, "Content-Type");
    add_header(name, value);
  }
  if (!has_type) add_header("Content-Type:");  // otherwise every body is called a form
  if (!token.empty()) add_header("X-Consul-Token", token);
  if (!options.consul_namespace.empty()) {
    add_header("X-Consul-Namespace", options.consul_namespace);
  }
  if (!options.basic_auth.empty()) {
    set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    const std::size_t colon = options.basic_auth.find(':');
    set(CURLOPT_USERNAME, options.basic_auth.substr(0, colon).c_str());
    set(CURLOPT_PASSWORD,
        colon == std::string::npos ? "" : options.basic_auth.substr(colon + 1).c_str());
  }
}

bool Transfer::on_header(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    response.consul_index = 0;
    response.known_leader.reset();
  }
  if (head_complete_ && request.long_poll) {
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kStallS);
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return true;
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (equal_but_for_case(name, "X-Consul-Index")) {
    response.consul_index = to_number<std::uint64_t>(value).value_or(0);
  } else if (equal_but_for_case(name, "X-Consul-KnownLeader")) {
    if (value == "true" || value == "false") response.known_leader = value == "true";
  }
  return true;
}

bool Transfer::on_body(std::string_view bytes) {
  std::string& body = response.body;
  too_large_ = body.size() + bytes.size() > kMaxBodyBytes;
  if (too_large_) return false;
  // Large bodies grow in large steps: each step copies the body to fresh memory, and unused pages
  // cost nothing. With small steps a new task beside 20,000 waiting ones starts after 20 ms and not
  // 8 (bench, backlog).
  constexpr std::size_t kLarge = 256 * 1024;
  if (body.size() + bytes.size() > body.capacity() && body.capacity() >= kLarge) {
    body.reserve(std::min(8 * body.capacity(), kMaxBodyBytes));
  }
  body.append(bytes);
  return true;
}

void Transfer::conclude(CURLcode code, const Client& client) {
  long status = 0;
  curl_easy_getinfo(easy(), CURLINFO_RESPONSE_CODE, &status);
  // libcurl accepts a head that breaks off, and an interim head without a reply after it: "200"
  // without the body that says whether the write was applied.
  const bool whole = code == CURLE_OK && head_complete_ && status >= 200;
  if (whole) {
    curl_off_t first_us = 0;
    curl_off_t last_us = 0;
    curl_easy_getinfo(easy(), CURLINFO_STARTTRANSFER_TIME_T, &first_us);
    curl_easy_getinfo(easy(), CURLINFO_TOTAL_TIME_T, &last_us);
    response.delivery = Delivery::kReplied;
    response.status = static_cast<int>(status);
    response.elapsed = std::chrono::microseconds{std::max<curl_off_t>(0, last_us - first_us)};
    response.error.clear();
    return;
  }
  if (certificate_refused()) handed_over_ = false;
  response.delivery = handed_over_ ? Delivery::kLost : Delivery::kNotSent;
  response.body.clear();  // Half a reply must not be taken for one.
  response.consul_index = 0;
  response.known_leader.reset();
  add_error(client.endpoints[endpoint].address + ": " + reason(code, client.options.server));
}

void Transfer::add_error(const std::string& text) {
  if (!response.error.empty()) {
    response.error += "; ";
  } else {
    // The query is left out: some callers of Consul put the token there.
    const std::string path = request.target.substr(0, request.target.find('?'));
    response.error = request.method + ' ' + excerpt(path, 200) + ": ";
  }
  response.error += text;
}

// In TLS 1.3 a client finishes its handshake before the server checks its certificate, so the
// refusal arrives in place of the reply. The server has read nothing of the request.
bool Transfer::certificate_refused() const {
  long connections = 0;
  curl_easy_getinfo(easy(), CURLINFO_NUM_CONNECTS, &connections);
  const std::string_view text{error_text_.data()};
  const std::size_t alert = text.find(" alert ");
  if (connections == 0 || alert == std::string_view::npos) return false;
  return text.find("certificate", alert) != std::string_view::npos ||
         text.find("unknown ca", alert) != std::string_view::npos;
}

// Names the step that took too long: libcurl's own text gives only milliseconds and bytes.
std::string Transfer::lateness() const {
  if (!handed_over_) return "no connection within " + format_duration(connect_within_);
  const bool stalled = std::string_view{error_text_.data()}.find("too slow") != std::string::npos;
  if (head_complete_) {
    return stalled ? "the answer stood still"
                   : "the answer was not complete within " + format_duration(time_);
  }
  return "no answer within " + format_duration(stalled ? request.silence : time_);
}

std::string Transfer::reason(CURLcode code, const std::string& server) const {
  std::string detail = curl_easy_strerror(code);
  if (code == CURLE_OK) {
    detail = "connection closed within the reply's head";
  } else if (code == CURLE_OPERATION_TIMEDOUT) {
    detail = lateness();
  } else if (long why = 0; code == CURLE_COULDNT_CONNECT &&
                           curl_easy_getinfo(easy(), CURLINFO_OS_ERRNO, &why) == CURLE_OK &&
                           why != 0) {
    detail = errno_text(static_cast<int>(why));  // libcurl calls a unix socket localhost, port 80
  } else if (error_text_.front() != '\0') {
    detail = excerpt(error_text_.data(), 200);
  }
  if (repeat_refused_) {
    return "connection closed before a reply" + doubt();
  }
  if (too_large_) {
    return "expected a reply of at most " + std::to_string(kMaxBodyBytes) + " bytes, got more";
  }
  if (handed_over_) {
    const std::string text = "no whole reply: " + detail + doubt();
    // The connection may be closed before the alert is read.
    return url_.starts_with("https:") && !head_complete_
               ? text + "; if this goes on, the server refuses our certificate: see client_cert"
               : text;
  }
  if (certificate_refused()) {
    return "no TLS connection: the server refuses our certificate (" + detail +
           "); set client_cert and client_key to one that has not expired, by a CA that the server "
           "trusts";
  }
  if (std::ranges::find(kTlsFailures, code) != kTlsFailures.end()) {
    return "no TLS connection: " + detail +
           (code == CURLE_SSL_CERTPROBLEM ? "; check client_cert, and that client_key is its key"
                                          : "; check ca_file and tls_server_name against the "
                                            "server's certificate, and whether that has expired");
  }
  return "not sent: " + detail + "; check that " + server + " listens there";
}

}  // namespace lictor::net
