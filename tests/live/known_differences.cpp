#include "known_differences.h"

#include <cstdio>
#include <functional>
#include <set>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "consul_agent.h"
#include "process.h"

namespace lictor::live {
namespace {

using nlohmann::json;

using Version = std::tuple<int, int, int>;

Version consul_version() {
  static const Version version = [] {
    int major = 0;
    int minor = 0;
    int patch = 0;
    const Output said = run({consul_binary(), "version"});
    std::sscanf(said.out.c_str(), "Consul v%d.%d.%d", &major, &minor, &patch);
    return Version{major, minor, patch};
  }();
  return version;
}

struct KnownAnswer {
  Version since;
  const char* what;
  /// Whether it was so; then `real` has the form of 1.8.7 now.
  std::function<bool(const std::string& target, http::Response& real, const http::Response& said)>
      take_out;
};

struct KnownHeader {
  Version since;
  const char* name;
  const char* value;
};

const std::vector<KnownAnswer> kAnswers{
    {{1, 11, 0},
     "a path that is no endpoint is named so in the 404",
     [](const std::string&, http::Response& real, const http::Response& said) {
       if (real.status != 404 || !said.body.empty() ||
           real.body != "Invalid URL path: not a recognized HTTP API endpoint\n") {
         return false;
       }
       real.body.clear();
       return true;
     }},
    {{1, 9, 0},
     "the sessions of an unknown node have the index of all sessions",
     [](const std::string& target, http::Response& real, const http::Response& said) {
       if (target != "/v1/session/node/none" || real.consul_index == said.consul_index) {
         return false;
       }
       real.consul_index = said.consul_index;
       return true;
     }},
    {{1, 9, 0},
     "a transaction that only reads tells its index and more of how it was answered",
     [](const std::string& target, http::Response& real, const http::Response& said) {
       if (!target.starts_with("/v1/txn")) return false;
       json theirs = json::parse(real.body, nullptr, false);
       const json ours = json::parse(said.body, nullptr, false);
       if (!theirs.is_object() || !ours.is_object() || !ours.contains("ConsistencyLevel")) {
         return false;
       }
       const json before = theirs;
       theirs["Index"] = ours["Index"];
       for (const char* field : {"NotModified", "Backend", "ResultsFilteredByACLs"}) {
         theirs.erase(field);
       }
       if (theirs == before) return false;
       real.body = theirs.dump();
       return true;
     }},
};

const std::vector<KnownHeader> kHeaders{
    {{1, 9, 0}, "x-consul-default-acl-policy", "allow"},
    {{1, 11, 0}, "x-consul-query-backend", "blocking-query"},
};

std::set<std::string>& seen() {
  static std::set<std::string> lines;
  return lines;
}

}  // namespace

void take_out_known(const std::string& target, http::Response& real, const http::Response& said) {
  for (const KnownAnswer& known : kAnswers) {
    if (consul_version() < known.since) continue;
    if (known.take_out(target, real, said)) seen().insert(known.what);
  }
}

void take_out_known(std::map<std::string, std::string>& real,
                    const std::map<std::string, std::string>& said) {
  for (const KnownHeader& known : kHeaders) {
    const auto it = real.find(known.name);
    if (consul_version() < known.since || it == real.end() || it->second != known.value ||
        said.contains(known.name)) {
      continue;
    }
    real.erase(it);
    seen().insert(std::string{"the header "} + known.name + ": " + known.value);
  }
}

std::string differences_seen() {
  std::string text;
  for (const std::string& line : seen()) text += "  " + line + '\n';
  return text;
}

}  // namespace lictor::live
