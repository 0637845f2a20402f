// The hand-over of jobs: their writes, their results.

#include "wire/commit.h"

#include "core/reason.h"
#include "unit/contains.h"
#include "unit/refusal.h"
#include "wire/reason_text.h"

using namespace lictor;
using namespace lictor::wire;

namespace {

const Layout kCommitLayout = Layout::under("l/", "q");
const Reserved kReserved{{kCommitLayout}, "l/"};

std::string error_of(std::string_view text) {
  const auto writes = read_commit(text, kReserved, "l/q/tasks/1");
  return writes ? "" : writes.error().message;
}

}  // namespace

TEST_CASE("a job's writes: set, set if, delete, bytes") {
  const auto writes = read_commit(R"([
    {"key": "app/x", "value": "text"},
    {"key": "app/y", "delete": true, "cas": 7},
    {"key": "l/q/tasks/next", "value": "{}", "cas": 0},
    {"key": "app/b", "value_base64": "/w=="}])",
                                  kReserved, "l/q/tasks/1")
                          .value();
  using Write = core::KvWrite;
  CHECK(writes == std::vector<Write>{{"app/x", "text", false, {}},
                                     {"app/y", "", true, 7},
                                     {"l/q/tasks/next", "{}", false, 0},
                                     {"app/b", "\xff", false, {}}});
  CHECK(read_commit("[]", kReserved, "k")->empty());
}

TEST_CASE("a job's writes that make no sense, or that newer Consuls do not take, are refused") {
  CHECK(error_of("nonsense") ==
        R"(expected a JSON array such as [{"key": "app/x", "value": "text"}], got nonsense)");
  CHECK(error_of("\xff").starts_with("expected a JSON array"));
  CHECK(error_of("").ends_with(", got an empty file, as a full disk leaves it"));
  CHECK(error_of(R"([{"key":"a","value":"b"}, 7])") == "entry 2: expected an object, got 7");
  CHECK(error_of(R"([{"key":"a","value":7}])") == "entry 1: value: expected a string, got 7");
  CHECK(error_of(R"([{"key":"","value":"b"}])") == "entry 1: key: expected 1 to 512 bytes, got 0");
  CHECK(error_of(R"([{"key":"a"}])") ==
        "entry 1: expected either a value or \"delete\": true, got neither");
  CHECK(error_of(R"([{"key":"a","value":"b","delete":true}])") ==
        "entry 1: expected either a value or \"delete\": true, got both");
  CHECK(error_of(R"([{"key":"a","value":"b","cas":-1}])") ==
        "entry 1: cas: expected a ModifyIndex (0: the key must not exist), got -1");
  CHECK(error_of(R"([{"key":"a","valeu":"b"}])") ==
        R"(entry 1: expected key, value, value_base64, delete or cas, got "valeu")");
  CHECK(error_of(R"([{"key":"a","value":"1","value_base64":"MQ=="}])") ==
        R"(entry 1: expected either "value" or "value_base64", got both)");
  CHECK(error_of(R"([{"key":"a","value_base64":"?"}])") ==
        R"(entry 1: value_base64: expected a string in base64, got "?")");
  const std::string error = error_of(R"([{"key":"app/x","value":"x"},{"key":"/x","delete":true}])");
  CHECK(error.starts_with("entry 2: key: expected one that does not begin with \"/\""));
}

TEST_CASE("jobs may write tasks and keys beside the queues, not lictor's own keys") {
  for (const char* key : {"l/q/leader", "l/q/control", "l/q/dead/x", "l/q/done/x", "l/q/members/a",
                          "l/q/tasks/1", "l/other/leader", "l/other/dead/x", "l/q/partitions",
                          "l/q/leader/16/3", "l/other/leader/16/3"}) {
    CAPTURE(key);
    CHECK(error_of(R"([{"key":")" + std::string{key} + R"(","value":"x"}])")
              .ends_with("which a job may not write"));
  }
  for (const char* key : {"l/other/tasks/1", "l/data", "l/app/data", "app/leader"}) {
    CAPTURE(key);
    CHECK(error_of(R"([{"key":")" + std::string{key} + R"(","value":"x"}])").empty());
  }
}

TEST_CASE("a job's writes that are nested without end are refused, not followed") {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  CHECK_FALSE(error_of(deep).empty());
  CHECK_FALSE(error_of("[" + deep + "]").empty());
  CHECK_FALSE(error_of(R"([{"key": )" + deep + "}]").empty());
  CHECK(refusal_of(check_result(deep)).message ==
        "expected at most 512 levels of arrays and objects, got more");
}

TEST_CASE("a result is any JSON value and no more, for it stands within an object") {
  for (const char* value : {"7", "null", R"({"a": [1]})"}) CHECK(check_result(value));
  for (const std::string other : {"seven", "", "\"\xff\"", "\xef\xbb\xbf{}"}) {
    CHECK_FALSE_MESSAGE(check_result(other), other);
  }
  CHECK_FALSE(check_result(std::string_view{"1\0 and more", 10}));
  CHECK_FALSE(error_of(std::string_view{"[]\0", 3}).empty());
}

TEST_CASE("every reason has a name, a sentence and its parts") {
  using Kind = core::Reason::Kind;
  for (int i = 0; i <= static_cast<int>(Kind::kNext); ++i) {
    core::Reason reason{.kind = static_cast<Kind>(i), .key = "l/q/tasks/x"};
    const ReasonWords words = words_of(reason, kCommitLayout);
    CHECK(words.name != "unknown");
    CHECK_FALSE(words.text.empty());
  }
  core::Reason reason{.kind = Kind::kSerial, .key = "l/q/tasks/x", .text = "db7", .count = 2};
  CHECK(reasons_json({reason}, kCommitLayout) ==
        R"([{"reason":"serial_key","text":"task x of the same serialKey (db7) has not ended yet, )"
        R"(and 2 tasks come before it","task":"x","count":2}])");

  core::Reason running{
      .kind = Kind::kRunning, .count = 1, .since = WallTime{std::chrono::seconds{1'795'253'400}}};
  const std::string begin = "it is running, attempt 1, since 2026-11-21T09:30:00.000Z";
  CHECK(words_of(running, kCommitLayout).text == begin);
  running.progress = R"({"fraction":0.29,"note":""})";
  CHECK(words_of(running, kCommitLayout).text == begin + ", 29% done");
  running.progress = R"({"fraction":0.999,"note":"page 999"})";
  running.text = "it timed out";
  CHECK(words_of(running, kCommitLayout).text ==
        begin + ", 99% done: page 999, and is being stopped: it timed out");
  CHECK(reasons_json({running}, kCommitLayout)
            .ends_with(R"(,"count":1,"progress":)" + running.progress + "}]"));
}

TEST_CASE("a commit names a key once: two writes of it would have one ModifyIndex") {
  const Error refused = refusal_of(read_commit(
      R"([{"key": "app/x", "value": "1"}, {"key": "app/y", "value": "1"},
          {"key": "app/x", "delete": true}])",
      {}, "tasks/1"));
  CHECK(contains(refused.message, "entry 3: key: app/x"));
}
