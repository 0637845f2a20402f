#pragma once

// How lictor uses libcurl: the same for Consul's agents and for the receivers of http executors.

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <curl/curl.h>

namespace lictor {

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlList = std::unique_ptr<curl_slist, FreeList>;

struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
using CurlMulti = std::unique_ptr<CURLM, FreeMulti>;

/// Null: libcurl cannot start.
[[nodiscard]] inline CurlMulti new_curl_multi() {
  static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
  return CurlMulti{global == CURLE_OK ? curl_multi_init() : nullptr};
}

/// PEM files; the strings must outlive the call that takes this.
struct TlsSetup {
  const std::string& ca_file;      ///< wins over `ca_bundle`; both empty: the system's CAs
  const std::string& ca_bundle;    ///< the certificates themselves
  const std::string& client_cert;  ///< empty: none
  const std::string& client_key;
  bool verify = true;
};

/// How long libcurl may use its copy of ca_file, and keep a connection. Its own default for the
/// first is a day.
inline constexpr std::chrono::seconds kTrustedFor{60};

/// When a silent connection is probed first, and how often from then on. The third probe without an
/// answer ends it.
struct KeepAlive {
  std::chrono::seconds idle, interval;
};

/// One request with libcurl's handle for it. The derived class makes it a friend and has:
///
///   bool on_handover(int local_port);       // a connection stands; false: don't send
///   bool on_header(std::string_view line);  // false: end the request
///   bool on_body(std::string_view bytes);   // false: end the request
///
/// libcurl calls on_handover() when a connection stands and before the first byte of the request.
/// This is also where a second sending is refused: libcurl by itself repeats a request when a kept
/// connection closes without a reply, and the receiver may have carried out the first.
class CurlRequest {
 public:
  CurlRequest(const CurlRequest&) = delete;
  CurlRequest& operator=(const CurlRequest&) = delete;

  [[nodiscard]] CURL* easy() const { return easy_.get(); }

 protected:
  CurlRequest() : easy_(curl_easy_init()) {}
  ~CurlRequest() = default;

  void forget() {
    curl_easy_reset(easy());
    headers_.reset();
  }

  /// Forgets the last request, and sets all options that do not depend on the next one.
  template <class Derived>
  void set_up(Derived* self, KeepAlive alive) {
    forget();
    setup_ = CURLE_OK;
    handed_over_ = repeat_refused_ = head_complete_ = false;
    error_text_.front() = '\0';
    set(CURLOPT_PRIVATE, self);
    set(CURLOPT_ERRORBUFFER, error_text_.data());
    set_callbacks(self);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    // Under HTTP/2 a long poll would share its connection with other requests, and cancelling it
    // would no longer close it.
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    // A redirect is the caller's mistake, not to be hidden.
    set(CURLOPT_FOLLOWLOCATION, 0L);
    // Only the configuration decides where requests go, not the daemon's environment. A proxy holds
    // replies back and cuts long polls short.
    set(CURLOPT_PROXY, "");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_TCP_KEEPIDLE, static_cast<long>(alive.idle.count()));
    set(CURLOPT_TCP_KEEPINTVL, static_cast<long>(alive.interval.count()));
    // Without this, removing a request whose name is being looked up waits for the resolver, and
    // with it every other request.
    set(CURLOPT_QUICK_EXIT, 1L);
    add_header("Expect:");  // otherwise a large body waits a second for a "100 Continue"
  }

  void set_tls(const TlsSetup& tls, std::chrono::seconds trusted_for) {
    const auto seconds = static_cast<long>(trusted_for.count());
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(CURLOPT_SSL_VERIFYPEER, tls.verify ? 1L : 0L);
    set(CURLOPT_SSL_VERIFYHOST, tls.verify ? 2L : 0L);
    set(CURLOPT_CA_CACHE_TIMEOUT, seconds);
    // A resumed session or a reused connection was trusted by older files.
    set(CURLOPT_SSL_SESSIONID_CACHE, 0L);
    set(CURLOPT_MAXLIFETIME_CONN, seconds);
    if (!tls.ca_file.empty()) {
      set(CURLOPT_CAINFO, tls.ca_file.c_str());
    } else if (!tls.ca_bundle.empty()) {
      curl_blob bundle{const_cast<char*>(tls.ca_bundle.data()), tls.ca_bundle.size(),
                       CURL_BLOB_COPY};
      set(CURLOPT_CAINFO_BLOB, &bundle);
    }
    if (!tls.ca_file.empty() || !tls.ca_bundle.empty()) {
      set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // or the system's CAs count, too
    }
    if (!tls.client_cert.empty()) {
      set(CURLOPT_SSLCERT, tls.client_cert.c_str());
      set(CURLOPT_SSLKEY, tls.client_key.c_str());
    }
  }

  /// `body` must outlive the request. Head and body leave in one packet.
  void set_body(std::string_view body) {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_POSTFIELDS, body.data());
  }

  /// An empty `value` is sent as empty: libcurl takes "name:" for "leave it out".
  void add_header(const std::string& name, const std::string& value) {
    add_header(name + (value.empty() ? ";" : ": ") + value);
  }
  /// "name:" leaves a header out that libcurl would send by itself.
  void add_header(const std::string& line) {
    curl_slist* const list = curl_slist_append(headers_.get(), line.c_str());
    if (list == nullptr) {
      setup_ = CURLE_OUT_OF_MEMORY;
      return;
    }
    static_cast<void>(headers_.release());  // NOLINT(bugprone-unused-return-value): `list` is it.
    headers_.reset(list);
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(easy(), option, value);
    if (setup_ == CURLE_OK) setup_ = code;
  }

  /// Sets the added headers. Returns the first failure since set_up(): libcurl lacks an option, or
  /// memory is out.
  [[nodiscard]] CURLcode finish_setup() {
    set(CURLOPT_HTTPHEADER, headers_.get());
    return setup_;
  }

  /// For on_handover().
  [[nodiscard]] bool hand_over(bool may_repeat) {
    repeat_refused_ = handed_over_ && !may_repeat;
    handed_over_ = true;
    return !repeat_refused_;
  }

  std::array<char, CURL_ERROR_SIZE> error_text_{};
  bool handed_over_ = false;
  bool repeat_refused_ = false;
  bool head_complete_ = false;  ///< of the last head begun: its empty line was seen

 private:
  struct FreeEasy {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };

  template <class Derived>
  void set_callbacks(Derived* self) {
    set(CURLOPT_PREREQDATA, self);
    set(
        CURLOPT_PREREQFUNCTION, +[](void* to, char*, char*, int, int local_port) -> int {
          return static_cast<Derived*>(to)->on_handover(local_port) ? CURL_PREREQFUNC_OK
                                                                    : CURL_PREREQFUNC_ABORT;
        });
    set(CURLOPT_HEADERDATA, self);
    set(
        CURLOPT_HEADERFUNCTION,
        +[](const char* data, std::size_t size, std::size_t count, void* to) -> std::size_t {
          auto& request = *static_cast<Derived*>(to);
          const std::string_view line{data, size * count};
          // The last of several heads counts (an interim 1xx may come before the reply).
          if (line.starts_with("HTTP/")) request.head_complete_ = false;
          if (line == "\r\n" || line == "\n") request.head_complete_ = true;
          return request.on_header(line) ? line.size() : 0;
        });
    set(CURLOPT_WRITEDATA, self);
    set(
        CURLOPT_WRITEFUNCTION,
        +[](const char* data, std::size_t size, std::size_t count, void* to) -> std::size_t {
          return static_cast<Derived*>(to)->on_body({data, size * count}) ? size * count : 0;
        });
  }

  std::unique_ptr<CURL, FreeEasy> easy_;
  CurlList headers_;
  CURLcode setup_ = CURLE_OK;
};

}  // namespace lictor
