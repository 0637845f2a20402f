// Warm workers under a daemon and a Consul: no task is lost, none overlaps, and no process is left
// over.

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "world.h"

namespace lictor::live {
namespace {

// Notes the begin of each run and, while it lasts, that it lives: "<what> <task> <pid> <ns>". It
// does not look at "cancel", as a simple worker does not. "processes": the run lasts until the
// journal knows that many.
constexpr const char* kWorker = R"(#!/usr/bin/env python3
import json, os, signal, sys, time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
journal = open(sys.argv[1], "a", buffering=1)
replies = os.fdopen(int(os.environ["LICTOR_WORKER_FD"]), "w")

def note(what, task):
    journal.write(f"{what} {task} {os.getpid()} {time.monotonic_ns()}\n")

def reply(kind, **members):
    replies.write(json.dumps({kind: members}) + "\n")
    replies.flush()

reply("ready", protocol=1)
for line in sys.stdin:
    run = json.loads(line).get("run")
    if run is None:
        continue
    para = run["task"].get("taskPara", {})
    note("begin", run["id"])
    print("hello from", run["id"], flush=True)
    if para.get("die") and run["number"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    while len({line.split()[2] for line in open(sys.argv[1])}) < para.get("processes", 0):
        time.sleep(0.005)
    if para.get("sleep_first") and run["number"] == 1 or para.get("sleep"):
        until = time.monotonic() + (para.get("sleep_first") or para.get("sleep")) / 1000
        while time.monotonic() < until:
            note("lives", run["id"])
            time.sleep(0.005)
    reply("done", attempt=run["attempt"], result={"env": os.environ.get("VERSION", "")},
          commit=[{"key": para["key"], "value": run["id"]}] if "key" in para else None)
)";

struct Note {
  std::string what, task;
  pid_t pid = 0;
  std::int64_t ns = 0;
};

std::vector<Note> notes_in(const World& world) {
  std::istringstream text{read_text(world.folder.file("worker.journal"))};
  std::vector<Note> notes;
  for (Note note; text >> note.what >> note.task >> note.pid >> note.ns;) notes.push_back(note);
  return notes;
}

std::set<pid_t> pids_in(const World& world) {
  std::set<pid_t> pids;
  for (const Note& note : notes_in(world)) pids.insert(note.pid);
  return pids;
}

bool has_begun(const World& world, const std::string& task, std::size_t times = 1) {
  const auto notes = notes_in(world);
  return std::count_if(notes.begin(), notes.end(), [&](const Note& note) {
           return note.what == "begin" && note.task == task;
         }) >= static_cast<std::ptrdiff_t>(times);
}

json worker_of(const World& world, int processes = 1) {
  const std::string program = world.folder.file("worker.py");
  if (read_text(program).empty()) {
    write_text(program, kWorker);
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  return {{"worker", {program, world.folder.file("worker.journal")}}, {"processes", processes}};
}

DaemonSettings settings_of(const World& world, const std::string& node, const json& worker,
                           int concurrency) {
  DaemonSettings settings = world.settings(node, {{"concurrency", concurrency}, {"history", true}});
  settings.queue["executors"] = {{"*", worker}};
  return settings;
}

// In the runs of `task`, by process: none was seen after the begin of one in a later process.
bool runs_do_not_overlap(const World& world, const std::string& task) {
  std::map<pid_t, std::pair<std::int64_t, std::int64_t>> spans;
  for (const Note& note : notes_in(world)) {
    if (note.task != task) continue;
    auto& span = spans.try_emplace(note.pid, note.ns, note.ns).first->second;
    span.second = std::max(span.second, note.ns);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> sorted;
  for (const auto& [pid, span] : spans) sorted.push_back(span);
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].first < sorted[i - 1].second) return false;
  }
  return true;
}

TEST_CASE("two warm processes run many tasks; one that dies costs its task an attempt, no more") {
  World world;
  LictorDaemon daemon{settings_of(world, "a", worker_of(world, 2), 2)};
  REQUIRE(eventually([&] { return world.leads(daemon); }));
  for (int i = 0; i < 100; ++i) {
    const std::string id = std::to_string(i);
    json para{{"key", world.root + "app/" + id}};
    if (i == 0) para["processes"] = 2;
    if (i == 50) para["die"] = true;
    if (i == 98) para["processes"] = 3;
    world.submit(id, 1000 + i, para);
  }
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 0);
  for (int i = 0; i < 100; ++i) {
    const std::string id = std::to_string(i);
    CHECK(world.kv.has(world.root + "app/" + id));
    CHECK(world.kv.get_json(world.root + "default/done/" + id).value("attempts", 0) ==
          (i == 50 ? 2 : 1));
  }
  CHECK(pids_in(world).size() == 3);
  // After an orderly stop none of the processes is left.
  CHECK(daemon.stop() == 0);
  for (const pid_t pid : pids_in(world)) CHECK_FALSE(is_alive(pid));
}

TEST_CASE("when a daemon is killed or hangs, its warm workers are dead before the next leader's") {
  for (const bool freezes : {false, true}) {
    CAPTURE(freezes);
    World world;
    LictorDaemon first{settings_of(world, "a", worker_of(world, 2), 2)};
    REQUIRE(eventually([&] { return world.leads(first); }));
    LictorDaemon second{settings_of(world, "b", worker_of(world, 2), 2)};
    REQUIRE(eventually([&] { return world.stands_by(second); }));
    // One is busy, the other one warm and idle.
    world.submit("warm", 1000, {{"sleep", 100}});
    world.submit("long", 1001, {{"sleep_first", 300'000}});
    REQUIRE(eventually(
        [&] { return has_begun(world, "long") && !world.kv.has(world.task_key("warm")); }));
    const std::set<pid_t> old = pids_in(world);
    freezes ? first.freeze() : first.kill();
    // It began with attempt 1, whose owner is lost: the second one is short.
    REQUIRE(eventually([&] { return has_begun(world, "long", 2); }));
    for (const pid_t pid : old) CHECK_FALSE(is_alive(pid));
    CHECK(runs_do_not_overlap(world, "long"));
    REQUIRE(eventually([&] { return world.all_done(); }));
    CHECK(second.stop() == 0);
    if (freezes) first.thaw();
  }
}

TEST_CASE("/metrics counts the processes of a worker, and forgets one that a reload removed") {
  World world;
  json worker = worker_of(world, 2);
  worker["timeout"] = "200ms";
  worker["max_attempts"] = 1;
  DaemonSettings settings = settings_of(world, "a", worker, 3);
  settings.queue["executors"] = {{"Steady", worker_of(world, 2)}, {"Brief", worker}};
  settings.queue["kill_grace"] = "1s";
  const std::string listen = "127.0.0.1:" + std::to_string(free_port());
  settings.admin = {listen};
  LictorDaemon daemon{settings};
  REQUIRE(eventually([&] { return world.leads(daemon); }));
  Kv admin{"http://" + listen};
  const auto has = [&](const std::string& name, const std::string& type, const std::string& label,
                       int count) {
    const std::string line = name + "{queue=\"default\",type=\"" + type + "\"," + label + "} " +
                             std::to_string(count) + "\n";
    CAPTURE(line);
    const auto page = [&] { return admin.request("GET", "/metrics").body; };
    const bool found = eventually([&] { return contains(page(), line); });
    INFO(page());
    CHECK(found);
  };
  const auto submit = [&](const std::string& id, const std::string& type, int sleep_ms) {
    world.kv.put_json(world.task_key(id),
                      {{"taskType", type}, {"taskPara", {{"sleep", sleep_ms}}}});
  };
  submit("long", "Steady", 300'000);
  submit("quick", "Steady", 1);
  submit("slow", "Brief", 300'000);
  REQUIRE(eventually([&] { return has_begun(world, "long"); }));
  has("lictor_worker_processes", "Steady", "state=\"busy\"", 1);
  has("lictor_worker_processes", "Steady", "state=\"idle\"", 1);
  has("lictor_worker_ends_total", "Brief", "reason=\"unanswered\"", 1);
  has("lictor_worker_processes", "Brief", "state=\"busy\"", 0);

  world.kv.remove(world.task_key("long"));
  has("lictor_worker_ends_total", "Steady", "reason=\"unanswered\"", 1);
  daemon.reload({{"executors", {{"Brief", nullptr}}}});
  const auto names = [&](const char* type) {
    return contains(admin.request("GET", "/metrics").body,
                    "lictor_worker_ends_total{queue=\"default\",type=\"" + std::string{type});
  };
  CHECK(eventually([&] { return !names("Brief"); }));
  CHECK(names("Steady"));
}

}  // namespace
}  // namespace lictor::live
