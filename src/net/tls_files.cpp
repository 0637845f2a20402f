#include "net/tls_files.h"

#include <filesystem>
#include <system_error>

#include "base/read_file.h"
#include "base/try.h"

namespace lictor::net {
namespace {

constexpr const char* kCertificate = "-----BEGIN CERTIFICATE-----";

tl::unexpected<Error> bad_file(const std::string& what, const std::string& path,
                               const std::string& expected) {
  return fail(ErrorCode::kInvalid, what + " \"" + path + "\": expected " + expected);
}

Result<std::string> read_pem(const std::string& what, const std::string& path,
                             const std::string& marker) {
  Result<std::string> text = read_small_file(what, path);
  if (text && text->find(marker) == std::string::npos) {
    return bad_file(what, path,
                    "PEM with \"" + marker + "\", found none; name the right file or convert it");
  }
  return text;
}

}  // namespace

Result<std::string> read_ca_path(const std::string& folder) {
  std::error_code error;
  std::string all;
  for (std::filesystem::recursive_directory_iterator it{folder, error}, end; !error && it != end;
       it.increment(error)) {
    if (it->is_directory(error)) continue;
    LICTOR_TRY(const auto text, read_pem("certificate in ca_path", it->path(), kCertificate));
    all += text + '\n';
  }
  if (error) {
    return fail(ErrorCode::kFailed, "ca_path \"" + folder +
                                        "\": expected a readable folder of certificates, got: " +
                                        error.message() + "; correct the path or its rights");
  }
  if (all.empty()) {
    return bad_file("ca_path", folder,
                    "certificates in PEM, found no file; put the CA's certificate there");
  }
  return all;
}

Result<void> check_tls_files(const Options& options) {
  if (options.client_key.empty() && !options.client_cert.empty()) {
    return bad_file("client_cert", options.client_cert,
                    "client_key (CONSUL_CLIENT_KEY) with it, got none; set both");
  }
  if (options.client_cert.empty() && !options.client_key.empty()) {
    return bad_file("client_key", options.client_key,
                    "client_cert (CONSUL_CLIENT_CERT) with it, got none; set both");
  }
  if (!options.client_cert.empty()) {
    LICTOR_TRY([[maybe_unused]] const auto cert,
               read_pem("client_cert", options.client_cert, kCertificate));
    LICTOR_TRY(const auto key, read_pem("client_key", options.client_key, "PRIVATE KEY-----"));
    // OpenSSL would ask for the key's pass phrase on the terminal.
    if (key.find("ENCRYPTED") != std::string::npos) {
      return bad_file(
          "client_key", options.client_key,
          "a key without a pass phrase, got an encrypted one; decrypt it with \"openssl "
          "pkey\" and protect the file by its rights");
    }
  }
  if (!options.ca_file.empty()) {
    LICTOR_TRY([[maybe_unused]] const auto ca, read_pem("ca_file", options.ca_file, kCertificate));
  }
  return {};
}

}  // namespace lictor::net
