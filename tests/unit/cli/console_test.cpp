#include "cli/console.h"

#include <map>

#include "base/printable.h"
#include "cli/json_output.h"
#include "cli/top_page.h"
#include "client/store.h"
#include "cluster/diagnosis.h"
#include "harness.h"
#include "model_consul.h"
#include "unit/refusal.h"

namespace lictor::cli::test {
namespace {

TEST_CASE("a full disk is reported once") {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> full{std::fopen("/dev/full", "w"),
                                                             std::fclose};
  REQUIRE(full);
  Console console{full.get(), stderr, {}, {}};
  console.print("42\n");
  CHECK(refusal_of(console.flush()).code == ErrorCode::kFailed);
  CHECK(console.flush());
}

TEST_CASE("progress is printed on terminals only, and is erased") {
  Scene quiet{{}};
  quiet.client.console.progress("1 of 2");
  quiet.client.console.report_error("no");
  CHECK(quiet.err() == "lictor: no\n");

  Scene terminal{{}, false, {true, false, 12, true}};
  terminal.client.console.progress("1 of 20000000");
  terminal.client.console.note("done");
  CHECK(terminal.err() == "\r\x1b[K1 of 200...\r\x1b[Kdone\n");
}

TEST_CASE("the commands that a text suggests name the queue and repeat the options") {
  CHECK(
      cluster::with_options(
          R"(see "lictor why 42"; then "lictor dead purge"; "lictor check" says more)", "night") ==
      R"(see "lictor why 42 -q night"; then "lictor dead purge -q night"; "lictor check" says more)");
  CHECK(cluster::with_options(R"("lictor why 42 -q day")", "night") == R"("lictor why 42 -q day")");
  for (const char* text : {"", "lictor why 42", R"("lictor run")", R"("lictor help topics")",
                           R"(the end of "lictor why 42)"}) {
    CHECK(cluster::with_options(text, "night") == text);
  }
  CHECK(cluster::with_options(R"("lictor check", "lictor list" or "lictor help jobs")", "",
                              " --config a.json") ==
        R"("lictor check --config a.json", "lictor list --config a.json" or "lictor help jobs")");
  // Anybody who may write a task chooses its id.
  const std::string hostile = "see \"lictor why " + shell_argument("a\"; reboot 'x'") + '"';
  CHECK(hostile == R"(see "lictor why 'a"; reboot '\''x'\'''")");
  CHECK(cluster::with_options(hostile, "night") ==
        R"(see "lictor why 'a"; reboot '\''x'\''' -q night")");
  CHECK(cluster::with_options("\"lictor show " + shell_argument("-rf") + '"', "night") ==
        R"("lictor show -q night -- -rf")");
  Scene scene{{}};
  Console& console = scene.client.console;
  console.name_queue("night");
  console.print_line(R"({"error": "see \"lictor retry 42\""})");  // data stays as it is
  console.print_line(console.suggesting("\"lictor retry 42\""));
  console.report_error("\"lictor show 42\"");
  console.note("\"lictor list\"");
  CHECK(scene.out() ==
        "{\"error\": \"see \\\"lictor retry 42\\\"\"}\n\"lictor retry 42 -q night\"\n");
  CHECK(scene.err() == "lictor: \"lictor show 42 -q night\"\n\"lictor list -q night\"\n");
}

Table sample() {
  Table table{{"ID", "NODE", "ERROR"}};
  table.add_row({{"42"}, {""}, {"a long error that goes on and on"}});
  table.add_row({{"a\x1b[1m"}, {""}, {""}});
  return table;
}

TEST_CASE("columns are aligned, empty ones left out, on a terminal the last is cut to the width") {
  const auto rendered = [](std::size_t width) { return sample().render(width).text(false); };
  CHECK(rendered(0) == "ID        ERROR\n42        a long error that goes on and on\na\\x1b[1m\n");
  CHECK(rendered(30) == "ID        ERROR\n42        a long error that...\na\\x1b[1m\n");
  CHECK(Table{{"ID"}}.render(0).empty());  // without rows
}

TEST_CASE("in a pipe nothing is cut, and one long id does not pad all rows to its length") {
  Table table{{"ID", "STATE"}};
  const std::string id(400, 'x');
  table.add_row({{id}, {"dead"}});
  table.add_row({{"b"}, {"waiting"}});
  CHECK(table.render(0).text(false) == "ID" + std::string(80, ' ') + "STATE\n" + id + "  dead\n" +
                                           "b" + std::string(81, ' ') + "waiting\n");
}

TEST_CASE("if that is not enough, the first column is cut in its middle") {
  Table table{{"ID", "STATE", "ERROR"}};
  table.add_row({{"a-long-id-of-one-task-0001"}, {"dead"}, {"a long error that goes on"}});
  table.add_row({{"b"}, {"dead"}, {""}});
  CHECK(table.render(45).text(false) ==
        "ID                    STATE  ERROR\n"
        "a-long-id...ask-0001  dead   a long error ...\n"
        "b                     dead\n");
  CHECK(contains(table.render(0).text(false), "a-long-id-of-one-task-0001  dead"));
  // A short first column leaves its room to the others.
  Table wide{{"ID", "ERROR"}};
  wide.add_row({{"a-long-id-of-one-task-0001"}, {"failed"}});
  CHECK(wide.render(34).text(false) ==
        "ID                          ERROR\na-long-id-of-one-task-0001  failed\n");
}

TEST_CASE("colour is printed on terminals that want it, and does not move columns") {
  Table table{{"STATE", "ID"}};
  table.add_row({{"dead", Style::kRed}, {"42"}});
  CHECK(table.render(80).text(true) ==
        "\x1b[1mSTATE\x1b[0m  \x1b[1mID\x1b[0m\n\x1b[31mdead\x1b[0m   42\n");
  CHECK(table.render(80).text(false) == "STATE  ID\ndead   42\n");
}

TEST_CASE("each kind of error has the exit code of the contract") {
  const std::pair<ErrorCode, int> table[] = {
      {ErrorCode::kInvalid, 2},          {ErrorCode::kNotFound, 3},
      {ErrorCode::kUnavailable, 4},      {ErrorCode::kTimeout, 4},
      {ErrorCode::kPermissionDenied, 5}, {ErrorCode::kConflict, 1},
      {ErrorCode::kTooLarge, 1},         {ErrorCode::kFailed, 1}};
  for (const auto& [error, code] : table) {
    CAPTURE(static_cast<int>(error));
    CHECK(exit_code(error) == code);
  }
}

TEST_CASE("a failure of Consul that may pass is exit code 4; missing rights are 5, others 1") {
  const std::pair<http::Response, int> table[] = {{undelivered(http::Delivery::kNotSent), 4},
                                                  {undelivered(http::Delivery::kLost), 4},
                                                  {reply(500, "No cluster leader"), 4},
                                                  {reply(500, "rpc error making call: EOF"), 4},
                                                  {reply(429, ""), 4},
                                                  {reply(404, ""), 4},  // no index: not Consul
                                                  {reply(403, "Permission denied"), 5},
                                                  {reply(403, "ACL not found"), 5},
                                                  {reply(413, "Request body too large"), 1},
                                                  {reply(400, "Missing key name"), 1}};
  for (const auto& [answer, code] : table) {
    CAPTURE(answer.status);
    CAPTURE(answer.body);
    CHECK(exit_code(client::store_error("read x", answer).code) == code);
  }
}

TEST_CASE("an error says what to do") {
  const auto message = [](const http::Response& response) {
    return client::store_error("read x", response).message;
  };
  CHECK(contains(message(reply(403, "ACL not found")), "does not know the token"));
  CHECK(contains(message(reply(403, "Permission denied")), "--token-file"));
  for (const int status : {400, 403, 404, 429, 500}) {
    CHECK(contains(message(reply(status, "no")), "http://consul"));
  }
  CHECK(contains(message(reply(500, "No cluster leader")), "raft list-peers"));
  CHECK(message(undelivered(http::Delivery::kNotSent,
                            "GET /v1/kv/x: http://h:1: not sent: no; check that a Consul agent "
                            "listens there")) ==
        "cannot reach Consul at http://h:1: no; is the agent running? Set CONSUL_HTTP_ADDR or "
        "--consul");
}

TEST_CASE("a document is safe to show and still the same JSON") {
  const nlohmann::ordered_json value{{"z", "\x1b[1m\u009b\x7f\u00fc"}, {"a", "\xff"}};
  const std::string text = json_document(value);
  CHECK(text == "{\n  \"z\": \"\\u001b[1m\\u009b\\u007f\u00fc\",\n  \"a\": \"\ufffd\"\n}\n");
  CHECK(nlohmann::json::parse(text)["z"] == value["z"]);
}

TEST_CASE("JSON is indented without being changed") {
  CHECK(indented_json(R"({"n":123456789012345678901234567890,"n": 1.50,"e":{ },"l":[],)"
                      R"("s":"a,{\"b\":\\","a":[1,{"x":null}]})") ==
        "{\n"
        "  \"n\": 123456789012345678901234567890,\n"
        "  \"n\": 1.50,\n"
        "  \"e\": {},\n"
        "  \"l\": [],\n"
        "  \"s\": \"a,{\\\"b\\\":\\\\\",\n"
        "  \"a\": [\n"
        "    1,\n"
        "    {\n"
        "      \"x\": null\n"
        "    }\n"
        "  ]\n"
        "}");
}

TEST_CASE("an empty result or missing leader is a document, with an error beside it") {
  const std::vector<std::pair<const char*, const char*>> commands{
      {"show x", "tasks"}, {"dead show x", "tasks"}, {"why x", "reasons"}};
  ModelConsul consul;
  for (const auto& [words, name] : commands) {
    Stage scene{consul, true};
    CHECK(refusal_of(scene.run(words)).code == ErrorCode::kNotFound);
    const auto told = nlohmann::json::parse(scene.out());
    CHECK(told.at("id") == "x");
    CHECK(told.at(name) == nlohmann::json::array());
    Stage plain{consul};
    REQUIRE_FALSE(plain.run(words));
    CHECK(plain.out().empty());
  }
  Stage scene{consul, true};
  REQUIRE_FALSE(scene.run("leader --step-down"));
  CHECK(nlohmann::json::parse(scene.out()).at("lock") == "free");
}

TEST_CASE("without an answer of Consul there is no document, and only the first id is tried") {
  const auto lost = undelivered(http::Delivery::kLost);
  Scene shown{{lost}, true};
  REQUIRE_FALSE(shown.run("show x"));
  CHECK(shown.out().empty());
  Scene cancelled{{lost}};
  CHECK(cancelled.run("cancel x y") == kUnreachable);
  CHECK(cancelled.consul.asked.size() == 1);
}

}  // namespace

TEST_CASE("top marks a running task whose owner is gone, and not its time") {
  ModelConsul consul;
  Stage stage{consul};
  TopView view{
      .tasks = {
          {"counts", {{"running", 2}}},
          {"tasks",
           {{{"key", "1"}, {"id", "old"}, {"orphan", true}, {"since", "2020-01-01T00:00:00Z"}},
            {{"key", "2"}, {"id", "new"}, {"orphan", false}, {"since", "2020-01-01T00:00:00Z"}}}}}};
  std::map<std::string, std::string> lines;
  std::istringstream text{top_page({stage.client, view, "", {24, 80}}).text(false)};
  for (std::string line, id; std::getline(text, line);) {
    if (std::istringstream{line} >> id) lines[id] = line;
  }
  CHECK(contains(lines["old"], "orphan"));
  CHECK_FALSE(contains(lines["new"], "orphan"));
}

TEST_CASE("top names the types that nobody runs, and no task that has none") {
  ModelConsul consul;
  Stage stage{consul};
  TopView view{
      .queue = {{"types", {"Mail"}},
                {"findings", {{{"kind", "no_executor"}, {"what", "1 task"}, {"remedy", ""}}}}},
      .tasks = {{"types", {{"", 1}, {"Mail", 2}, {"Odd", 1}}}}};
  const auto text = [&] { return top_page({stage.client, view, "", {24, 80}}).text(false); };
  CHECK(contains(text(), "1 task: \"Odd\" (1)\n"));
  // Members of another form than this version's stay empty.
  view.queue = {{"leads_here", 1},
                {"members", 7},
                {"findings", {3}},
                {"status", {{"activity", 0}, {"workers", {{"T", 9}}}}}};
  view.tasks = view.dead = {{"counts", {1}}, {"tasks", {"x"}}, {"found", "x"}, {"types", 5}};
  CHECK(contains(text(), "queue q"));
}

}  // namespace lictor::cli::test
