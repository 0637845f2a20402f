// One POST. libcurl opens a socket (on_open), hands the request over (on_handover), reads head and
// body, and conclude() turns the result into an Exit. The hard question is whether the job may have
// begun: not before the hand-over, nor if the receiver closed with the request unread (on_close).

#include "exec/http_post.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/assert.h"
#include "base/clock.h"
#include "base/errno_text.h"
#include "base/read_file.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "exec/output_log.h"

namespace lictor::exec {
namespace {

constexpr long kConnectTimeoutMs = 10'000;
// A receiver may work silently for hours; keep-alive detects within two minutes that it is gone.
constexpr KeepAlive kKeepAlive{std::chrono::seconds{60}, std::chrono::seconds{15}};
// Servers answer 431 to headers of more than 8 KiB together, some to more than 4.
constexpr std::size_t kMaxHeaderValueBytes = 2048;
// A request that is dropped unread is dropped at once. A later cut, such as by a firewall that sees
// no bytes for minutes, may hit a job that is being carried out.
constexpr std::chrono::seconds kDroppedWithin{5};

// The end of the body, cut as a program's output is.
std::string tail_of(std::string_view body) {
  OutputLog output{"", 0};
  (void)output.write(body);
  return output.tail();
}

// Whether the reply's Content-Type is `expected`.
bool has_type(CURL* easy, std::string_view expected) {
  const char* content_type = nullptr;
  curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &content_type);
  if (content_type == nullptr) return false;
  const std::string_view type{content_type};
  return equal_but_for_case(trimmed(type.substr(0, type.find(';'))), expected);
}

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
  void operator()(char* text) const { curl_free(text); }
};

std::string part(CURLU* url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, 0) != CURLUE_OK) return {};
  const std::unique_ptr<char, FreeUrl> owner{text};
  return text;
}

// The local port of a socket; 0: it has none.
int port_of(curl_socket_t socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  const bool has_port = address.ss_family == AF_INET || address.ss_family == AF_INET6;
  // Both address families have the port at the same place.
  return has_port ? ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port) : 0;
}

// `value` for a header: '%' and every byte but visible ASCII as "%XX".
std::string header_value(std::string_view value) {
  return percent_encoded(value, "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~");
}

}  // namespace

Result<HttpTarget> parse_http_target(const std::string& url) {
  const std::unique_ptr<CURLU, FreeUrl> parsed{curl_url()};
  LICTOR_ASSERT(parsed != nullptr);
  const std::string what = "expected a URL such as \"http://127.0.0.1:9000/notify\", got ";
  if (const CURLUcode code = curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0);
      code != CURLUE_OK) {
    return fail(ErrorCode::kInvalid,
                what + "one that cannot be read (" + std::string{curl_url_strerror(code)} + ")");
  }
  const std::string scheme = part(parsed.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") {
    return fail(ErrorCode::kInvalid, what + "the scheme \"" + scheme + "\"; use http or https");
  }
  HttpTarget target{url, {}, !part(parsed.get(), CURLUPART_USER).empty()};
  for (const CURLUPart secret : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS,
                                 CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    curl_url_set(parsed.get(), secret, nullptr, 0);
  }
  target.shown = part(parsed.get(), CURLUPART_URL);
  return target;
}

HttpPost::HttpPost(Attempt attempt, Instant deadline, ExitCallback on_exit)
    : attempt_(std::move(attempt)), deadline_(deadline), on_exit_(std::move(on_exit)) {}

HttpPost::~HttpPost() {
  if (owners_ == nullptr) return;
  for (auto& [socket, owner] : *owners_) {
    if (owner == this) owner = nullptr;  // the connection may be kept
  }
}

Result<void> HttpPost::prepare(const HttpCall& call, SocketOwners& owners) {
  if (easy() == nullptr) return fail(ErrorCode::kUnavailable, errno_text(ENOMEM));
  shown_ = call.target.shown;
  has_token_file_ = !call.token_file.empty();
  std::string token;
  if (!call.token_file.empty()) {
    LICTOR_TRY(token, read_token_file(call.token_file));
  }
  set_up(this, kKeepAlive);
  set(CURLOPT_URL, call.target.url.c_str());
  set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  if (call.keep_alive > Duration::zero()) {
    const auto age = std::chrono::floor<std::chrono::seconds>(call.keep_alive);
    set(CURLOPT_MAXAGE_CONN, static_cast<long>(age.count()));
  } else {
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_FORBID_REUSE, 1L);
  }
  set_sockets(owners);
  const std::string none;
  set_tls({call.ca_file, none, none, none}, call.trusted_for);
  set_body(*attempt_.record);
  set_headers(call, token);
  // Whoever started the attempt stops it at a later deadline, which libcurl's int cannot hold.
  constexpr Duration kLongest = std::chrono::hours{24 * 20};
  if (const Duration left = deadline_ - boot_now(); left <= kLongest) {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(ms, 1)));
  }
  const CURLcode setup = finish_setup();
  if (setup != CURLE_OK) return fail(ErrorCode::kUnavailable, curl_easy_strerror(setup));
  return {};
}

void HttpPost::set_sockets(SocketOwners& owners) {
  owners_ = &owners;
  set(CURLOPT_OPENSOCKETFUNCTION, &HttpPost::on_open);
  set(CURLOPT_OPENSOCKETDATA, this);
  set(CURLOPT_CLOSESOCKETFUNCTION, &HttpPost::on_close);
  set(CURLOPT_CLOSESOCKETDATA, &owners);
}

void HttpPost::set_headers(const HttpCall& call, const std::string& token) {
  const auto own = [&](const char* name, const std::string& value) {
    const bool configured = std::ranges::any_of(
        call.headers, [&](const auto& header) { return equal_but_for_case(header.first, name); });
    if (configured || value.size() > kMaxHeaderValueBytes) return;
    add_header(name, value);
  };
  own("User-Agent", "lictor/" LICTOR_VERSION);
  own("Content-Type", "application/json");
  own("Lictor-Task-Id", header_value(attempt_.task_id));
  own("Lictor-Task-Key", header_value(attempt_.task_key));
  own("Lictor-Task-Type", header_value(attempt_.task_type));
  own("Lictor-Queue", header_value(attempt_.queue));
  own("Lictor-Attempt", std::to_string(attempt_.number));
  own("Lictor-Fencing-Token", std::to_string(attempt_.fencing_token));
  if (const auto deadline = to_wall_time(deadline_)) {
    own("Lictor-Deadline", format_rfc3339(*deadline));
  }
  if (!token.empty()) own("Authorization", "Bearer " + token);
  if (call.keep_alive == Duration::zero()) add_header("Connection", "close");
  for (const auto& [name, value] : call.headers) add_header(name, value);
}

// Opens the socket here, since libcurl does not pass on socket(2)'s errno.
curl_socket_t HttpPost::on_open(void* self, curlsocktype, curl_sockaddr* address) {
  auto& post = *static_cast<HttpPost*>(self);
  const curl_socket_t opened =
      socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (opened == CURL_SOCKET_BAD) {
    post.socket_error_ = errno;
  } else {
    (*post.owners_)[opened] = &post;
  }
  return opened;
}

// Notes whether our bytes were unread at the close: then the receiver's kernel has reset the
// connection, or has not acknowledged them.
int HttpPost::on_close(void* owners, curl_socket_t socket) {
  auto node = static_cast<SocketOwners*>(owners)->extract(socket);
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (!node.empty() && node.mapped() != nullptr && !node.mapped()->repeat_refused_ &&
      getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
    node.mapped()->closed_unread_ = info.tcpi_state == TCP_CLOSE || info.tcpi_unacked != 0;
  }
  return close(socket);
}

bool HttpPost::on_handover(int local_port) {
  if (!hand_over(false)) return false;
  // A kept connection was opened by another request.
  for (auto& [socket, owner] : *owners_) {
    if (port_of(socket) == local_port) owner = this;
  }
  handed_over_at_ = boot_now();
  return true;
}

bool HttpPost::on_header(std::string_view line) {
  head_bytes_ += line.size();
  too_large_ = head_bytes_ > kMaxHeadBytes;
  if (too_large_) head_complete_ = false;
  return !too_large_;
}

bool HttpPost::on_body(std::string_view bytes) {
  too_large_ = body_.size() + bytes.size() > kMaxBodyBytes;
  if (!too_large_) body_.append(bytes);
  return !too_large_;
}

Exit HttpPost::conclude(CURLcode code) {
  Exit exit{};
  exit.attempt = attempt_.id;
  exit.output_tail = tail_of(body_);
  long status = 0;
  curl_easy_getinfo(easy(), CURLINFO_RESPONSE_CODE, &status);
  // libcurl accepts a head that breaks off. A failure's status counts even if the body is
  // incomplete; the status of a success counts only with the whole body.
  const bool has_status = head_complete_ && status >= 200;
  if (has_status && (code == CURLE_OK || status >= 300 || too_large_)) {
    set_ending(static_cast<int>(status), exit);
  } else {
    exit.ending = handed_over_ ? Ending::kRetry : Ending::kNotStarted;
    if (was_hardly_taken(code)) exit.taken = JobTaken::kHardly;
    exit.error = "POST " + shown_ + ": " + reason(code);
  }
  return exit;
}

Exit HttpPost::stopped() const {
  if (!handed_over_) {
    return ended(attempt_.id, Ending::kNotStarted, "stopped before the request was sent");
  }
  return ended(attempt_.id, Ending::kStopped, "stopped; the request may have been carried out");
}

// True if the receiver cannot have begun: no byte of a reply came, and the request is unread. This
// also covers a kept connection that the receiver closes just as a request arrives.
bool HttpPost::was_hardly_taken(CURLcode code) const {
  const bool was_closed = code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR ||
                          code == CURLE_GOT_NOTHING || repeat_refused_;
  return handed_over_ && was_closed && closed_unread_ && head_bytes_ == 0 &&
         boot_now() - handed_over_at_ < kDroppedWithin;
}

// The reply's last line goes into the error: often only the receiver knows the cause.
void HttpPost::set_ending(int status, Exit& exit) const {
  if (status < 300) return take_result(exit);
  exit.error = "POST " + shown_ + ": status " + std::to_string(status);
  // The last line of an HTML page is a tag.
  const std::string said = has_type(easy(), "text/html") ? "" : last_line(exit.output_tail);
  if (status >= 400 && !said.empty()) exit.error += ": " + said;
  if (status == 408 || status == 425 || status == 429 || status >= 500) {
    exit.ending = Ending::kRetry;
    curl_off_t seconds = 0;  // from either form of Retry-After
    curl_easy_getinfo(easy(), CURLINFO_RETRY_AFTER, &seconds);
    // The daemon waits for a day at most anyway.
    if (seconds > 0)
      exit.retry_after = std::chrono::seconds{std::min<curl_off_t>(seconds, 1LL << 32U)};
    return;
  }
  exit.ending = Ending::kPermanent;
  // The receiver may know another token already, or not yet. The next attempt reads the file again.
  if (status == 401 && has_token_file_) exit.taken = JobTaken::kNo;
  if (status < 400) exit.error += ", and redirects are not followed; correct the URL";
}

// A success means that the request was carried out, even if its reply cannot be kept.
void HttpPost::take_result(Exit& exit) const {
  exit.ending = Ending::kDone;
  if (too_large_) {
    exit.result_fault = fmt::format("POST {}: expected a reply of at most {} bytes, got more",
                                    shown_, kMaxBodyBytes);
    return;
  }
  if (!has_type(easy(), "application/json")) return;
  if (!nlohmann::json::accept(body_)) {
    if (!body_.empty())
      exit.result_fault = fmt::format(
          "POST {}: expected JSON, as the reply's Content-Type says, got something else", shown_);
    return;
  }
  exit.result = body_;
}

std::string HttpPost::reason(CURLcode code) const {
  if (too_large_) {
    return fmt::format(
        "expected headers of at most {} bytes, got more; the request may have been carried out",
        kMaxHeadBytes);
  }
  if (repeat_refused_) {
    return "the receiver closed the kept connection before it replied; the request may have been "
           "carried out; set \"keep_alive\" below the time that the receiver keeps connections";
  }
  if (socket_error_ != 0) return "no socket: " + errno_text(socket_error_);
  std::string detail = error_text_.front() != '\0' ? excerpt(error_text_.data(), 200)
                                                   : std::string{curl_easy_strerror(code)};
  if (code == CURLE_OK) detail = "connection closed within the reply's head";
  // libcurl would name the phase instead, and rounds to milliseconds.
  if (code == CURLE_OPERATION_TIMEDOUT && deadline_ - boot_now() < std::chrono::milliseconds{10}) {
    detail = "the attempt timed out";
  }
  if (handed_over_) return "no whole reply: " + detail + "; the request may have been carried out";
  return "no connection: " + detail;
}

}  // namespace lictor::exec
