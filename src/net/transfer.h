#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <curl/curl.h>

#include "net/endpoint.h"
#include "net/transport.h"

namespace lictor::net {

/// The common part of all requests of a transport.
struct Client {
  Options options;
  std::vector<Endpoint> endpoints;
  std::string partition;  ///< "partition=NAME", percent-encoded; empty: none
};

/// What its files hold now.
struct FileTexts {
  std::string token;
  std::string ca_bundle;  ///< PEM, of ca_path
};

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

/// One request on its way, with the libcurl handle that carries it; both are used again. A passive
/// object of the network thread.
///
///          prepare()                   the connection stands
///   idle ------------> not handed over ----------------------> handed over
///     ^                       | failed: kNotSent                    | failed: kLost
///     +-----------------------+-------------------------------------+ whole reply: kReplied
///
/// libcurl calls on_handover() when a connection stands and before the first byte of the request.
/// That is the line between kNotSent and kLost. It is also where a second sending is refused:
/// libcurl by itself repeats a request when a kept connection closes without a reply, and a
/// transaction that was carried out the first time would then come back as rejected.
class Transfer {
 public:
  /// More than any sensible state of Consul; a longer body would exhaust the daemon's memory.
  static constexpr std::size_t kMaxBodyBytes = std::size_t{512} << 20U;

  Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() = default;

  /// Takes a new request.
  void begin(RequestId id, Request request, Callback done, Instant sent_at);
  /// Asks a watch, anew after an answer, to be held by Consul for `wait`.
  void begin_turn(Instant now, std::chrono::milliseconds wait);

  /// Sets the handle up for one attempt at `client.endpoints[endpoint]`, with `time_left` for it.
  void prepare(const Client& client, std::size_t endpoint, const FileTexts& files,
               std::chrono::milliseconds time_left);

  /// Reads libcurl's verdict on the attempt into `response`.
  void conclude(CURLcode code, const Client& client);

  /// Adds a reason to response.error, after those of earlier addresses.
  void add_error(const std::string& reason);
  /// The part of an error that says that an unanswered request may have been carried out; empty for
  /// one that only reads.
  [[nodiscard]] std::string doubt() const;

  /// Forgets the request, keeps the handle and its buffers.
  void reset();

  /// Changes nothing in Consul.
  [[nodiscard]] bool is_read() const;

  [[nodiscard]] CURL* easy() const { return easy_.get(); }

  RequestId id;
  Request request;
  Callback done;
  Response response;
  Instant deadline{};
  Instant launched{};  ///< the last attempt
  std::size_t endpoint = 0;
  std::uint64_t tried = 0;  ///< a bit for each address
  bool running = false;     ///< in the multi handle

 private:
  static int on_handover(void* self, char*, char*, int, int);
  static std::size_t on_header(const char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(const char* data, std::size_t size, std::size_t count, void* self);

  template <class Value>
  void set(CURLoption option, Value value);
  void set_connection(const Client& client, const Endpoint& to);
  void set_method();
  void set_headers(const Options& options, const std::string& token);
  void add_header(const std::string& line);
  [[nodiscard]] bool certificate_refused() const;
  [[nodiscard]] std::string lateness() const;
  [[nodiscard]] std::string reason(CURLcode code, const std::string& server) const;

  std::unique_ptr<CURL, FreeEasy> easy_;
  std::unique_ptr<curl_slist, FreeEasy> headers_;
  std::unique_ptr<curl_slist, FreeEasy> connect_to_;
  std::string url_;
  std::chrono::milliseconds time_{};  ///< for an answer
  std::string wait_;                  ///< of a watch: "&wait=500ms"
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  bool handed_over_ = false;
  bool head_complete_ = false;  ///< of the last head begun: its empty line was seen
  std::chrono::milliseconds connect_within_{};
  bool repeat_refused_ = false;
  bool too_large_ = false;
};

}  // namespace lictor::net
