#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "lictor/result.h"

namespace lictor::exec {

/// A message and its file descriptors.
struct Packet {
  std::string bytes;
  std::vector<UniqueFd> fds;
};

/// A read-only file in memory that holds `bytes`, positioned at its start. Errors: kFailed.
[[nodiscard]] Result<UniqueFd> sealed_file(const char* name, std::string_view bytes);

/// Registers `fd` in an epoll set; `about` comes back with its events. False: errno says why.
bool watch(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t about);
/// Removes `fd`, if it is open, from the set and closes it. Closing alone would not remove it while
/// another process has a copy: the warden, or a child before its execve.
void unwatch(int epoll, UniqueFd& fd);

/// One end of the socket between the daemon and the warden: whole messages, in order, each with its
/// descriptors, never blocking. Packets that the socket does not take are kept until flush(). Long
/// messages travel in a sealed file. Not thread-safe.
///
/// The warden must never wait for the daemon, which may hang, nor the daemon's loop for the warden,
/// which may be stopped. So a full socket keeps the packet here, and the owner flushes later.
class Channel {
 public:
  /// The most descriptors that a packet carries.
  static constexpr std::size_t kMaxFds = 4;

  /// Returns both ends. Errors: kFailed.
  [[nodiscard]] static Result<std::pair<Channel, Channel>> create();

  /// False: the other end is gone. A kept packet is moved from; otherwise the caller closes its
  /// descriptors, outside of any lock.
  [[nodiscard]] bool send(Packet& packet);

  /// Sends the kept packets. False: the other end is gone.
  [[nodiscard]] bool flush();

  /// Whether packets are kept. If so, call flush() once fd() is writable.
  [[nodiscard]] bool backed_up() const { return !kept_.empty(); }

  enum class Received { kPacket, kNothing, kGone };

  /// The next message, if there is one. When the process is out of descriptors, some of `fds` are
  /// missing, and a long message may be cut to its first 16 bytes.
  [[nodiscard]] Received receive(Packet& packet);

  /// Ends this direction; the other end may still send.
  void finish_sending();

  /// Keeps the channel in an epoll set: for reading if `reads`, for writing while packets are kept.
  /// `about` comes back with its events. Call it again after send() and flush().
  void watch_in(int epoll, std::uint64_t about, bool reads = true);

  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  enum class Sent { kSent, kFull, kGone };

  explicit Channel(UniqueFd socket);
  [[nodiscard]] Sent send_now(const Packet& packet);

  UniqueFd socket_;
  std::unique_ptr<char[]> buffer_;  ///< for receive()
  std::deque<Packet> kept_;
  std::uint32_t watched_events_ = 0;
};

}  // namespace lictor::exec
