#include "tcp_proxy.h"

#include <poll.h>

#include <list>
#include <utility>
#include <vector>

#include "sockets.h"

namespace lictor::live {
namespace {

// One connection through the proxy; both ends are blocking sockets with short messages.
struct Link {
  int client = -1;
  int server = -1;  ///< -1: made while the network was cut
  bool was_cut = false;

  void end() const {
    close(client);
    if (server >= 0) close(server);
  }
};

// The bytes received from `from`; empty when the connection is over.
std::string received(int from) {
  std::string bytes(65'536, '\0');
  const ssize_t n = recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return bytes;
}

bool pass(const std::string& bytes, int to, bool is_cut) {
  if (bytes.empty()) return false;
  return is_cut || to < 0 || write_all(to, bytes);
}

}  // namespace

TcpProxy::TcpProxy(int target_port) : target_port_(target_port) {
  listener_ = listen_on_loopback(port_);
  thread_ = std::thread{[this] { run(); }};
}

TcpProxy::~TcpProxy() {
  stopping_ = true;
  thread_.join();
  close(listener_);
}

std::string TcpProxy::address() const { return "http://127.0.0.1:" + std::to_string(port_); }

void TcpProxy::cut_at(std::string word, Before before) {
  const std::lock_guard lock{mutex_};
  word_ = std::move(word);
  before_ = before;
}

bool TcpProxy::pass_request(int from, int to, bool is_cut) {
  const std::string bytes = received(from);
  const std::lock_guard lock{mutex_};
  const bool said = !word_.empty() && bytes.find(word_) != std::string::npos;
  const bool lost = said && before_ == Before::kRequest;
  const bool goes_on = pass(bytes, to, is_cut || lost);
  if (said) {
    word_.clear();
    is_cut_ = true;
  }
  return goes_on;
}

void TcpProxy::run() {
  std::list<Link> links;
  while (!stopping_) {
    const bool is_cut = is_cut_;
    std::erase_if(links, [&](Link& link) {
      link.was_cut = link.was_cut || is_cut;
      if (is_cut || !link.was_cut) return false;
      link.end();
      return true;
    });
    std::vector<pollfd> polled{{listener_, POLLIN, 0}};
    for (const Link& link : links) {
      polled.push_back({link.client, POLLIN, 0});
      polled.push_back({link.server, POLLIN, 0});
    }
    if (poll(polled.data(), polled.size(), 10) <= 0) continue;
    std::size_t i = 1;
    std::erase_if(links, [&](Link& link) {
      const bool from_client = polled[i].revents != 0;
      const bool from_server = polled[i + 1].revents != 0;
      i += 2;
      const bool goes_on =
          (!from_client || pass_request(link.client, link.server, link.was_cut || is_cut_)) &&
          (!from_server || pass(received(link.server), link.client, link.was_cut || is_cut_));
      if (!goes_on) link.end();
      return !goes_on;
    });
    if (polled[0].revents != 0) {
      const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) continue;
      const Link link{client, is_cut ? -1 : connect_to(target_port_), is_cut};
      if (!is_cut && link.server < 0) {
        close(client);
      } else {
        links.push_back(link);
      }
    }
  }
  for (const Link& link : links) link.end();
}

}  // namespace lictor::live
