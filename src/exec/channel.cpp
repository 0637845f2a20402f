#include "exec/channel.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/assert.h"
#include "base/errno_text.h"
#include "base/read_file.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3
#endif

namespace lictor::exec {
namespace {

// The kernel allocates a packet in one piece and SO_SNDBUF is 208 KiB by default: stay well below.
constexpr std::size_t kInlineBytes = 32768;

// The first byte of a packet: either the message follows, or only its head does and the first
// descriptor holds the whole message.
constexpr char kInline = 'i';
constexpr char kInFile = 'f';
constexpr std::size_t kHeadBytes = 16;

// Leaves the file's position at the start.
bool write_all(int fd, std::string_view bytes) {
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n =
        pwrite(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) have += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

bool watch(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t about) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = about;
  return epoll_ctl(epoll, operation, fd, &event) == 0;
}

void unwatch(int epoll, UniqueFd& fd) {
  if (!fd) return;
  epoll_ctl(epoll, EPOLL_CTL_DEL, fd.get(), nullptr);
  fd.reset();
}

Result<UniqueFd> sealed_file(const char* name, std::string_view bytes) {
  UniqueFd file{memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL)};
  if (!file && errno == EINVAL) file.reset(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || !write_all(file.get(), bytes) ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) !=
          0) {
    return fail(ErrorCode::kFailed, "cannot make a file in memory: " + errno_text());
  }
  return file;
}

Result<std::pair<Channel, Channel>> Channel::create() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return fail(ErrorCode::kFailed, "cannot make a socket for the warden: " + errno_text());
  }
  return std::pair{Channel{UniqueFd{ends[0]}}, Channel{UniqueFd{ends[1]}}};
}

Channel::Channel(UniqueFd socket)
    : socket_(std::move(socket)),
      buffer_(std::make_unique_for_overwrite<char[]>(kInlineBytes + 1)) {}

bool Channel::send(Packet& packet) {
  LICTOR_ASSERT(packet.fds.size() <= kMaxFds);
  if (packet.bytes.size() > kInlineBytes) {
    auto file = sealed_file("lictor-message", packet.bytes);
    if (!file) return false;
    packet.bytes = kInFile + packet.bytes.substr(0, kHeadBytes);
    packet.fds.insert(packet.fds.begin(), std::move(*file));
  } else {
    packet.bytes.insert(packet.bytes.begin(), kInline);
  }
  if (kept_.empty()) {
    const Sent sent = send_now(packet);
    if (sent != Sent::kFull) return sent == Sent::kSent;
  }
  kept_.push_back(std::move(packet));
  return true;
}

bool Channel::flush() {
  while (!kept_.empty()) {
    const Sent sent = send_now(kept_.front());
    if (sent == Sent::kFull) return true;
    if (sent == Sent::kGone) {
      kept_.clear();
      return false;
    }
    kept_.pop_front();
  }
  return true;
}

Channel::Sent Channel::send_now(const Packet& packet) {
  iovec part{const_cast<char*>(packet.bytes.data()), packet.bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;

  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * (kMaxFds + 1))> control{};
  if (!packet.fds.empty()) {
    std::array<int, kMaxFds + 1> numbers{};
    for (std::size_t i = 0; i < packet.fds.size(); ++i) numbers[i] = packet.fds[i].get();
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * packet.fds.size());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * packet.fds.size());
    std::memcpy(CMSG_DATA(header), numbers.data(), sizeof(int) * packet.fds.size());
  }
  while (sendmsg(socket_.get(), &message, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) return Sent::kFull;
    return Sent::kGone;
  }
  return Sent::kSent;
}

Channel::Received Channel::receive(Packet& packet) {
  packet.fds.clear();
  iovec part{buffer_.get(), kInlineBytes + 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * (kMaxFds + 1))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();

  ssize_t n = 0;
  while ((n = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC)) < 0) {
    // ECONNRESET: the other end closed with messages of ours unread. Messages from the other end
    // may still be queued; the next call reads them.
    if (errno == EINTR || errno == ECONNRESET) continue;
    return errno == EAGAIN ? Received::kNothing : Received::kGone;
  }
  if (n == 0) return Received::kGone;  // Every packet has a first byte.

  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      packet.fds.emplace_back(fd);
    }
  }

  const bool in_file = buffer_[0] == kInFile;
  packet.bytes.assign(buffer_.get() + 1, static_cast<std::size_t>(n) - 1);
  if (in_file && !packet.fds.empty()) {
    constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max() - 1;
    auto bytes = read_up_to(packet.fds.front().get(), kNoLimit);
    if (bytes) packet.bytes = std::move(*bytes);
    packet.fds.erase(packet.fds.begin());
  }
  return Received::kPacket;
}

void Channel::watch_in(int epoll, std::uint64_t about, bool reads) {
  const std::uint32_t events = (reads ? EPOLLIN : 0U) | (backed_up() ? EPOLLOUT : 0U);
  if (events == watched_events_) return;
  // Without events the socket leaves the set: epoll would report a hang-up again and again.
  const int operation = events == 0            ? EPOLL_CTL_DEL
                        : watched_events_ == 0 ? EPOLL_CTL_ADD
                                               : EPOLL_CTL_MOD;
  LICTOR_ASSERT(watch(epoll, operation, fd(), events, about));
  watched_events_ = events;
}

void Channel::finish_sending() { shutdown(socket_.get(), SHUT_WR); }

}  // namespace lictor::exec
