#include <nlohmann/json.hpp>

#include "app/config_internal.h"
#include "app/reload.h"
#include "config_text.h"

namespace lictor::app {
namespace {

using nlohmann::json;

Config config_of(const json& file) { return parsed(file.dump()); }

const json kBase = json::parse(R"({"queues": [{"executors": {"*": {"noop": {}}}}]})");

// Values that differ from the base, by object and key.
const json kChanges = json::parse(R"({
  "Top level": {
    "node": "other", "root": "other/", "state_dir": "/other", "hang_timeout": "3s",
    "log.level": "warn", "log.format": "json",
    "consul.addresses": ["http://127.0.0.2:8500"], "consul.token": "secret",
    "consul.token_file": "/token", "consul.basic_auth": "user:password", "consul.ca_file": "/ca",
    "consul.ca_path": "/cas", "consul.client_cert": "/cert", "consul.client_key": "/key",
    "consul.tls_server_name": "name", "consul.tls_verify": false, "consul.namespace": "space",
    "consul.partition": "space", "consul.register": false,
    "admin.listen": ["127.0.0.1:1"], "admin.token_file": "/token", "admin.names": ["other"],
    "admin.open": true, "logs.max_age": "1h", "logs.max_size": "1MiB"},
  "Queues": {
    "name": "other", "serialize_by": "/taskPara/x", "concurrency": 2, "prefetch": 2,
    "preload": "2s", "max_unacked": 2, "serialize_retries": false, "rate_limit.tasks": 5,
    "rate_limit.per": "2s", "rate_limit.burst": 2, "history": true, "history.keep": 5,
    "history.max_age": "1h", "max_losses": 5, "session_ttl": "20s", "session_checks": [],
    "renew_interval": "4s", "lock_delay": "40s", "request_timeout": "2s", "kill_grace": "4s",
    "drain_timeout": "1s", "partitions": 2, "weight": 2, "tasks_prefix": "a/",
    "dead_prefix": "a/", "done_prefix": "a/", "members_prefix": "a/", "schedules_prefix": "a/",
    "leader_key": "a", "control_key": "a", "timeout": "1s", "max_attempts": 5,
    "backoff.initial": "2s", "backoff.max": "1m", "backoff.factor": 3, "backoff.jitter": 0.5,
    "delivery": "at_most_once",
    "schedules": {"s": {"every": "1h", "task": {"taskType": "T"}}}}})");

json changed(const std::string& object, const std::string& key, const json& value) {
  json file = kBase;
  json& target = object == "Queues" ? file["queues"][0] : file;
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) {
    target[key] = value;
  } else {
    target[key.substr(0, dot)][key.substr(dot + 1)] = value;
  }
  // Adds keys that others need beside them.
  if (key == "consul.client_cert") target["consul"]["client_key"] = "/key";
  if (key == "consul.client_key") target["consul"]["client_cert"] = "/cert";
  if (key.starts_with("rate_limit.") && key != "rate_limit.tasks") {
    target["rate_limit"]["tasks"] = 100;
  }
  return file;
}

}  // namespace

TEST_CASE("a reload takes over exactly the settings that the manual says") {
  const Config running = config_of(kBase);
  for (const ObjectForm& object : configuration_forms()) {
    if (!kChanges.contains(object.name)) continue;
    const json& changes = kChanges.at(object.name);
    for (const KeyForm& key : object.keys) {
      CAPTURE(object.name + ": " + key.key);
      if (!changes.contains(key.key)) {
        // Objects, whose members are tried, and keys that are read on their own.
        CHECK(key.default_text.empty());
        continue;
      }
      Config next = config_of(changed(object.name, key.key, changes.at(key.key)));
      CHECK(hold_back(running, next).empty() == key.reloads);
    }
  }
}

TEST_CASE("each key has a form, and its default is what the parser takes") {
  for (const ObjectForm& object : configuration_forms()) {
    for (const KeyForm& key : object.keys) {
      CAPTURE(object.name + ": " + key.key);
      CHECK_FALSE(key.form.empty());
      const bool own = !key.default_text.empty() && key.default_text != "the queue's";
      if (!own || object.name == "Executors") continue;
      const json value = json::parse(key.default_text);
      const Config config = config_of(changed(object.name, key.key, value));
      CHECK(config.queues.size() == 1);
    }
  }
}

}  // namespace lictor::app
