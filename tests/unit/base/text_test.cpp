#include "base/text.h"

#include <doctest/doctest.h>

#include "base/random.h"

using namespace lictor;

TEST_CASE("the nearest word is found, and none when none is near") {
  const std::vector<std::string_view> words{"concurrency", "prefetch", "lock_delay", "ttl"};
  CHECK(nearest("concurency", words) == "concurrency");
  CHECK(nearest("lockdelay", words) == "lock_delay");
  CHECK(nearest("tll", words) == "ttl");
  CHECK(nearest("timeout", words).empty());
  CHECK(nearest("", {}).empty());
}

TEST_CASE("what is kept of a text stands as it is, the rest is percent-encoded") {
  CHECK(is_word("aZ09-_", "-_"));
  CHECK_FALSE(is_word("a/b", "-_"));
  CHECK_FALSE(is_word("", "-_"));
  CHECK(percent_encoded("aZ0/-~\xff %", "/-") == "aZ0/-%7E%FF%20%25");
}

TEST_CASE("UTF-8 is as RFC 3629 has it") {
  for (const char* text : {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                           "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"}) {
    CAPTURE(text);
    CHECK(is_utf8(text));
    CHECK(to_utf8(text) == text);
  }
  for (const char* text : {"\x80", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                           "\xe2\x82", "a\xe2\x28\xa1", "\xf0\x9f\x98"}) {
    CAPTURE(text);
    CHECK_FALSE(is_utf8(text));
    CHECK(is_utf8(to_utf8(text)));
  }
  CHECK(to_utf8("a\xff"
                "b") ==
        "a\xef\xbf\xbd"
        "b");
}

TEST_CASE("printable ASCII is from the space to the tilde") {
  CHECK(is_printable_ascii(" ~"));
  CHECK(is_plain_in_json(" ~"));
  for (const char other : {'\x1f', '\x7f', '\x80', '\xff', '\0', '\n', '"', '\\'}) {
    const std::string text{' ', other, '~'};
    CHECK(is_printable_ascii(text) == (other == '"' || other == '\\'));
    CHECK_FALSE(is_plain_in_json(text));
  }
}

TEST_CASE("an excerpt is one line, valid, and no longer than asked for") {
  CHECK(excerpt("short") == "short");
  CHECK(excerpt("two\nlines\tand\x01") == "two\\nlines\\x09and\\x01");
  CHECK(excerpt("0123456789", 10) == "0123456789");
  CHECK(excerpt("0123456789a", 10) == "0123456789...");
  CHECK(excerpt("01234567\xe2\x82\xac", 10) == "01234567...");
  CHECK(excerpt("012345678\n", 10) == "012345678...");
  CHECK(excerpt("", 10).empty());
  CHECK(excerpt("abc", 0) == "...");
  CHECK(excerpt("a\u202eb\u009bc\xff") == "a\\u202eb\\x9bc\\xff");

  Random random{3};
  for (int i = 0; i < 2'000; ++i) {
    std::string bytes;
    for (std::uint64_t n = random.next() % 40; n > 0; --n) {
      bytes +=
          static_cast<char>(random.next() % 3 == 0 ? random.next() : 0x80 + random.next() % 96);
    }
    const std::string line = excerpt(bytes, 20);
    REQUIRE(is_utf8(line));
    REQUIRE(line.size() <= 20 + 3);
    REQUIRE(line.find('\n') == std::string::npos);
  }
}
