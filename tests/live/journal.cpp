#include "journal.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "support.h"

namespace lictor::live {
namespace {

struct Line {
  std::string event;
  Run run;
};

std::vector<Line> read_lines(const std::string& file) {
  std::vector<Line> lines;
  std::istringstream text{read_text(file)};
  for (std::string line; std::getline(text, line) && !text.eof();) {
    std::istringstream words{line};
    Line parsed;
    Run& run = parsed.run;
    words >> parsed.event >> run.task >> run.attempt >> run.token >> run.host >> run.pid >>
        run.begin_ns >> run.input_bytes >> run.version;
    run.last_ns = run.begin_ns;
    if (words) lines.push_back(std::move(parsed));
  }
  return lines;
}

std::string named(const Run& run) {
  return run.task + " attempt " + std::to_string(run.attempt) + " on " + run.host;
}

}  // namespace

std::vector<Run> Journal::runs() const {
  std::vector<Run> runs;
  for (const Line& line : read_lines(file_)) {
    if (line.event == "begin") {
      runs.push_back(line.run);
      continue;
    }
    const auto of_this = [&](const Run& run) {
      return run.task == line.run.task && run.token == line.run.token && run.host == line.run.host;
    };
    const auto run = std::find_if(runs.rbegin(), runs.rend(), of_this);
    if (run == runs.rend()) continue;
    if (line.event == "child") {
      run->child = line.run.pid;
    } else {
      run->last_ns = line.run.begin_ns;
      if (line.event == "end") run->ended = true;
    }
  }
  return runs;
}

std::vector<Run> Journal::runs_of(const std::string& task) const {
  std::vector<Run> all = runs();
  std::erase_if(all, [&](const Run& run) { return run.task != task; });
  return all;
}

std::optional<Run> Journal::run(const std::string& task, int attempt) const {
  for (const Run& run : runs_of(task)) {
    if (run.attempt == attempt) return run;
  }
  return std::nullopt;
}

std::size_t Journal::ended() const {
  const std::vector<Run> all = runs();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const Run& run) { return run.ended; }));
}

std::vector<std::string> Journal::order() const {
  std::vector<std::string> tasks;
  for (const Run& run : runs()) tasks.push_back(run.task);
  return tasks;
}

std::vector<std::string> Journal::overlaps() const {
  std::vector<std::string> found;
  for (const Line& line : read_lines(file_)) {
    if (line.event == "overlap") found.push_back(named(line.run) + " began beside another job");
  }
  std::vector<Run> all = runs();
  std::stable_sort(all.begin(), all.end(),
                   [](const Run& a, const Run& b) { return a.begin_ns < b.begin_ns; });
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].begin_ns < all[i - 1].last_ns) {
      found.push_back(named(all[i]) + " began before the end of " + named(all[i - 1]));
    }
  }
  return found;
}

std::vector<std::string> Journal::falling_tokens() const {
  std::vector<std::string> found;
  std::uint64_t highest = 0;
  for (const Run& run : runs()) {
    if (run.token < highest) found.push_back(named(run));
    highest = std::max(highest, run.token);
  }
  return found;
}

std::vector<std::string> Journal::lane_faults(const std::function<int(const Run&)>& lane_of) const {
  struct Lane {
    std::optional<Run> before;
    std::string latest;
  };
  std::map<int, Lane> lanes;
  std::vector<std::string> faults;
  for (const Run& run : runs()) {
    Lane& lane = lanes[lane_of(run)];
    if (lane.before && run.begin_ns < lane.before->last_ns) {
      faults.push_back(named(run) + " began beside " + named(*lane.before));
    }
    if (lane.before && run.token < lane.before->token) {
      faults.push_back(named(run) + " has a lower token than " + named(*lane.before));
    }
    if (run.task < lane.latest) faults.push_back(named(run) + " began after " + lane.latest);
    lane.latest = std::max(lane.latest, run.task);
    lane.before = run;
  }
  return faults;
}

std::size_t Journal::tasks() const {
  std::set<std::string> tasks;
  for (const Run& run : runs()) tasks.insert(run.task);
  return tasks.size();
}

}  // namespace lictor::live
