#include "exec/warden_protocol.h"

#include <concepts>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

namespace lictor::exec {
namespace {

template <class M, class T>
concept Is = std::same_as<std::remove_const_t<M>, T>;

// The members of each message that is not Plain, in the order in which they travel.
auto members(Is<Limit> auto& limit) { return std::tie(limit.resource, limit.soft, limit.hard); }
auto members(Is<Credentials> auto& user) { return std::tie(user.uid, user.gid, user.groups); }
auto members(Is<Program> auto& program) {
  return std::tie(program.argv, program.environment, program.directory, program.user,
                  program.limits);
}
auto members(Is<Spawn> auto& spawn) {
  return std::tie(spawn.attempt, spawn.slot, spawn.ends_with_lease, spawn.grace,
                  spawn.handover_folder, spawn.handover_files, spawn.is_worker, spawn.program);
}
auto members(Is<LeaseChanged> auto&) { return std::tie(); }
auto members(Is<HeldLock> auto& lock) {
  return std::tie(lock.slot, lock.session, lock.index, lock.value, lock.partitions);
}
auto members(Is<SpawnFailed> auto& failed) {
  return std::tie(failed.attempt, failed.step, failed.error);
}
auto members(Is<Started> auto& started) { return std::tie(started.attempt, started.pid); }
auto members(Is<Exited> auto& exited) {
  return std::tie(exited.attempt, exited.code, exited.status, exited.cause);
}

// Numbers, and structs of numbers without padding. Both ends are one binary on one machine, so
// these travel as they lie in memory.
template <class T>
concept Plain = std::has_unique_object_representations_v<T>;

// A message: the index of its type in the variant, one byte, then its members one after the other;
// texts and lists begin with their length in 32 bits. The warden is the more privileged end, so the
// Reader trusts nothing: bytes cut short, or too many, are no message.
class Writer {
 public:
  void put(const Plain auto& number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void put(const std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  template <class T>
  void put(const std::vector<T>& items) {
    put(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items) put(item);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class Message>
  requires(!Plain<Message>) && requires(const Message& message) { members(message); }
  void put(const Message& message) {
    std::apply([&](const auto&... each) { (put(each), ...); }, members(message));
  }

  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  void get(Plain auto& number) {
    if (rest_.size() < sizeof(number)) return spoil();
    std::memcpy(&number, rest_.data(), sizeof(number));
    rest_.remove_prefix(sizeof(number));
  }
  void get(bool& flag) {
    std::uint8_t number = 0;
    get(number);
    if (number > 1) return spoil();
    flag = number != 0;
  }
  void get(std::string& text) {
    std::uint32_t size = 0;
    get(size);
    if (rest_.size() < size) return spoil();
    text = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  template <class T>
  void get(std::vector<T>& items) {
    std::uint32_t count = 0;
    get(count);
    for (; count > 0 && good_; --count) get(items.emplace_back());
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool has_value = false;
    get(has_value);
    if (has_value) get(value.emplace());
  }
  template <class Message>
  requires(!Plain<Message>) && requires(Message& message) { members(message); }
  void get(Message& message) {
    std::apply([&](auto&... each) { (get(each), ...); }, members(message));
  }

  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }

 private:
  void spoil() {
    good_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool good_ = true;
};

template <class Variant>
std::string encode_any(const Variant& message) {
  Writer out;
  out.put(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& alternative) { out.put(alternative); }, message);
  return out.take();
}

template <class Variant, std::size_t I = 0>
std::optional<Variant> decode_any(std::string_view bytes) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return std::nullopt;
  } else {
    if (bytes.empty()) return std::nullopt;
    if (static_cast<std::uint8_t>(bytes.front()) != I) return decode_any<Variant, I + 1>(bytes);
    Reader in{bytes.substr(1)};
    std::variant_alternative_t<I, Variant> alternative{};
    in.get(alternative);
    if (!in.complete()) return std::nullopt;
    return alternative;
  }
}

}  // namespace

std::string encode(const Order& order) { return encode_any(order); }
std::string encode(const Report& report) { return encode_any(report); }

std::optional<Order> decode_order(std::string_view bytes) { return decode_any<Order>(bytes); }
std::optional<Report> decode_report(std::string_view bytes) { return decode_any<Report>(bytes); }

AttemptId spawn_head(std::string_view bytes) {
  AttemptId id;
  if (bytes.empty() || static_cast<std::uint8_t>(bytes.front()) != Order{Spawn{}}.index())
    return id;
  Reader{bytes.substr(1)}.get(id);
  return id;
}

}  // namespace lictor::exec
