#include "newer_consul.h"

#include <poll.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "httpd/url.h"
#include "sockets.h"
#include "support.h"

namespace lictor::live {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

constexpr std::string_view kConnections =
    "Your IP is issuing too many concurrent connections, please rate limit your calls\n";

// False: the connection is over.
bool read_more(int fd, std::string& buffer) {
  char bytes[65'536];
  const ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
  if (n <= 0) return false;
  buffer.append(bytes, static_cast<std::size_t>(n));
  return true;
}

// The value of a header in `head`, whose names are in lower case; empty: there is none.
std::string header(const std::string& head, const std::string& name) {
  const auto at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

// Whether a transaction changes nothing, as far as its verbs show.
bool only_reads(const json& operations) {
  return std::all_of(operations.begin(), operations.end(), [](const json& operation) {
    const std::string verb =
        operation.is_object() ? operation.value("KV", json::object()).value("Verb", "") : "";
    return verb.starts_with("get") || verb.starts_with("check-");
  });
}

}  // namespace

struct NewerConsul::Link {
  int client = -1;
  int server = -1;
  std::string from_client;
  std::string from_server;
  bool over = false;
  std::thread thread;
};

struct NewerConsul::Request {
  std::string line;  // "GET /v1/kv/a%20b?recurse"
  std::string method;
  std::string path;  // decoded
  std::string body;
  std::string bytes;  // all of it
  steady_clock::time_point began;
};

struct NewerConsul::Refusal {
  int status = 0;  // 0: none
  std::string reason;
  std::string body;
};

Strictness Strictness::parse(std::string_view text) {
  Strictness rules;
  while (!text.empty()) {
    const std::string word{text.substr(0, text.find(','))};
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const auto equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const std::string value = equals < word.size() ? word.substr(equals + 1) : "";
    if (word == "names-1.21.5") {
      rules.names = Names::k1_21_5;
    } else if (word == "names-1.22") {
      rules.names = Names::k1_22;
    } else if (word == "slash") {
      rules.refuses_slash_in_txn = true;
    } else if (word == "resets") {
      rules.resets_connections = true;
    } else if (name == "cut") {
      rules.cut_after =
          std::chrono::duration_cast<std::chrono::milliseconds>(parse_duration(value).value());
    } else if (name == "reads") {
      rules.reads_per_second = std::stod(value);
    } else if (name == "writes") {
      rules.writes_per_second = std::stod(value);
    } else if (name == "connections") {
      rules.connections = std::stoul(value);
    } else if (name == "bytes") {
      rules.bytes_per_second = std::stoul(value);
    } else {
      throw std::invalid_argument{"no rule of a Consul: " + word};
    }
  }
  return rules;
}

bool NewerConsul::Bucket::take() {
  if (per_second_ <= 0) return true;
  const auto now = steady_clock::now();
  const double passed = std::chrono::duration<double>(now - filled_).count();
  tokens_ = std::min(per_second_, tokens_ + passed * per_second_);
  filled_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

NewerConsul::NewerConsul(int target_port, const Strictness& rules)
    : target_port_(target_port),
      rules_(rules),
      reads_(rules.reads_per_second),
      writes_(rules.writes_per_second) {
  listener_ = listen_on_loopback(port_);
  acceptor_ = std::thread{[this] { accept_all(); }};
}

NewerConsul::~NewerConsul() {
  stopping_ = true;
  acceptor_.join();
  close(listener_);
  {
    const std::lock_guard lock{mutex_};
    for (const Link& link : links_) {
      if (!link.over) shutdown(link.client, SHUT_RDWR);
      if (!link.over && link.server >= 0) shutdown(link.server, SHUT_RDWR);
    }
  }
  for (Link& link : links_) link.thread.join();
}

std::string NewerConsul::address() const { return "http://127.0.0.1:" + std::to_string(port_); }

NewerConsul::Counts NewerConsul::counts() const {
  const std::lock_guard lock{mutex_};
  return counts_;
}

std::set<std::string> NewerConsul::refused_names() const {
  const std::lock_guard lock{mutex_};
  return refused_names_;
}

void NewerConsul::accept_all() {
  while (!stopping_) {
    pollfd polled{listener_, POLLIN, 0};
    if (poll(&polled, 1, 20) <= 0) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const std::lock_guard lock{mutex_};
    // Those that are over have left their last lock.
    links_.remove_if([](Link& link) {
      if (link.over) link.thread.join();
      return link.over;
    });
    if (rules_.connections != 0 && open_ >= rules_.connections) {
      ++counts_.connections_refused;
      if (rules_.resets_connections) {
        const linger hard{1, 0};
        setsockopt(client, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
      } else {
        write_all(client,
                  "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\n"
                  "Content-Length: " +
                      std::to_string(kConnections.size()) + "\r\nConnection: close\r\n\r\n" +
                      std::string{kConnections});
        shutdown(client, SHUT_WR);
      }
      close(client);
      continue;
    }
    counts_.most_connections = std::max(counts_.most_connections, ++open_);
    Link& link = links_.emplace_back();
    link.client = client;
    link.thread = std::thread{[this, &link] { serve(link); }};
  }
}

// One client's connection, from its first request to its end.
void NewerConsul::serve(Link& link) {
  const int server = connect_to(target_port_);
  {
    const std::lock_guard lock{mutex_};
    link.server = server;
  }
  while (server >= 0 && !stopping_) {
    std::size_t head_end = 0;
    while ((head_end = link.from_client.find("\r\n\r\n")) == std::string::npos) {
      if (!read_more(link.client, link.from_client)) break;
    }
    if (head_end == std::string::npos) break;
    head_end += 4;
    Request request;
    request.began = steady_clock::now();
    const std::string head = link.from_client.substr(0, head_end);
    request.line = head.substr(0, head.find(" HTTP/1."));
    const std::string lower_head = lower(head);
    const std::string length = header(lower_head, "content-length");
    const std::size_t size = length.empty() ? 0 : std::stoul(length);
    if (lower_head.find("\r\nexpect: 100-continue") != std::string::npos) {
      write_all(link.client, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    bool whole = true;
    while (whole && link.from_client.size() < head_end + size) {
      whole = read_more(link.client, link.from_client);
    }
    if (!whole) break;
    request.method = request.line.substr(0, request.line.find(' '));
    const auto url = httpd::parse_url(
        request.line.substr(std::min(request.line.size(), request.method.size() + 1)));
    request.path = url ? url->path : "";
    request.body = link.from_client.substr(head_end, size);
    request.bytes = link.from_client.substr(0, head_end + size);
    link.from_client.erase(0, head_end + size);

    const Refusal refusal = refusal_for(request);
    if (refusal.status != 0) {
      const std::string answer = "HTTP/1.1 " + std::to_string(refusal.status) + ' ' +
                                 refusal.reason +
                                 "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " +
                                 std::to_string(refusal.body.size()) + "\r\n\r\n" + refusal.body;
      if (!write_all(link.client, answer)) break;
      continue;
    }
    if (!write_all(server, request.bytes) || !pass_answer(link, request)) break;
  }
  const std::lock_guard lock{mutex_};
  close(link.client);
  if (server >= 0) close(server);
  --open_;
  link.over = true;
}

// False: the time is over, or the client has gone.
bool NewerConsul::wait_for_server(Link& link, steady_clock::time_point until) {
  while (!stopping_) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_clock::now());
    if (left.count() <= 0) {
      const std::lock_guard lock{mutex_};
      ++counts_.answers_cut;
      return false;
    }
    pollfd polled[] = {{link.server, POLLIN, 0}, {link.client, POLLRDHUP, 0}};
    const int wait_ms = static_cast<int>(std::min<std::int64_t>(left.count(), 1000));
    if (poll(polled, 2, wait_ms) < 0) return false;
    if (polled[0].revents != 0) return true;
    if (polled[1].revents != 0) return false;
  }
  return false;
}

// Passes on one answer as it comes, at its rate and in its time.
bool NewerConsul::pass_answer(Link& link, const Request& request) {
  const auto until = rules_.cut_after.count() > 0 ? request.began + rules_.cut_after
                                                  : request.began + std::chrono::hours{1};
  std::string& bytes = link.from_server;
  const auto more = [&] { return wait_for_server(link, until) && read_more(link.server, bytes); };
  std::size_t sent = 0;
  const auto begun = steady_clock::now();
  // Passes on the first `count` bytes received.
  const auto pass = [&](std::size_t count) {
    constexpr std::size_t kPiece = 16'384;
    for (std::size_t at = 0; at < count; at += kPiece) {
      const std::size_t size = std::min(kPiece, count - at);
      if (rules_.bytes_per_second != 0) {
        const auto due =
            begun + std::chrono::microseconds{1'000'000 * (sent + size) / rules_.bytes_per_second};
        while (steady_clock::now() < due && !stopping_) {
          std::this_thread::sleep_until(
              std::min(due, steady_clock::now() + std::chrono::milliseconds{50}));
        }
        if (steady_clock::now() >= until) {
          const std::lock_guard lock{mutex_};
          ++counts_.answers_cut;
          return false;
        }
      }
      if (!write_all(link.client, std::string_view{bytes}.substr(at, size))) return false;
      sent += size;
    }
    bytes.erase(0, count);
    return true;
  };

  std::size_t head_end = 0;
  while ((head_end = bytes.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return false;
  }
  head_end += 4;
  const std::string head = lower(bytes.substr(0, head_end));
  if (!pass(head_end)) return false;
  const bool closes = header(head, "connection") == "close";
  if (header(head, "transfer-encoding") == "chunked") {
    for (;;) {
      std::size_t line_end = 0;
      while ((line_end = bytes.find("\r\n")) == std::string::npos) {
        if (!more()) return false;
      }
      const std::size_t size = std::stoul(bytes.substr(0, line_end), nullptr, 16);
      const std::size_t whole = line_end + 2 + size + 2;  // trailers are none of Consul's
      while (bytes.size() < whole) {
        if (!more()) return false;
      }
      if (!pass(whole)) return false;
      if (size == 0) return !closes;
    }
  }
  const std::string length = header(head, "content-length");
  std::size_t left = request.method == "HEAD" || length.empty() ? 0 : std::stoul(length);
  while (left > 0) {
    while (bytes.empty()) {
      if (!more()) return false;
    }
    const std::size_t count = std::min(left, bytes.size());
    if (!pass(count)) return false;
    left -= count;
  }
  return !closes;
}

bool NewerConsul::is_refused_name(std::string_view key) const {
  if (rules_.names == Strictness::Names::kAny) return false;
  if (key.find("..") != std::string_view::npos) return true;
  if (rules_.names == Strictness::Names::k1_22) {
    return key.starts_with(' ') || key.ends_with(' ') ||
           lower(std::string{key}).find("%2e%2e") != std::string::npos;
  }
  return !std::all_of(key.begin(), key.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view{",_./-?&="}.find(c) != std::string_view::npos;
  });
}

NewerConsul::Refusal NewerConsul::refusal_for(const Request& request) {
  constexpr std::string_view kKv = "/v1/kv/";
  const bool is_kv = request.path.starts_with(kKv);
  const bool is_txn = request.path == "/v1/txn";
  const json operations = is_txn ? json::parse(request.body, nullptr, false) : json{};
  const bool is_read = is_txn ? operations.is_array() && only_reads(operations)
                              : request.method == "GET" || request.method == "HEAD";
  // Calls that an agent answers by itself, or that its servers exempt, have no limit.
  const bool is_limited = is_kv || is_txn || request.path.starts_with("/v1/session/") ||
                          request.path.starts_with("/v1/catalog/") ||
                          request.path.starts_with("/v1/health/");

  const std::lock_guard lock{mutex_};
  ++counts_.requests;
  const auto refuse_name = [&](int status, const char* reason, std::string body) {
    ++counts_.names_refused;
    refused_names_.insert(request.line);
    if (!refused_requests_.insert(request.line + '\n' + request.body).second) {
      ++counts_.names_refused_again;
    }
    return Refusal{status, reason, std::move(body)};
  };
  if (is_kv && is_refused_name(std::string_view{request.path}.substr(kKv.size()))) {
    return refuse_name(500, "Internal Server Error",
                       R"(invalid key name, keys should respect the "^[a-zA-Z0-9,_./\\-?&=]+$")"
                       " format");
  }
  if (rules_.refuses_slash_in_txn && operations.is_array()) {
    for (const json& operation : operations) {
      if (!operation.is_object()) continue;
      const std::string key = operation.value("KV", json::object()).value("Key", "");
      if (!key.starts_with('/')) continue;
      return refuse_name(400, "Bad Request",
                         "Invalid key in transaction: invalid key name, must not begin with a "
                         "'/': \"" +
                             key + '"');
    }
  }
  if (is_limited && !(is_read ? reads_ : writes_).take()) {
    ++(is_read ? counts_.reads_refused : counts_.writes_refused);
    if (is_read) {
      return {429, "Too Many Requests",
              "rate limit exceeded, try again later or against a different server"};
    }
    return {503, "Service Unavailable",
            "rate limit exceeded for operation that can only be performed by the leader, try "
            "again later"};
  }
  return {};
}

}  // namespace lictor::live
