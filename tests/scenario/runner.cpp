// Plays transcripts: commands, a line "----", and what the daemons did, up to an empty line. Time
// is virtual, so a transcript tells minutes in milliseconds.
//
//   scenario FILE...                    compares
//   LICTOR_REWRITE=1 scenario FILE...   writes what came as what is expected; read it before you
//                                       believe it
//
// Commands, one a line; '#' begins a remark:
//
//   start NODE [prefetch=N]
//   put KEY RECORD          a producer writes a task, or what it takes for one
//   advance DURATION
//   job NODE KEY exits done|retry|permanent|unstarted [ERROR]
//   stops take DURATION     how long a job needs to end when it is stopped
//   lose requests|replies NODE commit|all    the next one; "all": until heal
//   heal
//   crash NODE | stop NODE | step down
//   show                    the tasks, the dead letters, who holds the lock, what runs

#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "base/time_text.h"
#include "cluster.h"

namespace lictor::core::test {
namespace {

std::string rest_of(std::istringstream& line) {
  std::string rest;
  std::getline(line >> std::ws, rest);
  return rest;
}

class Scenario {
 public:
  Scenario() {
    cluster_.fault = [this](const Daemon& daemon, const Effect& effect) {
      return fault(daemon, effect);
    };
    cluster_.stopping = [this](Duration grace) { return std::min(stopping_, grace); };
    cluster_.on_effect = [this](const Daemon& daemon, const Effect& effect) {
      if (!is_noise(effect) && !polls(daemon, effect)) {
        say(daemon.name + ": " + effect_text(effect));
      }
    };
  }

  // Carries out one command; returns why it could not.
  std::string command(const std::string& text) {
    std::istringstream line{text};
    std::string verb;
    line >> verb;
    if (verb == "advance") return advance(line);
    if (verb == "start") return start(line);
    if (verb == "put") return put(line);
    if (verb == "job") return job(line);
    if (verb == "lose") return lose(line);
    if (verb == "show") return show();
    std::string a;
    std::string b;
    line >> a >> b;
    if (verb == "heal") {
      losing_.clear();
    } else if (verb == "step") {
      cluster_.store.control(false, "please");
    } else if (verb == "stops") {
      stopping_ = parse_duration(b).value_or(Duration::zero());
    } else if (Daemon* daemon = find(a); daemon == nullptr) {
      return "no such command or node: " + text;
    } else if (verb == "crash") {
      cluster_.crash(*daemon);
    } else if (verb == "stop") {
      cluster_.tell(*daemon, StopRequested{});
    } else {
      return "no such command: " + text;
    }
    return {};
  }

  std::string take_output() {
    cluster_.run_for(Duration::zero());
    for (; told_ < cluster_.violations().size(); ++told_) {
      output_ += "VIOLATION " + cluster_.violations()[told_] + '\n';
    }
    return std::exchange(output_, {});
  }

 private:
  static bool is_noise(const Effect& effect) {
    if (const auto* fact = std::get_if<Fact>(&effect)) {
      // What an effect beside them says as well.
      return fact->kind == Fact::Kind::kStarted || fact->kind == Fact::Kind::kSessionCreated;
    }
    return std::holds_alternative<RenewSession>(effect) ||
           std::holds_alternative<ReadLeader>(effect) ||
           std::holds_alternative<WatchControl>(effect) ||
           std::holds_alternative<ListTasks>(effect) ||
           std::holds_alternative<CheckTasks>(effect) ||
           std::holds_alternative<ListSchedules>(effect) ||
           std::holds_alternative<CancelRequest>(effect) ||
           std::holds_alternative<RememberSession>(effect) ||
           std::holds_alternative<RememberHolder>(effect) ||
           std::holds_alternative<ExtendLease>(effect);
  }

  // During a lock-delay the lock is asked for ten times a second.
  bool polls(const Daemon& daemon, const Effect& effect) {
    const auto* fact = std::get_if<Fact>(&effect);
    if (fact != nullptr && fact->kind == Fact::Kind::kLockDelay) {
      polling_.insert(daemon.name);
    } else if (std::holds_alternative<AcquireLock>(effect)) {
      return polling_.contains(daemon.name);
    } else {
      polling_.erase(daemon.name);
    }
    return false;
  }

  // With "s1" for the id of the first session.
  std::string named(std::string text) {
    constexpr std::size_t kIdSize = 36;
    for (const auto& daemon : cluster_.daemons()) {
      const std::string id = daemon->remembered.value_or(std::string{});
      if (id.size() == kIdSize)
        sessions_.try_emplace(id, "s" + std::to_string(sessions_.size() + 1));
    }
    for (const auto& [id, name] : sessions_) {
      for (std::size_t at = 0; (at = text.find(id, at)) != std::string::npos;) {
        text.replace(at, id.size(), name);
      }
    }
    return text;
  }

  void say(const std::string& effect) {
    const std::string text = named(effect);
    const auto ms = (cluster_.now - kStart) / 1ms;
    std::ostringstream line;
    line << std::setw(4) << ms / 1000 << '.' << std::setw(3) << std::setfill('0') << ms % 1000
         << ' ' << text;
    if (text == repeated_) {
      ++repeats_;
      last_ = line.str();
      return;
    }
    take_repeats();
    repeated_ = text;
    output_ += line.str() + '\n';
  }

  Daemon* find(const std::string& name) {
    for (const auto& daemon : cluster_.daemons()) {
      if (daemon->name == name) return daemon.get();
    }
    return nullptr;
  }

  std::string advance(std::istringstream& line) {
    std::string text;
    line >> text;
    const auto duration = parse_duration(text);
    if (!duration) return "not a duration: " + text;
    cluster_.run_for(*duration);
    return {};
  }

  std::string start(std::istringstream& line) {
    std::string name;
    line >> name;
    QueueOptions options = options_of(name);
    for (std::string setting; line >> setting;) {
      const std::size_t equals = setting.find('=');
      const auto value =
          static_cast<std::uint32_t>(std::strtoul(setting.c_str() + equals + 1, nullptr, 10));
      const std::string key = setting.substr(0, equals);
      if (key == "prefetch") {
        options.prefetch = value;
      } else {
        return "no such setting: " + setting;
      }
    }
    cluster_.add(options);
    return {};
  }

  std::string put(std::istringstream& line) {
    std::string key;
    line >> key;
    cluster_.store.write(key, rest_of(line));
    return {};
  }

  std::string job(std::istringstream& line) {
    std::string node;
    std::string key;
    std::string exits;
    std::string how;
    line >> node >> key >> exits >> how;
    Daemon* daemon = find(node);
    if (daemon == nullptr || exits != "exits") return "which job?";
    const JobEnding ending = how == "done"        ? JobEnding::kDone
                             : how == "permanent" ? JobEnding::kPermanent
                             : how == "unstarted" ? JobEnding::kNotStarted
                                                  : JobEnding::kRetry;
    cluster_.end_job(*daemon, key, ending, rest_of(line));
    return {};
  }

  std::string lose(std::istringstream& line) {
    Loss loss;
    std::string what;
    line >> what >> loss.node >> loss.kind;
    loss.requests = what == "requests";
    losing_.push_back(loss);
    return {};
  }

  std::string show() {
    take_repeats();
    for (const std::string& key : cluster_.store.task_keys()) {
      output_ += "  " + key;
      if (const Task* task = cluster_.store.task(key)) {
        output_ += task->stamp.taken ? ": taken" : ": waiting";
        output_ += ", attempt " + std::to_string(task->stamp.attempt);
        if (task->stamp.lost != 0) output_ += ", lost " + std::to_string(task->stamp.lost);
        if (!task->stamp.error.empty()) output_ += ", " + task->stamp.error;
      }
      output_ += '\n';
    }
    for (const auto& [key, op] : cluster_.store.dead) {
      output_ += "  " + key + ": " + op.reason + ": " + op.error + '\n';
    }
    const std::string& session = cluster_.store.leader_session();
    output_ += "  lock: " + (session.empty() ? "free" : named(session)) + "; running:";
    for (const auto& daemon : cluster_.daemons()) {
      for (const auto& [id, running] : daemon->jobs) {
        output_ += ' ' + running.task->key + " on " + daemon->name;
      }
    }
    output_ += '\n';
    return {};
  }
  void take_repeats() {
    if (repeats_ > 0) output_ += last_ + " (again, " + std::to_string(repeats_) + " times)\n";
    repeats_ = 0;
    repeated_.clear();
  }

  struct Loss {
    std::string node;
    std::string kind;
    bool requests = false;
  };
  Fault fault(const Daemon& daemon, const Effect& effect) {
    Fault f;
    for (auto it = losing_.begin(); it != losing_.end(); ++it) {
      const bool hit = it->kind == "all" || std::holds_alternative<Commit>(effect);
      if (!hit || it->node != daemon.name) continue;
      (it->requests ? f.lose_request : f.lose_reply) = true;
      if (it->kind != "all") losing_.erase(it);
      break;
    }
    return f;
  }

  Cluster cluster_;
  std::string output_;
  std::set<std::string> polling_;
  std::map<std::string, std::string> sessions_;  // their names in the transcript, by id
  std::string repeated_;
  std::string last_;
  int repeats_ = 0;
  std::size_t told_ = 0;
  std::vector<Loss> losing_;
  Duration stopping_ = 10ms;
};

struct Played {
  std::string text;
  bool same = true;
};

Played play(std::istream& in, const std::string& name) {
  Scenario scenario;
  Played played;
  std::string line;
  while (std::getline(in, line)) {
    played.text += line + '\n';
    if (line.empty() || line.starts_with('#')) continue;
    if (line != "----") {
      const std::string problem = scenario.command(line);
      if (!problem.empty()) {
        std::cerr << name << ": " << problem << '\n';
        played.same = false;
      }
      continue;
    }
    std::string expected;
    while (std::getline(in, line) && !line.empty()) expected += line + '\n';
    const std::string came = scenario.take_output();
    played.text += came + '\n';
    if (came != expected) {
      played.same = false;
      std::cerr << name << ": expected\n" << expected << "but came\n" << came << '\n';
    }
  }
  while (played.text.ends_with("\n\n")) played.text.pop_back();
  return played;
}

}  // namespace
}  // namespace lictor::core::test

int main(int count, char** arguments) {
  const char* rewrite = std::getenv("LICTOR_REWRITE");
  bool same = true;
  for (int i = 1; i < count; ++i) {
    std::ifstream in{arguments[i]};
    if (!in) {
      std::cerr << arguments[i] << ": cannot be read\n";
      return 2;
    }
    const auto played = lictor::core::test::play(in, arguments[i]);
    if (rewrite != nullptr && !played.same) std::ofstream{arguments[i]} << played.text;
    same = same && played.same;
  }
  return same || rewrite != nullptr ? 0 : 1;
}
