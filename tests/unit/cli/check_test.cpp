#include <string>

#include <doctest/doctest.h>

#include "cli/check_report.h"
#include "harness.h"

namespace lictor::cli {
namespace {

using test::contains;
using test::FakeConsul;
using test::reply;

constexpr const char* kAllDenied =
    R"({"Results":null,"Errors":[{"OpIndex":0,"What":"Permission denied"},)"
    R"({"OpIndex":2,"What":"Permission denied"},{"OpIndex":3,"What":"Permission denied"},)"
    R"({"OpIndex":4,"What":"Permission denied"},{"OpIndex":5,"What":"Permission denied"},)"
    R"({"OpIndex":6,"What":"Permission denied"}]})";

CheckOptions::Queue queue() {
  return {"q", wire::Layout::under("lictor/", "q"), {}, {"serfHealth"}};
}

TEST_CASE("the first failure decides the exit code, warnings do not") {
  Report report;
  report.ok("a", "fine");
  report.warn("b", "so so", "do this");
  CHECK_FALSE(report.first_failure());
  report.fail("c", "bad", "do that", ErrorCode::kPermissionDenied);
  report.fail("d", "worse", "", ErrorCode::kUnavailable);
  CHECK(report.first_failure() == ErrorCode::kPermissionDenied);
  CHECK(report.text({}) ==
        "ok    a  fine\n"
        "warn  b  so so\n"
        "         -> do this\n"
        "FAIL  c  bad\n"
        "         -> do that\n"
        "FAIL  d  worse\n");
  CHECK(contains(report.json(), R"("ok": false)"));
}

TEST_CASE("a token that may do nothing is told so, and nothing else is asked") {
  FakeConsul consul{{reply(403, "Permission denied"), reply(403, "Permission denied"),
                     reply(403, "Permission denied"), reply(403, "Permission denied"),
                     reply(403, "Permission denied"), reply(409, kAllDenied),
                     // the leader, then the dead letters
                     reply(403, "Permission denied"), reply(403, "Permission denied")}};
  Store store{consul};
  Report report;
  check_queue(store, queue(), "node", false, report);
  CHECK(report.first_failure() == ErrorCode::kPermissionDenied);
  CHECK(contains(report.text({}), "reads nothing; writes nothing"));
}

TEST_CASE("how long a takeover lasts follows from the settings") {
  const std::string text = takeover_text({}, {"serfHealth"});
  CHECK(contains(text, "within 40s to 1m"));
  CHECK(contains(text, "when its host dies, from 30s on"));
  CHECK_FALSE(contains(takeover_text({}, {}), "host"));
}

}  // namespace
}  // namespace lictor::cli
