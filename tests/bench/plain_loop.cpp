// The loop that one writes first: what lictor is measured against.

#include <stdexcept>

#include <curl/curl.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "bench.h"

namespace lictor::bench {
namespace {

using nlohmann::json;

class LoopClient {
 public:
  LoopClient(std::string address, bool fresh)
      : address_(std::move(address)), curl_(curl_easy_init()) {
    curl_easy_setopt(curl_, CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L);
    curl_easy_setopt(curl_, CURLOPT_FORBID_REUSE, fresh ? 1L : 0L);
    curl_easy_setopt(curl_, CURLOPT_WRITEFUNCTION, &LoopClient::take);
    curl_easy_setopt(curl_, CURLOPT_WRITEDATA, &answer_);
  }
  ~LoopClient() { curl_easy_cleanup(curl_); }
  LoopClient(const LoopClient&) = delete;
  LoopClient& operator=(const LoopClient&) = delete;

  const std::string& call(const char* method, const std::string& path,
                          const std::string& body = {}) {
    answer_.clear();
    curl_easy_setopt(curl_, CURLOPT_URL, (address_ + path).c_str());
    curl_easy_setopt(curl_, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(curl_, CURLOPT_COPYPOSTFIELDS, body.c_str());
    if (std::string_view{method} == "GET") curl_easy_setopt(curl_, CURLOPT_HTTPGET, 1L);
    if (const CURLcode code = curl_easy_perform(curl_); code != CURLE_OK) {
      throw std::runtime_error{curl_easy_strerror(code)};
    }
    return answer_;
  }

 private:
  static std::size_t take(char* data, std::size_t size, std::size_t count, void* answer) {
    static_cast<std::string*>(answer)->append(data, size * count);
    return size * count;
  }

  std::string address_;
  CURL* curl_;
  std::string answer_;
};

}  // namespace

double plain_loop_rate(const live::ConsulAgent& consul, std::size_t count, bool fresh) {
  live::Kv kv{consul.address()};
  load(consul, "plain/tasks/", count, [](std::size_t i) { return task_record(i, "Noop"); });
  const std::string session = kv.create_session("plain loop", "1s");

  LoopClient client{consul.address(), fresh};
  const std::int64_t begin = live::monotonic_ns();
  const json listed = json::parse(client.call("GET", "/v1/kv/plain/tasks/?recurse"));
  for (const json& entry : listed) {
    const std::string path = "/v1/kv/" + entry["Key"].get<std::string>();
    json record = json::parse(*base64_decode(entry["Value"].get<std::string>()));
    record["taskTaken"] = "true";
    const std::string index = std::to_string(entry["ModifyIndex"].get<std::uint64_t>());
    if (!client.call("PUT", path + "?cas=" + index, record.dump()).starts_with("true")) {
      throw std::runtime_error{"the plain loop could not claim"};
    }
    // The job: nothing.
    client.call("DELETE", path);
    client.call("PUT", "/v1/session/renew/" + session);
  }
  const double seconds = live::seconds_between(begin, live::monotonic_ns());
  kv.destroy_session(session);
  return static_cast<double>(count) / seconds;
}

}  // namespace lictor::bench
