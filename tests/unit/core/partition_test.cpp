#include "core/partition.h"

#include <array>
#include <string>

#include <doctest/doctest.h>

using namespace lictor;
using namespace lictor::core;

TEST_SUITE_BEGIN("core");

// Made by another implementation of SipHash (in Python), of which "db7" was compared with
// "openssl mac -macopt size:8 -macopt hexkey:000102030405060708090a0b0c0d0e0f SIPHASH".
TEST_CASE("a task's partition follows from its serialKey or id, on every host and version alike") {
  struct Vector {
    std::string text;
    std::uint64_t hash;
    std::array<std::uint32_t, 4> partitions;  // of 2, 3, 16, 256
  };
  const std::array<Vector, 11> vectors{{
      {"42", 0x20626087b15d6d13, {1, 0, 3, 19}},
      {"db7", 0x1d02c1a5efe79550, {0, 2, 0, 80}},
      {"a", 0x2ba3e8e9a71148ca, {0, 1, 10, 202}},
      {"0123456", 0x11f655cd8ce1b332, {0, 1, 2, 50}},
      {"01234567", 0xbf01f08d01c1cb98, {0, 0, 8, 152}},
      {"order/42", 0xbd30a9d38ead801e, {0, 1, 14, 30}},
      {"schedule/nightly", 0x964fbb89854aa4e8, {0, 1, 8, 232}},
      {"nightly@2026-11-24T01:30:00Z", 0x65099dfa01230a39, {1, 2, 9, 57}},
      {"m\u00fcller", 0x359f1b9977481792, {0, 2, 2, 146}},
      {"\U0001f600", 0x4445257f49b3e86d, {1, 0, 13, 109}},
      {std::string(300, 'x'), 0x11a8091bcf4bc254, {0, 1, 4, 84}},
  }};
  for (const Vector& vector : vectors) {
    CAPTURE(vector.text);
    CHECK(siphash<2, 4>(kPartitionKey, vector.text) == vector.hash);
    CHECK(partition_of(vector.text, 0) == 0);
    CHECK(partition_of(vector.text, 1) == 0);
    CHECK(partition_of(vector.text, 2) == vector.partitions[0]);
    CHECK(partition_of(vector.text, 3) == vector.partitions[1]);
    CHECK(partition_of(vector.text, 16) == vector.partitions[2]);
    CHECK(partition_of(vector.text, 256) == vector.partitions[3]);
  }
  // The published vectors (Aumasson and Bernstein, appendix A, and their vectors.h).
  CHECK(siphash<2, 4>(kPartitionKey, "") == 0x726fdb47dd0e0e31);
  CHECK(siphash<2, 4>(kPartitionKey, std::string_view{"\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16",
                                                      15}) == 0xa129ca6149be45e5);
}

TEST_CASE("a serialKey goes before the id") {
  CHECK(partition_of("db7", "42", 256) == 80);
  CHECK(partition_of("", "42", 256) == 19);
  static_assert(partition_of("db7", "42", 256) == 80);
}

TEST_SUITE_END();
