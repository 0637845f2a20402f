#include "runtime/journal.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "exec/channel.h"

namespace lictor::runtime {
namespace {

// "NAME=value\n"; or, if the value has several lines, the name alone on its line, the value's size
// in 8 bytes, little-endian, and the value.
void append_field(std::string& entry, const std::string& name, const std::string& value) {
  entry += name;
  if (value.find('\n') == std::string::npos) {
    entry += '=';
  } else {
    entry += '\n';
    for (unsigned shift = 0; shift < 64; shift += 8) {
      entry += static_cast<char>(std::uint64_t{value.size()} >> shift & 0xffU);
    }
  }
  entry += value + '\n';
}

}  // namespace

Journal::Journal(std::string socket)
    : path_(std::move(socket)),
      socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}

Journal::Sent Journal::send(const std::vector<std::pair<std::string, std::string>>& fields) const {
  std::string entry;
  for (const auto& [name, value] : fields) append_field(entry, name, value);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), std::min(path_.size(), sizeof address.sun_path - 1));
  iovec part{entry.data(), entry.size()};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (sendmsg(socket_.get(), &message, MSG_NOSIGNAL) >= 0) return Sent::kSent;

  // A long entry travels in a sealed file.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (errno == EMSGSIZE || errno == ENOBUFS) {
    const auto file = exec::sealed_file("lictor-journal", entry);
    if (!file) return Sent::kFull;
    message.msg_iov = nullptr;
    message.msg_iovlen = 0;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = file->get();
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(socket_.get(), &message, MSG_NOSIGNAL) >= 0) return Sent::kSent;
  }
  return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? Sent::kFull : Sent::kAbsent;
}

}  // namespace lictor::runtime
