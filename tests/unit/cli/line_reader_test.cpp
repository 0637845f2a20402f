#include "cli/line_reader.h"

#include <sstream>

#include <doctest/doctest.h>

namespace lictor::cli {
namespace {

TEST_CASE("lines bear the numbers that an editor shows") {
  std::istringstream in{"\xef\xbb\xbf{1}\n\n  \n{2}\r\n{3}"};
  LineReader lines{in};
  CHECK(lines.next() == "{1}");
  CHECK(lines.number() == 1);
  CHECK(lines.next() == "{2}");
  CHECK(lines.number() == 4);
  CHECK(lines.next() == "{3}");
  CHECK(lines.number() == 5);
  CHECK_FALSE(lines.next());
  CHECK_FALSE(lines.failed());
}

}  // namespace
}  // namespace lictor::cli
