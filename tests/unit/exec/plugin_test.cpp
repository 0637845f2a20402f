#include "exec/plugin.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <stop_token>

#include "support.h"

namespace lictor::exec::test {
namespace {

// A copy that no other user may write, whatever the umask of the build.
std::string built(const std::string& kind) {
  static const TemporaryFolder dir;
  const std::string copy = dir / kind + ".so";
  if (!std::filesystem::exists(copy)) {
    std::filesystem::copy_file(std::string{LICTOR_TEST_PLUGINS} + "/test_plugin_" + kind + ".so",
                               copy);
    REQUIRE(chmod(copy.c_str(), 0755) == 0);
  }
  return copy;
}

std::string error_of(const std::string& file, const std::string& executor = "") {
  const auto found = plugin_executor(file, executor, "Any");
  return found ? "" : found.error().message;
}

}  // namespace

TEST_CASE("plug-in: an executor is found by its name, or by the task's type, and is one object") {
  const auto by_name = plugin_executor(built("good"), "Resize", "Other").value();
  CHECK(plugin_executor(built("good"), "", "Resize").value() == by_name);
  CHECK(plugin_executor(built("good"), "", "Rotate").value() != by_name);
  const Context context{{"7", {}, {}, {}, {}, "{}"}, 1, 1, Instant::max(), std::stop_token{}};
  CHECK(by_name->run(context).result() == nlohmann::json{{"runs", 1}});
  CHECK(by_name->run(context).result() == nlohmann::json{{"runs", 2}});
  REQUIRE(context.writes().size() == 2);
  CHECK(context.writes().front().key == "app/7");
}

TEST_CASE("plug-in: an unusable plug-in is refused with the reason and what to do") {
  const auto check = [](const std::string& file, const std::string& executor,
                        const std::string& rest) {
    CHECK(error_of(file, executor) == "plug-in \"" + file + "\": " + rest);
  };
  check("/no/such.so", "", "No such file or directory; install the plug-in or correct the path");
  check("/etc/passwd", "",
        "expected a shared object, got something else; build it with g++ -shared");
  check("/tmp", "", "expected a shared object, got something else; build it with g++ -shared");
  const TemporaryFolder dir;
  write_file(dir / "broken.so", std::string{"\x7f"
                                            "ELF"} +
                                    std::string(100, '\0'));
  REQUIRE(chmod((dir / "broken.so").c_str(), 0644) == 0);
  CHECK(contains(error_of(dir / "broken.so"), "\": cannot be loaded: "));
  std::filesystem::copy_file(built("good"), dir / "half.so");
  std::filesystem::resize_file(dir / "half.so", std::filesystem::file_size(dir / "half.so") / 2);
  check(dir / "half.so", "", "the file is cut off; copy it again");
  check(built("none"), "",
        "has no lictor_plugin(), so it is no plug-in of lictor's; make it one with LICTOR_PLUGIN "
        "of lictor/plugin.h");
  CHECK(contains(error_of(built("other_abi")),
                 "lictor 9.1.0, plug-in ABI 7, whatever; this is lictor " LICTOR_VERSION
                 ", plug-in ABI 1, "));
  CHECK(contains(error_of(built("other_build")), "ABI 1, libstdc++ 99; this is lictor "));
  check(built("throws"), "", "its LICTOR_PLUGIN threw: no licence");
  check(built("empty"), "", "adds no executor in its LICTOR_PLUGIN");
  check(built("good"), "Paint", "has no executor \"Paint\"; it has \"Resize\", \"Rotate\"");
  check(built("good"), "",
        "has several executors; name one with \"executor\": \"Resize\", \"Rotate\"");
}

TEST_CASE("plug-in: a new version of a loaded file is noticed") {
  const std::string file = built("good");
  REQUIRE(plugin_executor(file, "Resize", "Any"));
  CHECK(replaced_plugins().empty());
  std::filesystem::copy_file(file, file + ".new");
  std::filesystem::rename(file + ".new", file);
  CHECK(replaced_plugins() == std::vector{file});
}

TEST_CASE("plug-in: a file that others may write does not run as root") {
  const std::string file = built("good");
  REQUIRE(chmod(file.c_str(), 0775) == 0);
  CHECK(check_plugin_file(file).has_value() == (geteuid() != 0));
  REQUIRE(chmod(file.c_str(), 0755) == 0);
  CHECK(check_plugin_file(file).has_value());
}

}  // namespace lictor::exec::test
