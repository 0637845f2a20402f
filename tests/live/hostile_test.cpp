// Input that no sane producer writes: others' tasks run on, nothing is lost, and every reader gets
// a report of the fault.

#include <algorithm>
#include <utility>

#include "world.h"

namespace lictor::live {
namespace {

// The number of lines of its log that name `word`.
std::size_t lines_with(const LictorDaemon& daemon, const std::string& word) {
  const std::string log = daemon.log();
  std::size_t count = 0;
  for (std::size_t at = log.find(word); at != std::string::npos; at = log.find(word, at)) {
    ++count;
    at = log.find('\n', at);
  }
  return count;
}

std::string deep(const std::string& open, const std::string& close, int levels = 100'000) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += open;
  text += "0";
  for (int i = 0; i < levels; ++i) text += close;
  return text;
}

// A record of `bytes`.
std::string record_of(std::size_t bytes) {
  const std::string begin = R"({"taskType":"Record","blob":")";
  return begin + std::string(bytes - begin.size() - 2, 'x') + "\"}";
}

// In base64: {"taskType":"Record","executeAt":"2999-01-01T00:00:00Z"}
constexpr const char* kFarFuture =
    "eyJ0YXNrVHlwZSI6IlJlY29yZCIsImV4ZWN1dGVBdCI6IjI5OTktMDEtMDFUMDA6MDA6MDBaIn0=";

// Writes many keys, 64 a transaction.
void put_all(Kv& kv, const std::vector<std::string>& keys, const std::string& base64_value) {
  for (std::size_t i = 0; i < keys.size(); i += 64) {
    std::string body{'['};
    for (std::size_t j = i; j < std::min(i + 64, keys.size()); ++j) {
      body += body.size() > 1 ? "," : "";
      body += R"({"KV":{"Verb":"set","Key":")" + keys[j] + R"(","Value":")" + base64_value + "\"}}";
    }
    const HttpAnswer answer = kv.request("PUT", "/v1/txn", body + "]");
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
  }
}

TEST_CASE("unreadable records are reported once, where users look, and others run on") {
  World world;
  const std::vector<std::pair<std::string, std::string>> bad{
      {"", "unexpected end of input"},
      {"\xef\xbb\xbf", "expected a JSON object"},
      {"\xef\xbb\xbf\xef\xbb\xbf{\"taskType\":\"Record\"}", "byte order marks"},
      {std::string{"{\"taskType\":\"Record\"}\0x", 23}, "NUL"},
      {"{\"taskType\":\"Rec\xc3\"}", "UTF-8"},
      {R"({"taskType":"Record","taskType":7})", "taskType: expected a string"},
      {R"({"taskType":"Record","taskTime":18446744073709551616})", "taskTime: expected"},
      {R"({"taskType":"Record","x":[1e400]})", "1e400"},
      {R"({"taskType":"Record","taskTime":1e18})", "taskTime: expected"},
      {R"({"taskType":"Record","executeAt":"99999-01-01T00:00:00Z"})", "executeAt: expected"},
      {R"({"taskType":"Record","executeAt":"2026-02-30T00:00:00Z"})", "executeAt: expected"},
      {R"({"taskType":"Record","maxAttempts":4294967296})", "maxAttempts: expected"},
      {R"({"taskType":"Record","backoff":{"factor":)" + deep("[", "]") + "}}", "backoff: expected"},
      {deep("[", "]"), "expected a JSON object"},
      {deep("[", ""), "expected a JSON object"}};
  const auto bad_id = [](std::size_t i) {  // none is the beginning of another
    return std::string{"bad-"} + static_cast<char>('a' + i);
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    world.kv.put(world.task_key(bad_id(i)), bad[i].first);
    world.submit("good-" + std::to_string(i), static_cast<long>(1000 + i));
  }
  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return world.all_done(); }));
  REQUIRE(daemon->runs());
  CHECK(world.journal.runs().size() == bad.size());
  CHECK(world.dead() == bad.size());

  for (std::size_t i = 0; i < bad.size(); ++i) {
    const std::string id = bad_id(i);
    CAPTURE(id);
    const json letter = world.kv.get_json(world.dead_key(id));
    CHECK(letter.value("reason", "") == "unreadable");
    INFO(letter.value("error", ""));
    CHECK(contains(letter.value("error", ""), bad[i].second));
    CHECK(lines_with(*daemon, world.task_key(id)) == 1);
  }
  const json list = json::parse(ends(lictor(world, {"list", "--state", "dead", "--json"}), 0));
  CHECK(list.at("tasks").size() == bad.size());
}

TEST_CASE("strange but well-formed records are run as they are") {
  World world;
  const std::vector<std::string> strange{
      R"({"taskType":"Record","x":)" + deep("[", "]") + "}",
      R"({"taskType":"Record","x":)" + deep(R"({"a":)", "}", 50'000) + "}",
      "\xef\xbb\xbf{\"taskType\":\"Record\"}",
      R"({"taskType":"Other","taskType":"Record","x":1,"x":2})",
      R"({"taskType":"Record","x":[-1e-400,123456789012345678901234567890,-0]})",
      R"({"taskType":"Record","taskPara":{"a":"x\u0000y","\u0000":"z","":"","PATH":"/evil"}})",
      R"({"taskType":"Record","executeAt":"0000-01-01T00:00:00Z"})",
      R"({"taskType":"Record","executeAt":0,"taskTime":0})",
      R"({"taskType":"Record","expireAt":"9999-12-31T23:59:59Z","timeout":"87600h"})",
      R"({"taskType":"Record","taskClaim":)" + deep("[", "]") + "}",
      R"({"taskType":"Record","taskPara":)" + deep("[", "]") + "}",
      R"({"taskType":"Record","taskPara":{"a":)" + deep(R"({"a":)", "}", 50'000) + "}}"};
  const std::string far = R"({"taskType":"Record","executeAt":"9999-12-31T23:59:59Z"})";
  world.kv.put(world.task_key("far"), far);
  for (std::size_t i = 0; i < strange.size(); ++i) {
    world.kv.put(world.task_key(std::to_string(i)), strange[i]);
  }
  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return world.waiting() == 1; }));
  for (std::size_t i = 0; i < strange.size(); ++i) {
    CAPTURE(i);
    CHECK(world.journal.runs_of(std::to_string(i)).size() == 1);
  }
  CHECK(world.dead() == 0);
  CHECK(world.kv.get(world.task_key("far"))->value == far);
}

TEST_CASE("commands show endlessly nested records, and a daemon survives such a control key") {
  World world;
  const auto daemon = world.daemon("a");
  world.submit_done("1", 1);
  const std::string endless = deep("[", "]");
  world.kv.put(world.root + "default/control", R"({"paused":)" + endless + "}");
  world.kv.put(world.dead_key("x"), R"({"record":{"taskType":"T","x":)" + endless +
                                        R"(},"reason":"failed","error":"e","attempts":1})");
  CHECK(json::accept(ends(lictor(world, {"show", "x", "--json"}), 0)));
  CHECK(lictor(world, {"show", "x"}).exit_code == 0);
  CHECK(lictor(world, {"dead", "list"}).exit_code == 0);
  // An unreadable control key counts as a pause, until somebody corrects it.
  world.submit("2", 2);
  REQUIRE(eventually([&] { return daemon->logged("the control key cannot be read"); }));
  CHECK(says(lictor(world, {"check"}), "nothing is started, since "));
  CHECK(says(lictor(world, {"list"}), "paused by a control key that cannot be read ("));
  CHECK(lictor(world, {"resume"}).exit_code == 0);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(daemon->runs());
}

TEST_CASE("a record that a fenced transaction holds is run, a larger one is left and reported") {
  World world;
  const auto daemon = world.daemon("a");
  // Sizes around the limit of a transaction (3.1), with room for all that lictor adds.
  const std::vector<std::size_t> run{370'000, 385'000};
  const std::vector<std::size_t> left{393'116, 400'000, 524'288};
  for (const std::size_t bytes : run) {
    world.kv.put(world.task_key(std::to_string(bytes)), record_of(bytes));
  }
  for (const std::size_t bytes : left) {
    world.kv.put(world.task_key(std::to_string(bytes)), record_of(bytes));
  }
  REQUIRE(eventually([&] { return world.waiting() == left.size(); }));
  for (const std::size_t bytes : run) {
    CAPTURE(bytes);
    CHECK(world.journal.runs_of(std::to_string(bytes)).size() == 1);
  }
  const json tasks = json::parse(lictor(world, {"list", "--json"}).out).at("tasks");
  for (const std::size_t bytes : left) {
    const std::string id = std::to_string(bytes);
    CAPTURE(id);
    CHECK(world.kv.get(world.task_key(id))->value == record_of(bytes));
    CHECK(lines_with(*daemon, world.task_key(id)) == 1);
    says(lictor(world, {"why", id}), "a transaction holds records of up to 38");
    const auto listed = std::find_if(tasks.begin(), tasks.end(),
                                     [&](const json& task) { return task.at("id") == id; });
    REQUIRE(listed != tasks.end());
    CHECK(listed->at("state") == "too_large");
  }
}

TEST_CASE("keys of any bytes that Consul can list name tasks") {
  World world;
  const std::vector<std::string> ids{"a b",
                                     "100%",
                                     "%2F",
                                     "a+b&c=d?e#f",
                                     "..",
                                     "../up",
                                     "a/../b",
                                     "a//b",
                                     "/a",
                                     ".",
                                     "line\nfeed",
                                     "tab\tand\x1b[31m",
                                     "\"quoted\\\"",
                                     "\xe6\x97\xa5\xe6\x9c\xac",
                                     "\xe2\x80\xae right to left",
                                     "a replacement \xef\xbf\xbd that was written so",
                                     std::string(5'000, 'k')};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const json record{{"taskType", "Record"}, {"taskId", std::to_string(i)}};
    static_cast<void>(world.kv.set(world.task_key(ids[i]), record.dump()));
  }
  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return world.all_done(); }));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CAPTURE(ids[i]);
    CHECK(world.journal.runs_of(std::to_string(i)).size() == 1);
  }
  CHECK(world.dead() == 0);
}

TEST_CASE("a key that Consul cannot list and a task in a folder are reported once, block nothing") {
  World world;
  const std::string record = R"({"taskType":"Record"})";
  const std::string path = "/v1/kv/" + world.root + "default/tasks/";
  REQUIRE(world.kv.request("PUT", path + "%FF%FE-bytes", record).body == "true");
  REQUIRE(world.kv.request("PUT", path + "%FF-bad", "no record").body == "true");
  REQUIRE(world.kv.request("PUT", path + "folder/", record).body == "true");
  std::size_t later = 0;
  SUBCASE("in a short list, which is read whole") {}
  SUBCASE("in a long list, which is read by names and parts") {
    later = 10'000;  // so many that they are not one part
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < later; ++i) keys.push_back(world.task_key("f" + std::to_string(i)));
    for (int i = 0; i < 100; ++i) keys.push_back(world.task_key("new-" + std::to_string(i)));
    put_all(world.kv, keys, kFarFuture);
    later += 99;  // one of them is to run
  }
  const auto daemon = world.daemon("a");
  // Each of them another listing.
  for (int i = 0; i < 5; ++i) world.submit_begun("good-" + std::to_string(i), 1);
  REQUIRE(world.kv.request("PUT", path + "new-%FF", record).body == "true");
  REQUIRE(eventually([&] { return lines_with(*daemon, "not valid UTF-8") >= 3; }));
  for (int i = 5; i < 10; ++i) world.submit_begun("good-" + std::to_string(i), 1);
  // The rewritten key is found by reading all keys that begin as it does.
  world.submit_begun("new-50", 1);
  REQUIRE(eventually([&] { return world.waiting() == later + 3; }));
  CHECK(lines_with(*daemon, "not valid UTF-8") == 3);
  // In a long list, only when its part is read; "lictor check" reports folders.
  const auto folders = lines_with(*daemon, "is a folder");
  CHECK((folders == 1 || (later != 0 && folders == 0)));
  CHECK(lines_with(*daemon, "withdrawn") == 0);
  CHECK(world.journal.runs().size() == 11);
  const Output check = lictor(world, {"check"});
  says(check, "3 keys not in UTF-8");
  says(check, "default/tasks/folder/");
  const auto named = json::parse(lictor(world, {"list", "--state", "unnameable", "--json"}).out);
  CHECK(named.at("found") == 3);
  ends(lictor(world, {"cancel", "--all", "--yes", "--state", "waiting"}), 0, {"cancelled 0 tasks"});
  const std::string hint = "curl -X DELETE $CONSUL_HTTP_ADDR" + path + "new-%FF";
  ends(lictor(world, {"cancel", "--all", "--yes", "--state", "unnameable"}), 1, {hint});
  for (const std::string id : {"new-\xef\xbf\xbd", "new-\xff"}) {
    for (const char* command : {"show", "why", "cancel"}) {
      ends(lictor(world, {command, id}), 3, {hint});
    }
  }
  REQUIRE(world.kv.request("DELETE", path + "new-%FF").body == "true");
  CHECK(json::parse(lictor(world, {"list", "--json", "--state", "unnameable"}).out).at("found") ==
        2);
  // Written under another key, it is run.
  world.submit_begun("folder", 1);
}

TEST_CASE("among a hundred thousand tasks that wait for their time, one that is due starts") {
  World world;
  std::vector<std::string> keys;
  for (int i = 0; i < 100'000; ++i) keys.push_back(world.task_key("far-" + std::to_string(i)));
  put_all(world.kv, keys, kFarFuture);
  world.submit("before", 1);
  const auto daemon = world.daemon("a");
  world.begun("before");
  world.submit_begun("after", 1);
  REQUIRE(eventually([&] { return !world.kv.has(world.task_key("after")); }));
  CHECK(world.journal.runs().size() == 2);
  CHECK(world.dead() == 0);
  // Far below the size of a list of them all in one answer, 2 kB a task.
  const long most_kb = memory_kb(daemon->pid(), "VmHWM");
  CHECK(most_kb > 0);
  if (kMemoryTells) CHECK(most_kb < 80'000);
}

}  // namespace
}  // namespace lictor::live
