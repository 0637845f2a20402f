#pragma once

// Refuses requests as a Consul newer than 1.8.7, or a proxy between a host and its Consul, does.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>

namespace lictor::live {

/// The rules of a NewerConsul; by default those of 1.8.7.
struct Strictness {
  /// The names that `/v1/kv` takes. k1_21_5: letters, digits and `,_./-?&=`, without `..`. k1_22:
  /// no space at an end, no `..`, no `%2e%2e`.
  enum class Names { kAny, k1_21_5, k1_22 };
  Names names = Names::kAny;
  bool refuses_slash_in_txn = false;  ///< keys that begin with `/`, since 1.22.4
  /// The connection of an answer that takes longer is closed; zero: never.
  std::chrono::milliseconds cut_after{};
  double reads_per_second = 0;       ///< those beyond are answered by 429; 0: no limit
  double writes_per_second = 0;      ///< those beyond are answered by 503; 0: no limit
  std::size_t connections = 0;       ///< those beyond are refused; 0: no limit
  bool resets_connections = false;   ///< as 1.8 does, in place of a 429
  std::size_t bytes_per_second = 0;  ///< of one answer; 0: no limit

  /// "names-1.21.5,slash,cut=5s,reads=20,writes=20,connections=200,resets,bytes=2000000"; throws
  /// for anything else.
  [[nodiscard]] static Strictness parse(std::string_view text);
  friend bool operator==(const Strictness&, const Strictness&) = default;
};

/// A proxy before a real Consul of 1.8.7 or newer that answers as a stricter one does. It speaks
/// HTTP/1.1, with a connection to that Consul for each of its clients'.
class NewerConsul {
 public:
  NewerConsul(int target_port, const Strictness& rules);
  ~NewerConsul();
  NewerConsul(const NewerConsul&) = delete;
  NewerConsul& operator=(const NewerConsul&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string address() const;

  struct Counts {
    std::size_t requests = 0;
    std::size_t names_refused = 0;
    /// Among them, the requests that had been refused before, to the byte.
    std::size_t names_refused_again = 0;
    std::size_t reads_refused = 0;
    std::size_t writes_refused = 0;
    std::size_t answers_cut = 0;
    std::size_t connections_refused = 0;
    std::size_t most_connections = 0;  ///< at one time
  };
  [[nodiscard]] Counts counts() const;
  /// The requests that were refused for a name, "GET /v1/kv/a%20b", each once.
  [[nodiscard]] std::set<std::string> refused_names() const;

 private:
  struct Link;
  struct Request;
  struct Refusal;
  class Bucket {
   public:
    explicit Bucket(double per_second) : per_second_(per_second), tokens_(per_second) {}
    [[nodiscard]] bool take();

   private:
    double per_second_;
    double tokens_;
    std::chrono::steady_clock::time_point filled_ = std::chrono::steady_clock::now();
  };

  void accept_all();
  void serve(Link& link);
  [[nodiscard]] bool pass_answer(Link& link, const Request& request);
  [[nodiscard]] Refusal refusal_for(const Request& request);
  [[nodiscard]] bool is_refused_name(std::string_view key) const;
  [[nodiscard]] bool wait_for_server(Link& link, std::chrono::steady_clock::time_point until);

  int target_port_;
  Strictness rules_;
  int port_ = 0;
  int listener_ = -1;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  Bucket reads_;
  Bucket writes_;
  Counts counts_;
  std::set<std::string> refused_names_;
  std::set<std::string> refused_requests_;  // with their bodies
  std::size_t open_ = 0;
  std::list<Link> links_;
  std::thread acceptor_;
};

}  // namespace lictor::live
