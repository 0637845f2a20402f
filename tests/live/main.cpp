#define DOCTEST_CONFIG_IMPLEMENT
#include <curl/curl.h>
#include <doctest/doctest.h>

#include "support.h"
#include "world.h"

namespace {

// Prints the logs of the processes that a failed test has started.
class FailureReporter : public doctest::IReporter {
 public:
  explicit FailureReporter(const doctest::ContextOptions&) {}
  void test_case_start(const doctest::TestCaseData&) override { lictor::live::forget_kept(); }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (!stats.testCaseSuccess) lictor::live::print_kept();
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("failure", 1, FailureReporter);

}  // namespace

int main(int argc, char** argv) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  doctest::Context context{argc, argv};
  const int result = context.run();
  lictor::live::stop_shared_consul();
  return result;
}
