// The inputs that the fuzzers begin with, and those that once broke something, through each
// fuzzer's properties: without clang, and in every build.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>

// One for each file <name>_fuzz.cpp; the build gives their entry points these names.
extern "C" {
int fuzz_admin(const std::uint8_t* data, std::size_t size);
int fuzz_config(const std::uint8_t* data, std::size_t size);
int fuzz_job(const std::uint8_t* data, std::size_t size);
int fuzz_letters(const std::uint8_t* data, std::size_t size);
int fuzz_record(const std::uint8_t* data, std::size_t size);
int fuzz_replies(const std::uint8_t* data, std::size_t size);
int fuzz_schedule(const std::uint8_t* data, std::size_t size);
int fuzz_text(const std::uint8_t* data, std::size_t size);
int fuzz_warden(const std::uint8_t* data, std::size_t size);
}

namespace {

struct Fuzzer {
  const char* name;
  int (*run)(const std::uint8_t* data, std::size_t size);
};

constexpr Fuzzer kFuzzers[] = {
    {"admin", fuzz_admin},       {"config", fuzz_config}, {"job", fuzz_job},
    {"letters", fuzz_letters},   {"record", fuzz_record}, {"replies", fuzz_replies},
    {"schedule", fuzz_schedule}, {"text", fuzz_text},     {"warden", fuzz_warden}};

}  // namespace

TEST_CASE("the corpus keeps each fuzzer's properties") {
  for (const Fuzzer& fuzzer : kFuzzers) {
    CAPTURE(fuzzer.name);
    int inputs = 0;
    for (const auto& file :
         std::filesystem::directory_iterator(std::filesystem::path(CORPUS) / fuzzer.name)) {
      INFO(file.path().string());
      std::ifstream in(file.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      REQUIRE(in);
      CHECK(fuzzer.run(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()) == 0);
      ++inputs;
    }
    CHECK(inputs > 0);
  }
}
