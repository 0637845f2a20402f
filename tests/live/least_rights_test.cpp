// The policies in consul/ are least: each of their rules is taken away in turn, and weakened, and
// the failure names it.

#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include "guarded_consul.h"
#include "world.h"

namespace lictor::live {
namespace {

struct Rule {
  std::string resource;
  std::string segment;
  std::string policy;

  [[nodiscard]] std::string name() const { return resource + " \"" + segment + '"'; }
  [[nodiscard]] std::string text() const { return name() + " { policy = \"" + policy + "\" }"; }
};

// The rules in force of consul/policy-<name>.hcl, in its order, as the file has them.
std::vector<Rule> rules_of(const std::string& name) {
  static const std::regex line{R"re(^(\w+) "([^"]*)" \{ policy = "(\w+)" \})re"};
  std::istringstream text{read_text(LICTOR_CONSUL_FOLDER "/policy-" + name + ".hcl")};
  std::vector<Rule> rules;
  for (std::string row; std::getline(text, row);) {
    std::smatch match;
    if (std::regex_match(row, match, line)) {
      rules.push_back({match[1], match[2], match[3]});
    } else {
      const bool is_comment = row.empty() || row.front() == '#';
      REQUIRE_MESSAGE(is_comment, "policy-" << name << ".hcl: cannot read " << row);
    }
  }
  return rules;
}

// The next lower right; empty: none at all.
std::string below(const std::string& policy) {
  if (policy == "write") return "read";
  return policy == "list" ? "read" : "";
}

std::string without_or_lower(const std::vector<Rule>& rules, std::size_t which,
                             const std::string& lower) {
  std::string text;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    Rule rule = rules[i];
    if (i == which) rule.policy = lower;
    if (!rule.policy.empty()) text += rule.text() + '\n';
  }
  return text;
}

// Each rule of a policy, taken away and, where there is a lower right, weakened to that.
struct Change {
  std::size_t which;
  std::string lower;  // empty: taken away
};

std::vector<Change> changes_of(const std::vector<Rule>& rules) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    changes.push_back({i, ""});
    if (const std::string lower = below(rules[i].policy); !lower.empty()) {
      changes.push_back({i, lower});
    }
  }
  return changes;
}

// The log lines of a daemon that lacks a rule; empty: it does not use the rule itself.
struct Complaint {
  std::string without;
  std::optional<std::string> weakened{};  // none: the same
};

// By the rule's name in policy-daemon.hcl. A rule that is missing here is one that nobody needs.
const std::map<std::string, Complaint>& daemon_complaints() {
  static const std::map<std::string, Complaint> all{
      {R"(session "NODE")", {"the token needs the rule session "}},
      {R"(key_prefix "lictor/default/tasks/")", {"listing the tasks: "}},
      {R"(key_prefix "lictor/default/dead/")", {"writing the dead letter: Permission denied"}},
      {R"(key_prefix "lictor/default/done/")", {"writing the history entry: Permission denied"}},
      {R"(key "lictor/default/leader")",
       {"watching the leader key: ", "acquiring the lock: Permission denied"}},
      {R"(key_prefix "lictor/default/members/")", {"this member's entry could not be written"}},
      {R"(key_prefix "lictor/default/schedules/")", {"listing the schedules: "}},
      {R"(key "lictor/default/control")", {"reading the control key: ", ""}},
      {R"(key "lictor/default/partitions")", {"the number of partitions may not be read", ""}},
      {R"(service "lictor")", {"no right to register the service"}},
      {R"(agent "NODE")", {""}}};  // for "lictor check" alone
  return all;
}

// The daemon works without these, but for one purpose.
const std::regex kMinorRules{R"re((service|agent) .*|.*(members/|schedules/|partitions)")re"};

// A daemon with a queue and a token of its own, whose rights lack something.
struct Trial {
  std::string title;
  std::string complaint;  // that its log must hold
  std::string rule;       // that "lictor check" must name; empty: none is missing
  bool works = true;      // the missing rule is a minor one
  std::string admin;      // the address of the daemon's admin API
  std::string policy;     // its id
  std::string full;       // the whole policy, for its queue
  std::unique_ptr<World> world;
  std::unique_ptr<LictorDaemon> daemon;
};

Trial make_trial(GuardedConsul& consul, int number, const Change& change) {
  const std::string name = "trial-" + std::to_string(number);
  std::vector<Rule> rules = rules_of("daemon");
  Trial trial;
  if (change.which < rules.size()) {
    const auto known = daemon_complaints().find(rules[change.which].name());
    REQUIRE_MESSAGE(known != daemon_complaints().end(),
                    "nobody is known to need " << rules[change.which].text());
    trial.complaint = known->second.without;
    if (!change.lower.empty()) trial.complaint = known->second.weakened.value_or(trial.complaint);
    trial.title = rules[change.which].text() + " -> " + change.lower;
    trial.works =
        trial.complaint.empty() || std::regex_match(rules[change.which].name(), kMinorRules);
  }
  for (Rule& rule : rules) {
    if (rule.segment == "NODE") rule.segment = consul.agent.node();
    if (rule.segment.starts_with("lictor/")) rule.segment.replace(0, 6, name);
  }
  if (change.which < rules.size()) trial.rule = rules[change.which].text();
  trial.full = without_or_lower(rules, rules.size(), "");
  trial.policy = consul.make_policy(name, without_or_lower(rules, change.which, change.lower));
  trial.world = std::make_unique<World>(consul.agent, name + "/");
  DaemonSettings settings = trial.world->settings("d");
  settings.token_file = trial.world->folder.file("token");
  write_secret(settings.token_file, consul.make_token(trial.policy).secret);
  settings.registers = true;
  settings.queue["history"] = true;
  trial.admin = "127.0.0.1:" + std::to_string(free_port());
  settings.admin = {trial.admin};
  trial.daemon = std::make_unique<LictorDaemon>(settings);
  consul.kv.put_json(name + "/default/tasks/good", json{{"taskType", "Record"}});
  consul.kv.put(name + "/default/tasks/bad", "bad");
  return trial;
}

bool is_ready(const Trial& trial) {
  return Kv{"http://" + trial.admin}.request("GET", "/readyz").status == 200;
}

TEST_CASE("a daemon needs each rule of its policy, names a missing one, and goes on with it") {
  // Makes "list" count, too.
  GuardedConsul consul{{{"acl", {{"enable_key_list_policy", true}}}}};
  const std::vector<Rule> rules = rules_of("daemon");
  REQUIRE(rules.size() >= daemon_complaints().size());
  std::vector<Trial> trials;
  trials.push_back(make_trial(consul, 0, {rules.size(), ""}));
  for (const Change& change : changes_of(rules)) {
    trials.push_back(make_trial(consul, static_cast<int>(trials.size()), change));
  }
  for (const Trial& trial : trials) {
    INFO(trial.title);
    CHECK(eventually([&] { return trial.daemon->logged(trial.complaint); }));
    CHECK(eventually([&] { return is_ready(trial) == trial.works; }));
    const Output report = lictor(*trial.daemon, {"check"});
    if (trial.rule.empty()) {
      ends(report, 0);
    } else if (trial.rule.starts_with("agent ")) {
      says(report, "the token needs: agent ");
    } else {
      ends(report, 5, {"the daemon needs: " + trial.rule});
    }
  }
  // With all rights there are no complaints, and each daemon that lacked one goes on by itself.
  for (std::size_t i = 1; i < trials.size(); ++i) {
    consul.change_policy(trials[i].policy, "trial-" + std::to_string(i), trials[i].full);
  }
  for (const Trial& trial : trials) {
    INFO(trial.title);
    CHECK(eventually([&] { return consul.kv.list(trial.world->root + "default/tasks/").empty(); }));
    CHECK(eventually([&] { return is_ready(trial); }));
    CHECK(trial.world->journal.order() == std::vector<std::string>{"good"});
    CHECK(consul.kv.has(trial.world->dead_key("bad")));
  }
  for (const auto& [rule, complaint] : daemon_complaints()) {
    for (const std::string& text : {complaint.without, complaint.weakened.value_or("")}) {
      if (!text.empty()) CHECK_MESSAGE(!trials.front().daemon->logged(text), text);
    }
  }
}

// A command that needs the rule, and its error without the rule.
struct Use {
  std::vector<std::string> command;
  std::string says;
  bool partitioned = false;  // the queue has two partitions, which somebody leads
};

using Uses = std::map<std::string, Use>;

void try_each(GuardedConsul& consul, const World& world, const std::string& role,
              const Uses& uses) {
  const std::string config = world.folder.file("client.json");
  write_text(config, "{}");
  const std::vector<Rule> rules = rules_of(role);
  std::string full;
  for (const Rule& rule : rules) full += rule.text() + '\n';
  const std::string policy = consul.make_policy(role, full);
  const std::string token = consul.make_token(policy).secret;
  const std::string leader = consul.kv.create_session("leader", "0s");
  const std::string number = world.root + "default/partitions";
  const auto output_of = [&](const Use& use) {
    if (use.partitioned) {
      consul.kv.put(number, "2");
      for (const char* lock : {"default/leader/2/0", "default/leader/2/1"}) {
        REQUIRE(consul.kv.acquire(world.root + lock, leader, R"({"node":"somebody"})"));
      }
    } else if (consul.kv.has(number)) {
      for (const char* lock : {"default/leader/2/0", "default/leader/2/1"}) {
        REQUIRE(consul.kv.release(world.root + lock, leader));
      }
      consul.kv.remove(number);
      REQUIRE(eventually([&] { return !consul.kv.holder(world.leader_key()).empty(); }));
    }
    consul.kv.put(world.dead_key("x"), "{}");
    consul.kv.put(world.root + "default/control", "{}");
    consul.kv.put(world.root + "default/members/gone/drain", "{}");
    consul.kv.put(world.task_key("later"), R"({"taskType":"Record","executeAt":99999999999})");
    std::vector<std::string> line{LICTOR_COMMAND, "--config", config, "--consul", world.address()};
    line.insert(line.end(), use.command.begin(), use.command.end());
    return run(line, {{"CONSUL_HTTP_TOKEN", token}});
  };
  for (const Change& change : changes_of(rules)) {
    const Rule& rule = rules[change.which];
    CAPTURE(role);
    INFO(rule.text(), " -> ", change.lower);
    const auto use = uses.find(rule.name());
    REQUIRE_MESSAGE(use != uses.end(), "no command is known to need " << rule.text());
    CHECK_FALSE(contains(ends(output_of(use->second), 0), use->second.says));

    consul.change_policy(policy, role, without_or_lower(rules, change.which, change.lower));
    says(output_of(use->second), use->second.says);
    consul.change_policy(policy, role, full);
  }
}

TEST_CASE("producer, reader and operator need each rule of their policies, and errors say so") {
  GuardedConsul consul{{{"acl", {{"enable_key_list_policy", true}}}}};
  World world{consul.agent, "lictor/"};
  DaemonSettings settings = world.settings("d");
  settings.token_file = world.folder.file("token");
  write_secret(settings.token_file, consul.management);
  LictorDaemon daemon{settings};
  REQUIRE(eventually([&] {
    return !consul.kv.holder(world.leader_key()).empty() && consul.kv.has(world.member_key(daemon));
  }));

  const Use leader{
      {"leader"},
      R"(hidden: its node and TTL need the rule session_prefix "" { policy = "read" })"};
  const Use submit{{"submit", "Record"}, "cannot write lictor/default/tasks/"};
  try_each(consul, world, "producer", {{R"(key_prefix "lictor/default/tasks/")", submit}});
  try_each(consul, world, "reader",
           {{R"(key_prefix "lictor/default/")",
             {{"list"}, "cannot list lictor/default/tasks/: the token may not"}},
            {R"(session_prefix "")", leader}});
  try_each(consul, world, "operator",
           {{R"(key_prefix "lictor/default/")", {{"leader"}, ": the token may not", true}},
            {R"(key "lictor/default/control")",
             {{"pause"}, "lictor/default/control: the token may not"}},
            {R"(key_prefix "lictor/default/tasks/")", submit},
            {R"(key_prefix "lictor/default/schedules/")",
             {{"schedule", "add", "s", "--replace", "--at", "2099-01-01T00:00:00Z", "--type", "T"},
              "cannot write lictor/default/schedules/s: the token may not"}},
            {R"(key_prefix "lictor/default/dead/")",
             {{"dead", "purge", "x"}, "lictor/default/dead/x: the token may not"}},
            {R"(key_prefix "lictor/default/members/")",
             {{"undrain", "gone"}, "lictor/default/members/gone/drain: the token may not"}},
            {R"(key_prefix "lictor/default/done/")",
             {{"cancel", "later"}, "the token may not write lictor/default/done/, so "}},
            {R"(session_prefix "")", leader}});
}

TEST_CASE("a producer may submit many tasks, with or without the right to read the leader key") {
  GuardedConsul consul;
  World world{consul.agent, "lictor/"};
  std::string policy = R"(key_prefix "lictor/default/tasks/" { policy = "write" })";
  // For a key that exists, the comparison takes "read"; for a missing one, in this Consul, "write".
  SUBCASE("the tasks alone") {}
  SUBCASE("and the leader key, which does not exist") {
    policy += R"( key "lictor/default/leader" { policy = "read" })";
  }
  SUBCASE("and the leader key, which nobody holds") {
    policy += R"( key "lictor/default/leader" { policy = "read" })";
    consul.kv.put("lictor/default/leader", "{}");
  }
  const std::string token = consul.make_token(consul.make_policy("producer", policy)).secret;
  const std::string config = world.folder.file("client.json");
  write_text(config, "{}");
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "{\"taskType\": \"Record\"}\n";
  write_text(world.folder.file("tasks.ndjson"), lines);
  const Output output = run({LICTOR_COMMAND, "--config", config, "--consul", consul.agent.address(),
                             "submit", "--ndjson", world.folder.file("tasks.ndjson")},
                            {{"CONSUL_HTTP_TOKEN", token}});
  ends(output, 0);
  CHECK(consul.kv.list("lictor/default/tasks/").size() == 1000);
}

}  // namespace
}  // namespace lictor::live
