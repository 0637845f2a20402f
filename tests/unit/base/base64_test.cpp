#include "base/base64.h"

#include <utility>

#include <doctest/doctest.h>

#include "base/random.h"

using namespace lictor;

TEST_CASE("base64 is that of RFC 4648") {
  using Row = std::pair<const char*, const char*>;
  for (const auto& [bytes, text] :
       {Row{"", ""}, Row{"f", "Zg=="}, Row{"fo", "Zm8="}, Row{"foo", "Zm9v"},
        Row{"foob", "Zm9vYg=="}, Row{"fooba", "Zm9vYmE="}, Row{"foobar", "Zm9vYmFy"},
        Row{"\xff\xfe\xfd", "//79"}}) {
    CHECK(base64_encode(bytes) == text);
    CHECK(base64_decode(text) == bytes);
  }
}

TEST_CASE("any bytes come back from base64") {
  Random random{1};
  for (std::size_t size = 0; size < 200; ++size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(random.next());
    CHECK(base64_decode(base64_encode(bytes)) == bytes);
  }
}

TEST_CASE("what is not padded base64 of the standard alphabet is refused") {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "====", "=g==", "Z===", "Zm9v\n", "Zm 9v===",
                           "Zm9_", "Zm9-", "Zg==Zg==", "Zm9vZ", "Z=g=", "\x80\x80\x80\x80"}) {
    CAPTURE(text);
    CHECK_FALSE(base64_decode(text).has_value());
  }
}
