#pragma once

// The agent's, the catalog's, the health and the event endpoints, as far as lictor and common
// clients use them: nodes, their services, and checks of both. The agent's node is there from the
// beginning, and what is registered at the agent is in the catalog at once.
//
//   check by TTL: critical -> passing, warning (pass, warn, update) -> critical (expired)
//
// Other checks are not carried out: they stay as they are registered. There are no near=,
// node-meta= and filter=.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/http.h"
#include "base/random.h"
#include "dev/go_text.h"
#include "dev/state.h"

namespace lictor::dev {

class Catalog {
 public:
  Catalog(std::string node, std::uint64_t seed);

  struct Call {
    const http::Request& request;
    const Url& url;
    bool wait_over;
    Instant now;
  };
  [[nodiscard]] static bool has_path(const std::string& path);
  /// Of a method that the path takes (allowed_methods()). Nothing: a blocking query has to wait.
  [[nodiscard]] std::optional<http::Response> handle(State& state, const Call& call);

  /// Checks expire.
  void advance(State& state, Instant now);
  [[nodiscard]] Instant next_deadline() const;

  /// Why no session can be bound to these, in Consul's words; empty: one can.
  [[nodiscard]] std::string session_fault(const std::string& node,
                                          const std::vector<std::string>& checks) const;

 private:
  using json = nlohmann::ordered_json;  // the fields in Consul's order
  struct Service {
    std::string id, name, address;
    json tags = json::array();
    json meta;
    json tagged_addresses;  // null: none
    json weights{{"Passing", 1}, {"Warning", 1}};
    std::int64_t port = 0;
    bool enable_tag_override = false;
    std::uint64_t create_index = 0, modify_index = 0;
    bool of_agent = false;
  };
  struct Check {
    std::string id, name, status = "critical", notes, output, service_id, type;
    json service_tags = json::array();  // of when it was registered
    std::string synced_output;  // the catalog's, which the agent leaves as it is until more changes
    Duration ttl{};
    Instant expires = Instant::max();
    std::uint64_t create_index = 0, modify_index = 0;
    bool of_agent = false;
  };
  struct Node {
    std::string id, name, address;
    json tagged_addresses;
    json meta;
    std::uint64_t create_index = 0, modify_index = 0;
    std::map<std::string, Service> services;
    std::map<std::string, Check> checks;
  };
  struct Found {
    std::uint64_t index = 1;
    json body;
  };

  // Writes.
  [[nodiscard]] http::Response agent_write(State& state, const Call& call);
  [[nodiscard]] http::Response register_service(State& state, const Call& call);
  [[nodiscard]] http::Response register_check(State& state, const Call& call);
  [[nodiscard]] http::Response update_check(State& state, const Call& call, const std::string& id,
                                            const std::string& status, const std::string& output);
  /// Switches the maintenance of the node or of a service on or off.
  [[nodiscard]] http::Response maintain(State& state, const Call& call);
  [[nodiscard]] http::Response catalog_register(State& state, const json& body);
  [[nodiscard]] http::Response catalog_deregister(State& state, const json& body);
  [[nodiscard]] http::Response fire(State& state, const Call& call, const std::string& name);
  void put(State& state, Node& node, Service service);
  void put(State& state, Node& node, Check check);
  /// With the tags that its service has now.
  static void tag(const Node& node, Check& check);
  /// Of the agent: one that was there stays as it was told last.
  void put_again(State& state, Check check);
  /// Those of a service of the agent that are not among `kept`.
  void forget_checks(State& state, const std::string& service, const std::vector<Check>& kept);
  void remove_service(State& state, Node& node, const std::string& id);
  void remove_check(State& state, Node& node, const std::string& id);
  /// Whoever watches what the check is of is to look again.
  void touch(const Node& node, const Check& check, std::uint64_t index);

  // Reads.
  [[nodiscard]] std::optional<http::Response> agent_read(const Url& url) const;
  [[nodiscard]] http::Response self() const;
  [[nodiscard]] http::Response agent_health(const Url& url) const;
  /// A service of the agent with its checks and those of its node.
  [[nodiscard]] json agent_health_json(const Service& service) const;
  [[nodiscard]] std::optional<Found> read(const Url& url) const;
  [[nodiscard]] std::optional<Found> read_health(const Url& url) const;
  [[nodiscard]] json node_json(const Node& node) const;
  [[nodiscard]] json service_json(const Service& service, bool of_catalog) const;
  [[nodiscard]] json check_json(const Node& node, const Check& check, bool of_catalog) const;
  [[nodiscard]] json service_node_json(const Node& node, const Service& service) const;
  [[nodiscard]] json member_json(bool wan) const;
  [[nodiscard]] std::uint64_t service_index(const std::string& name) const;

  [[nodiscard]] Node& own() { return nodes_.at(node_); }
  [[nodiscard]] const Node& own() const { return nodes_.at(node_); }

  std::string node_;
  Random random_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, std::uint64_t> service_indexes_;  // by name
  std::uint64_t nodes_index_ = 1, services_index_ = 1, checks_index_ = 1;
  std::uint64_t extinction_index_ = 0;  // when the last instance of a service went
  json events_ = json::array();
  std::uint64_t events_index_ = 1;
  std::uint64_t events_time_ = 1;  // a Lamport clock
};

}  // namespace lictor::dev
