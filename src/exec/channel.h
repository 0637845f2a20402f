#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "lictor/result.h"

namespace lictor::exec {

/// A message and the descriptors that travel with it.
struct Packet {
  std::string bytes;
  std::vector<UniqueFd> fds;
};

/// A file in memory that holds `bytes`, to be read from its start and never changed again.
/// Errors: kFailed.
[[nodiscard]] Result<UniqueFd> sealed_file(const char* name, std::string_view bytes);

/// One end of the socket between the daemon and the warden: whole messages, in order, each with its
/// descriptors, never blocking. What the socket does not take is kept until flush(). Bytes beyond
/// what a socket takes at once travel in a sealed file. Not thread-safe.
class Channel {
 public:
  /// The most descriptors that a packet carries.
  static constexpr std::size_t kMaxFds = 3;

  /// Both ends. Errors: kFailed.
  [[nodiscard]] static Result<std::pair<Channel, Channel>> create();

  /// False when the other end is gone. A packet that is kept is moved from; else its descriptors
  /// are the caller's to close, outside of any lock.
  [[nodiscard]] bool send(Packet& packet);

  /// Sends what was kept. False when the other end is gone.
  [[nodiscard]] bool flush();

  /// Whether something is kept: then flush() once fd() is writable.
  [[nodiscard]] bool backed_up() const { return !kept_.empty(); }

  enum class Received { kPacket, kNothing, kGone };

  /// The next message, if one has come. In a process that is out of descriptors some of `fds` are
  /// missing, and of a long message all but the first 16 bytes may be.
  [[nodiscard]] Received receive(Packet& packet);

  /// Nothing more will be sent; the other end sees the end, and may still send.
  void finish_sending();

  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  enum class Sent { kSent, kFull, kGone };

  explicit Channel(UniqueFd socket);
  [[nodiscard]] Sent send_now(const Packet& packet);

  UniqueFd socket_;
  std::unique_ptr<char[]> buffer_;  ///< for what is received
  std::deque<Packet> kept_;
};

}  // namespace lictor::exec
