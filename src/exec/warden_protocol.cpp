#include "exec/warden_protocol.h"

#include <cstring>
#include <type_traits>
#include <utility>

namespace lictor::exec {
namespace {

// Both ends are one binary and one machine, so numbers go as they lie in memory.
class Writer {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number)); }
  template <class E>
  requires std::is_enum_v<E>
  void put(E value) { put(static_cast<std::underlying_type_t<E>>(value)); }
  void put(AttemptId id) { put(id.value); }
  void put(Duration duration) { put(duration.count()); }
  void put(const std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  void put(const Limit& limit) {
    put(limit.resource);
    put(limit.soft);
    put(limit.hard);
  }
  template <class T>
  void put(const std::vector<T>& items) {
    put(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items) put(item);
  }

  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  void get(T& number) {
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
  template <class E>
  requires std::is_enum_v<E>
  void get(E& value) {
    std::underlying_type_t<E> number{};
    get(number);
    value = static_cast<E>(number);
  }
  void get(AttemptId& id) { get(id.value); }
  void get(Duration& duration) {
    Duration::rep count = 0;
    get(count);
    duration = Duration{count};
  }
  void get(std::string& text) {
    std::uint32_t size = 0;
    get(size);
    if (rest_.size() < size) return spoil();
    text = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  void get(Limit& limit) {
    get(limit.resource);
    get(limit.soft);
    get(limit.hard);
  }
  template <class T>
  void get(std::vector<T>& items) {
    std::uint32_t count = 0;
    get(count);
    for (; count > 0 && good_; --count) get(items.emplace_back());
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

void put(Writer& out, const Spawn& spawn) {
  out.put(spawn.attempt);
  out.put(spawn.slot);
  out.put(spawn.ends_with_lease);
  out.put(spawn.grace);
  out.put(spawn.handover_folder);
  out.put(spawn.handover_files);
  out.put(spawn.program.argv);
  out.put(spawn.program.environment);
  out.put(spawn.program.directory);
  out.put(spawn.program.user.has_value());
  if (spawn.program.user) {
    out.put(spawn.program.user->uid);
    out.put(spawn.program.user->gid);
    out.put(spawn.program.user->groups);
  }
  out.put(spawn.program.limits);
}

void get(Reader& in, Spawn& spawn) {
  bool other_user = false;
  in.get(spawn.attempt);
  in.get(spawn.slot);
  in.get(spawn.ends_with_lease);
  in.get(spawn.grace);
  in.get(spawn.handover_folder);
  in.get(spawn.handover_files);
  in.get(spawn.program.argv);
  in.get(spawn.program.environment);
  in.get(spawn.program.directory);
  in.get(other_user);
  if (other_user) {
    Credentials& user = spawn.program.user.emplace();
    in.get(user.uid);
    in.get(user.gid);
    in.get(user.groups);
  }
  in.get(spawn.program.limits);
}

void put(Writer& out, const Stop& stop) {
  out.put(stop.attempt);
  out.put(stop.grace);
}
void get(Reader& in, Stop& stop) {
  in.get(stop.attempt);
  in.get(stop.grace);
}

void put(Writer&, const LeaseChanged&) {}
void get(Reader&, LeaseChanged&) {}

void put(Writer& out, const HeldLock& lock) {
  out.put(lock.slot);
  out.put(lock.session);
  out.put(lock.index);
  out.put(lock.value);
}
void get(Reader& in, HeldLock& lock) {
  in.get(lock.slot);
  in.get(lock.session);
  in.get(lock.index);
  in.get(lock.value);
}

void put(Writer& out, const SpawnFailed& failed) {
  out.put(failed.attempt);
  out.put(failed.step);
  out.put(failed.error);
}
void get(Reader& in, SpawnFailed& failed) {
  in.get(failed.attempt);
  in.get(failed.step);
  in.get(failed.error);
}

void put(Writer& out, const Exited& exited) {
  out.put(exited.attempt);
  out.put(exited.code);
  out.put(exited.status);
  out.put(exited.cause);
}
void get(Reader& in, Exited& exited) {
  in.get(exited.attempt);
  in.get(exited.code);
  in.get(exited.status);
  in.get(exited.cause);
}

template <class Variant>
std::string encode_any(const Variant& message) {
  Writer out;
  out.put(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& alternative) { put(out, alternative); }, message);
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
    get(in, alternative);
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
