#include <functional>
#include <regex>
#include <set>
#include <string_view>
#include <tuple>

#include "consul_agent.h"
#include "process.h"
#include "same_answers.h"

namespace lictor::live {
namespace {

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
  /// Returns whether the two differed so; then it has made them alike.
  std::function<bool(const std::string& target, http::Response& real, http::Response& said)>
      take_out;
};

struct KnownHeader {
  Version since;
  const char* name;
  const char* value;
};

constexpr std::string_view kNoUuid =
    "failed session lookup: index error: UUID must be 36 characters";

const std::vector<KnownAnswer> kAnswers{
    {{1, 9, 0},
     "a refused write says that it was not applied",
     [](const std::string&, http::Response& real, http::Response& said) {
       for (const std::string_view prefix : {"raft apply failed: ", "apply failed: "}) {
         if (said.status != 500 || !real.body.starts_with(prefix)) continue;
         real.body.erase(0, prefix.size());
         return true;
       }
       return false;
     }},
    {{1, 9, 0},
     "a session whose id is no UUID is one that does not exist, in place of an error",
     [](const std::string& target, http::Response& real, http::Response& said) {
       if (said.body.find(kNoUuid) == std::string::npos) return false;
       for (const auto& [path, status, body] :
            {std::tuple{"/v1/session/info/", 200, std::string{"[]"}},
             std::tuple{"/v1/session/destroy/", 200, std::string{"true"}},
             std::tuple{"/v1/session/renew/", 404,
                        "Session id '" + target.substr(target.rfind('/') + 1) + "' not found"}}) {
         if (!target.starts_with(path) || real.status != status || real.body != body) continue;
         said = real;
         real.consul_index = said.consul_index = 0;  // of all sessions, which says nothing here
         return true;
       }
       // 'invalid session "short"', in the answer of a transaction with a backslash before quotes.
       static const std::regex kInvalid{R"(invalid session \\?"[^"\\]{0,35}\\?")"};
       real.body = std::regex_replace(real.body, kInvalid, std::string{kNoUuid});
       return real.body.find(kNoUuid) != std::string::npos;
     }},
    {{1, 9, 0},
     "a transaction that only reads tells its index and more of how it was answered",
     [](const std::string& target, http::Response& real, http::Response& said) {
       if (!target.starts_with("/v1/txn")) return false;
       json theirs = json::parse(real.body, nullptr, false);
       const json ours = json::parse(said.body, nullptr, false);
       if (!theirs.is_object() || !ours.is_object() || !ours.contains("ConsistencyLevel")) {
         return false;
       }
       const json before = theirs;
       theirs["Index"] = ours["Index"];
       if (real.status == 409 && theirs["KnownLeader"] == false &&
           real.body.find("Must provide key") != std::string::npos) {
         // This is refused before a server is asked, so no leader is named.
         theirs["KnownLeader"] = ours["KnownLeader"];
         real.known_leader = said.known_leader;
       }
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
    {{1, 17, 0}, "content-type", "text/plain; charset=utf-8"},  // of an answer without a body
};

std::set<std::string>& seen() {
  static std::set<std::string> lines;
  return lines;
}

}  // namespace

std::size_t operations_of_a_transaction() {
  return consul_version() < Version{1, 14, 0} ? 64 : 128;
}

void take_out_known(const std::string& target, http::Response& real, http::Response& said) {
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
