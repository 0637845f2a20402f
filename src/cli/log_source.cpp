#include "cli/log_source.h"

#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "cli/admin_client.h"
#include "exec/output_log.h"
#include "exec/stored_logs.h"
#include "wire/json_text.h"
#include "wire/layout.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kLookEvery = 200ms;
constexpr std::size_t kMaxBytes = 1U << 20U;

class RemoteLogs : public LogSource {
 public:
  RemoteLogs(AdminClient face, std::string target)
      : face_(std::move(face)), target_(std::move(target)) {}

  Result<std::vector<LogEntry>> list() override {
    auto body = face_.get(target_);
    if (!body) return tl::unexpected(std::move(body.error()));
    const auto answer = wire::parse_json(*body);
    const json logs = answer && answer->is_object() ? answer->value("logs", json{}) : json{};
    if (!logs.is_array())
      return fail(ErrorCode::kFailed, "expected a list of logs, got another answer");
    std::vector<LogEntry> entries;
    for (const json& log : logs) {
      const auto number = [&](const char* name) -> std::uint64_t {
        const auto it = log.find(name);
        return it != log.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
      };
      if (!log.is_object()) continue;
      const json running = log.value("running", json{});
      const json modified = log.value("modified", json{});
      entries.push_back({static_cast<std::uint32_t>(number("attempt")), number("token"),
                         number("size"), running.is_boolean() && running.get<bool>(),
                         modified.is_string() ? modified.get<std::string>() : std::string{}});
    }
    return entries;
  }

  Result<std::string> read(const LogEntry& log, std::uint64_t offset,
                           std::chrono::seconds wait) override {
    return face_.get(target_ + "&attempt=" + std::to_string(log.attempt) + "&token=" +
                         std::to_string(log.token) + "&offset=" + std::to_string(offset) +
                         "&wait=" + std::to_string(wait.count()),
                     wait);
  }

 private:
  AdminClient face_;
  const std::string target_;
};

class LocalLogs : public LogSource {
 public:
  LocalLogs(std::string directory, std::string queue, std::string id)
      : directory_(std::move(directory)), queue_(std::move(queue)), id_(std::move(id)) {}

  Result<std::vector<LogEntry>> list() override {
    auto logs = exec::stored_logs(directory_, queue_, id_, nullptr);
    if (!logs) return tl::unexpected(std::move(logs.error()));
    std::vector<LogEntry> entries;
    for (const exec::StoredLog& log : *logs) {
      entries.push_back({log.attempt, log.token, log.size, false, format_rfc3339(log.modified)});
    }
    return entries;
  }

  Result<std::string> read(const LogEntry& log, std::uint64_t offset,
                           std::chrono::seconds wait) override {
    const std::string path = exec::output_log_path(directory_, queue_, id_, log.attempt, log.token);
    auto bytes = exec::read_log(path, offset, kMaxBytes);
    if (bytes && bytes->empty() && wait > 0s) {
      std::this_thread::sleep_for(kLookEvery);
      bytes = exec::read_log(path, offset, kMaxBytes);
    }
    return bytes;
  }

 private:
  const std::string directory_, queue_, id_;
};

}  // namespace

Result<std::unique_ptr<LogSource>> remote_logs(std::vector<std::string> addresses,
                                               const std::string& queue, const std::string& id) {
  auto face = AdminClient::open(std::move(addresses));
  if (!face) return tl::unexpected(std::move(face.error()));
  return std::make_unique<RemoteLogs>(
      std::move(*face),
      "/v1/logs?queue=" + wire::query_value(queue) + "&id=" + wire::query_value(id));
}

std::unique_ptr<LogSource> local_logs(const std::string& state_dir, const std::string& queue,
                                      const std::string& id) {
  return std::make_unique<LocalLogs>(state_dir + "/logs", queue, id);
}

}  // namespace lictor::cli
