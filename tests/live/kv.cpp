#include "kv.h"

#include <stdexcept>

#include <curl/curl.h>

namespace lictor::live {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string decode_base64(const std::string& text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const auto digit = kBase64.find(c);
    if (digit == std::string_view::npos) break;
    bits = (bits << 6U) | static_cast<std::uint32_t>(digit);
    if ((count += 6) >= 8) {
      count -= 8;
      bytes += static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xffU);
    }
  }
  return bytes;
}

std::string encode_base64(const std::string& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = (bits << 8U) | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += i + j <= bytes.size() ? kBase64[(bits >> (18U - 6U * j)) & 63U] : '=';
    }
  }
  return text;
}

KvEntry to_entry(const json& object) {
  KvEntry entry;
  entry.key = object.at("Key");
  if (object.at("Value").is_string()) entry.value = decode_base64(object.at("Value"));
  entry.session = object.value("Session", "");
  entry.create_index = object.at("CreateIndex");
  entry.modify_index = object.at("ModifyIndex");
  return entry;
}

std::size_t append(char* data, std::size_t size, std::size_t count, void* body) {
  static_cast<std::string*>(body)->append(data, size * count);
  return size * count;
}

std::size_t note_header(char* data, std::size_t size, std::size_t count, void* headers) {
  const std::string line(data, size * count);
  const std::size_t colon = line.find(": ");
  if (colon != std::string::npos) {
    auto& all = *static_cast<std::map<std::string, std::string>*>(headers);
    all[lower(line.substr(0, colon))] = line.substr(colon + 2, line.find("\r\n") - colon - 2);
  }
  return size * count;
}

}  // namespace

json HttpAnswer::json() const { return json::parse(body); }

Kv::Kv(std::string address, std::string token)
    : address_(std::move(address)), token_(std::move(token)), curl_(curl_easy_init()) {}

Kv::~Kv() { curl_easy_cleanup(curl_); }

HttpAnswer Kv::request(const std::string& method, const std::string& path,
                       const std::string& body) {
  HttpAnswer answer;
  const std::string url = address_ + path;
  curl_slist* headers = curl_slist_append(nullptr, "Expect:");
  if (!token_.empty()) headers = curl_slist_append(headers, ("X-Consul-Token: " + token_).c_str());
  curl_easy_reset(curl_);
  curl_easy_setopt(curl_, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl_, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl_, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl_, CURLOPT_TIMEOUT_MS, 20'000L);
  curl_easy_setopt(curl_, CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(curl_, CURLOPT_HTTPHEADER, headers);
  if (method == "HEAD") curl_easy_setopt(curl_, CURLOPT_NOBODY, 1L);
  if (method == "PUT" || !body.empty()) {
    curl_easy_setopt(curl_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(curl_, CURLOPT_POSTFIELDS, body.data());
  }
  curl_easy_setopt(curl_, CURLOPT_WRITEFUNCTION, &append);
  curl_easy_setopt(curl_, CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(curl_, CURLOPT_HEADERFUNCTION, &note_header);
  curl_easy_setopt(curl_, CURLOPT_HEADERDATA, &answer.headers);
  const CURLcode code = curl_easy_perform(curl_);
  curl_slist_free_all(headers);
  long status = 0;
  curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &status);
  if (code == CURLE_OK) {
    answer.status = static_cast<int>(status);
  } else {
    answer.body = curl_easy_strerror(code);
  }
  return answer;
}

json Kv::expect(const std::string& method, const std::string& path, const std::string& body) {
  const HttpAnswer answer = request(method, path, body);
  if (answer.status != 200) {
    throw std::runtime_error{method + " " + path + ": " + std::to_string(answer.status) + " " +
                             answer.body};
  }
  return answer.json();
}

std::string Kv::path_of(const std::string& key) const {
  std::string path = "/v1/kv/";
  std::size_t begin = 0;
  while (true) {
    const std::size_t slash = key.find('/', begin);
    const std::string part = key.substr(begin, slash - begin);
    if (!part.empty()) {
      char* escaped = curl_easy_escape(curl_, part.data(), static_cast<int>(part.size()));
      path += escaped;
      curl_free(escaped);
    }
    if (slash == std::string::npos) return path;
    path += '/';
    begin = slash + 1;
  }
}

void Kv::put(const std::string& key, const std::string& value) {
  if (expect("PUT", path_of(key), value) != true) throw std::runtime_error{"PUT " + key};
}

std::uint64_t Kv::set(const std::string& key, const std::string& value) {
  const json verb{{"Verb", "set"}, {"Key", key}, {"Value", encode_base64(value)}};
  const json reply = expect("PUT", "/v1/txn", json::array({{{"KV", verb}}}).dump());
  return reply.at("Results").at(0).at("KV").at("ModifyIndex");
}

std::optional<KvEntry> Kv::get(const std::string& key) {
  const HttpAnswer answer = request("GET", path_of(key) + "?consistent");
  if (answer.status == 404) return std::nullopt;
  if (answer.status != 200) throw std::runtime_error{"GET " + key + ": " + answer.body};
  return to_entry(answer.json().at(0));
}

json Kv::get_json(const std::string& key) {
  const auto entry = get(key);
  return entry ? json::parse(entry->value, nullptr, false) : json{};
}

void Kv::remove(const std::string& key) { static_cast<void>(expect("DELETE", path_of(key))); }

std::vector<KvEntry> Kv::list(const std::string& prefix) {
  const HttpAnswer answer = request("GET", path_of(prefix) + "?consistent&recurse");
  std::vector<KvEntry> entries;
  if (answer.status == 404) return entries;
  if (answer.status != 200) throw std::runtime_error{"list " + prefix + ": " + answer.body};
  for (const json& object : answer.json()) {
    KvEntry entry = to_entry(object);
    if (!entry.key.ends_with('/')) entries.push_back(std::move(entry));
  }
  return entries;
}

std::string Kv::create_session(const std::string& name, const std::string& lock_delay) {
  const json body{{"Name", name}, {"TTL", "600s"}, {"LockDelay", lock_delay}};
  return expect("PUT", "/v1/session/create", body.dump()).at("ID");
}

void Kv::destroy_session(const std::string& session) {
  static_cast<void>(expect("PUT", "/v1/session/destroy/" + session));
}

bool Kv::acquire(const std::string& key, const std::string& session, const std::string& value) {
  return expect("PUT", path_of(key) + "?acquire=" + session, value).get<bool>();
}

bool Kv::release(const std::string& key, const std::string& session) {
  return expect("PUT", path_of(key) + "?release=" + session).get<bool>();
}

std::vector<std::string> Kv::sessions(const std::string& name) {
  std::vector<std::string> ids;
  for (const json& session : expect("GET", "/v1/session/list?consistent")) {
    if (session.value("Name", "") == name) ids.push_back(session.at("ID"));
  }
  return ids;
}

std::map<std::string, int> shares_of(Kv& kv, const std::string& leader_key, int partitions) {
  std::map<std::string, int> shares;
  int led = 0;
  for (const KvEntry& lock : kv.list(leader_key + '/' + std::to_string(partitions) + '/')) {
    if (lock.session.empty()) continue;
    ++shares[json::parse(lock.value).value("node", "")];
    ++led;
  }
  return led == partitions ? shares : std::map<std::string, int>{};
}

}  // namespace lictor::live
