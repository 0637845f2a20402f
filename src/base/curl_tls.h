#pragma once

// How libcurl trusts a server and names itself to it: the same for Consul's agents and for the
// receivers of http executors. A file of either that is replaced counts within a minute.

#include <chrono>
#include <string>

#include <curl/curl.h>

namespace lictor {

/// PEM files; the strings must outlive the call that takes them.
struct TlsSetup {
  const std::string& ca_file;      ///< wins over `ca_bundle`; both empty: the system's CAs
  const std::string& ca_bundle;    ///< the certificates themselves
  const std::string& client_cert;  ///< empty: none
  const std::string& client_key;
  bool verify = true;
};

/// How long libcurl may go by what it has read of ca_file, and keep a connection. Its own default
/// for the first is a day.
inline constexpr std::chrono::seconds kTrustedFor{60};

/// `set(option, value)` sets an option of one handle.
template <class Set>
void set_tls(const TlsSetup& tls, std::chrono::seconds trusted_for, Set set) {
  const auto seconds = static_cast<long>(trusted_for.count());
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_SSL_VERIFYPEER, tls.verify ? 1L : 0L);
  set(CURLOPT_SSL_VERIFYHOST, tls.verify ? 2L : 0L);
  set(CURLOPT_CA_CACHE_TIMEOUT, seconds);
  // A resumed session, and a connection that is used again, were trusted by older files.
  set(CURLOPT_SSL_SESSIONID_CACHE, 0L);
  set(CURLOPT_MAXLIFETIME_CONN, seconds);
  if (!tls.ca_file.empty()) {
    set(CURLOPT_CAINFO, tls.ca_file.c_str());
  } else if (!tls.ca_bundle.empty()) {
    curl_blob bundle{const_cast<char*>(tls.ca_bundle.data()), tls.ca_bundle.size(), CURL_BLOB_COPY};
    set(CURLOPT_CAINFO_BLOB, &bundle);
  }
  if (!tls.ca_file.empty() || !tls.ca_bundle.empty()) {
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // Else the system's CAs count, too.
  }
  if (!tls.client_cert.empty()) {
    set(CURLOPT_SSLCERT, tls.client_cert.c_str());
    set(CURLOPT_SSLKEY, tls.client_key.c_str());
  }
}

}  // namespace lictor
