// The scrapes of a real Prometheus, and the stream of events.

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "same_answers.h"
#include "skip.h"
#include "world.h"

namespace lictor::live {
namespace {

std::string address(const std::string& url) { return url.substr(url.find("//") + 2); }

// A Prometheus with that configuration.
struct Prometheus {
  Prometheus(const World& world, const std::string& config)
      : process{{"prometheus", "--config.file=" + config, "--web.listen-address=" + listen,
                 "--storage.tsdb.path=" + world.folder.file("tsdb")},
                world.folder.file("prometheus.log")} {}

  const std::string listen = "127.0.0.1:" + std::to_string(free_port());
  Process process;
  Kv api{"http://" + listen};
};

// The rules of examples/monitoring with spans short enough for a test.
std::string quick_rules() {
  const std::string rules = read_text(std::string{LICTOR_MONITORING} + "/alerts.yml");
  return replaced(replaced(rules, "for: 1m", "for: 1s"), "for: 2m", "for: 1s");
}

TEST_CASE("a real Prometheus alerts on the first dead letter, and when all daemons are down") {
  if (std::system("command -v prometheus >/dev/null") != 0) {
    return tell_skipped("no prometheus (Debian's package of that name)");
  }
  World world;
  DaemonSettings settings = world.settings("a");
  settings.admin = {"127.0.0.1:" + std::to_string(free_port())};
  LictorDaemon a{settings};
  REQUIRE(eventually([&] { return world.leads(a) && !world.admin_url(a).empty(); }));
  write_text(world.folder.file("alerts.yml"), quick_rules());
  const std::string config = world.folder.file("prometheus.yml");
  write_text(config,
             json{{"global", {{"scrape_interval", "1s"}, {"evaluation_interval", "1s"}}},
                  {"rule_files", {"alerts.yml"}},
                  {"scrape_configs",
                   {{{"job_name", "lictor"}, {"static_configs", {{{"targets", settings.admin}}}}}}}}
                 .dump());
  Prometheus prometheus{world, config};
  Kv& api = prometheus.api;
  const auto query = [&](const std::string& expression) {
    const auto answer = api.request("GET", "/api/v1/query?query=" + expression);
    return answer.status != 200 ? json::array() : answer.json().at("data").at("result");
  };
  const auto fires = [&](const std::string& alert) {
    return !query("ALERTS%7Balertname=%22" + alert + "%22,alertstate=%22firing%22%7D").empty();
  };
  const auto scraped = [&] { return !query("lictor_tasks_total%7Boutcome=%22dead%22%7D").empty(); };
  REQUIRE(eventually(scraped));
  CHECK_FALSE(fires("LictorDeadLetters"));
  CHECK(eventually([&] { return !fires("LictorAllDown"); }));  // it did before the first scrape
  world.kv.put(world.task_key("bad"), "no JSON");
  REQUIRE(eventually([&] { return world.dead() == 1; }));
  CHECK(eventually([&] { return fires("LictorDeadLetters"); }));

  a.kill();
  CHECK(eventually([&] { return fires("LictorAllDown"); }));
  CHECK(eventually([&] { return fires("LictorNobodyLeads"); }));
  a.start();
  CHECK(eventually([&] { return !fires("LictorAllDown") && !fires("LictorNobodyLeads"); }));
}

TEST_CASE("InfluxDB gets the metrics from Prometheus, as examples/monitoring says") {
  for (const char* program : {"prometheus", "influxd"}) {
    if (std::system(("command -v " + std::string{program} + " >/dev/null").c_str()) != 0) {
      return tell_skipped("no " + std::string{program} + " (Debian's package)");
    }
  }
  World world;
  LictorDaemon a{world.settings_with_admin("a")};
  REQUIRE(eventually([&] { return world.leads(a) && !world.admin_url(a).empty(); }));
  const std::string influx_address = "127.0.0.1:" + std::to_string(free_port());
  Process influx{{"influxd"},
                 world.folder.file("influxd.log"),
                 {{"INFLUXDB_META_DIR", world.folder.file("influx/meta")},
                  {"INFLUXDB_DATA_DIR", world.folder.file("influx/data")},
                  {"INFLUXDB_DATA_WAL_DIR", world.folder.file("influx/wal")},
                  {"INFLUXDB_BIND_ADDRESS", "127.0.0.1:0"},
                  {"INFLUXDB_HTTP_BIND_ADDRESS", influx_address},
                  {"INFLUXDB_REPORTING_DISABLED", "true"}}};
  Kv database{"http://" + influx_address};
  REQUIRE(eventually([&] {
    return database.request("POST", "/query?q=CREATE%20DATABASE%20lictor").status == 200;
  }));

  std::string config = read_text(std::string{LICTOR_MONITORING} + "/prometheus-influxdb.yml");
  const auto replace = [&](const std::string& from, const std::string& to) {
    REQUIRE_MESSAGE(contains(config, from), from);
    config.replace(config.find(from), from.size(), to);
  };
  replace("127.0.0.1:8642", address(world.admin_url(a)));
  replace("127.0.0.1:8086", influx_address);
  replace("15s", "1s");
  const std::string file = world.folder.file("prometheus.yml");
  write_text(file, config);
  const Prometheus prometheus{world, file};
  const auto stored = [&] {
    const auto answer = database.request("GET",
                                         "/query?db=lictor&q=SELECT%20last(value)%20FROM%20lictor_"
                                         "leading%20WHERE%20queue=%27default%27");
    if (answer.status != 200) return json{};
    const json result = answer.json().at("results").at(0);
    return result.contains("series") ? result["series"][0]["values"][0][1] : json{};
  };
  CHECK(eventually([&] { return stored() == 1; }));
}

TEST_CASE("a client of the events sees a task from its claim to its end") {
  World world;
  LictorDaemon a{world.settings_with_admin("a")};
  REQUIRE(eventually([&] { return world.leads(a) && !world.admin_url(a).empty(); }));
  const std::string file = world.folder.file("events");
  Process curl{{"curl", "-sN", world.admin_url(a) + "/v1/events"}, file};
  REQUIRE(eventually([&] { return contains(read_text(file), "retry:"); }));
  world.submit("seen", 1000);
  CHECK(eventually([&] { return contains(read_text(file), "event: done"); }));
  const std::string text = read_text(file);
  const std::size_t claimed = text.find("event: claimed");
  const std::size_t started = text.find("event: started");
  CHECK(claimed < started);
  CHECK(started < text.find("event: done"));
  CHECK(contains(text, "\"task\":\"" + world.task_key("seen") +
                           "\",\"task_id\":\"seen\",\"type\":\"Record\""));

  ends(lictor(a, {"events"}), 0, {"  done  seen  Record"});
  const auto events = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"events", "--json"});
    return lictor(a, options).out;
  };
  const std::string own = events({"--task", "seen"});
  CHECK(contains(own, "\"done\""));
  CHECK_FALSE(contains(own, "\"leading\""));
  CHECK(events({"--task", "see"}).empty());
  CHECK(events({"--type", "Record"}) == own);
  CHECK(events({"--type", "Other"}).empty());
  CHECK(events({"--task", "seen", "--since", "1h"}) == own);
  CHECK(events({"--since", "2100-01-01T00:00:00Z"}).empty());
  const std::string last = events({"--task", "seen", "-n", "1"});
  CHECK(std::count(last.begin(), last.end(), '\n') == 1);
  CHECK(own.ends_with(last));
  CHECK(lictor(a, {"events", "--since", "soon"}).exit_code == 2);
  ends(lictor(a, {"events", "--task", "nobody"}), 0, {"no such event is kept"});
  const json stats = json::parse(ends(lictor(a, {"stats", "--json"}), 0));
  CHECK(stats.at("leader") == a.node());
  CHECK(stats.at("lease_left_ms") > 0);
  CHECK(contains(lictor(a, {"stats"}).out, "lease left"));

  const std::string followed = world.folder.file("followed");
  Process follower{{LICTOR_COMMAND, "events", "--follow", "--json", "--config", a.config_file()},
                   followed};
  REQUIRE(eventually([&] { return contains(read_text(followed), "\"done\""); }));
  a.kill();
  a.start();
  REQUIRE(eventually([&] { return world.leads(a); }));
  world.submit("later", 1000);
  CHECK(eventually([&] {
    const std::string lines = read_text(followed);
    const std::size_t at = lines.rfind(world.task_key("later"));
    return at != std::string::npos &&
           lines.find("\"event\":\"done\"", lines.rfind('\n', at)) != std::string::npos;
  }));
  follower.signal(SIGTERM);
  CHECK(follower.wait() == 128 + SIGTERM);
}

TEST_CASE("events --follow does not go back in time when another daemon takes leadership") {
  World world;
  LictorDaemon a{world.settings_with_admin("a")};
  REQUIRE(eventually([&] { return world.leads(a); }));
  // Its first event, which --follow prints, is older than a's next ones.
  LictorDaemon b{world.settings_with_admin("b")};
  REQUIRE(eventually([&] { return world.stands_by(b); }));
  const std::string followed = world.folder.file("followed");
  Process follower{{LICTOR_COMMAND, "events", "--follow", "--json", "--config", a.config_file()},
                   followed};
  world.submit("first", 1000);
  REQUIRE(eventually([&] { return contains(read_text(followed), "\"done\""); }));
  // The old leader's events while it steps down are not lost.
  world.submit_begun("last", 1000, {{"sleep", 1000}});
  CHECK(lictor(a, {"leader", "--step-down"}).exit_code == 0);
  REQUIRE(eventually([&] { return world.leads(b); }));
  world.submit("second", 1000);
  REQUIRE(eventually([&] { return contains(read_text(followed), world.task_key("second")); }));
  CHECK(eventually([&] { return contains(read_text(followed), "\"stepped_down\""); }));
  follower.signal(SIGTERM);
  CHECK(follower.wait() == 128 + SIGTERM);
  std::vector<std::string> times;
  std::istringstream lines{read_text(followed)};
  for (std::string line; std::getline(lines, line);) {
    const json event = json::parse(line, nullptr, false);  // what it complains of is no JSON
    if (event.is_object()) times.push_back(event.at("at"));
  }
  CHECK(times.size() > 4);
  CHECK(std::is_sorted(times.begin(), times.end()));
}

}  // namespace
}  // namespace lictor::live
