#include "core/key_hashes.h"

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace lictor::core;

TEST_SUITE_BEGIN("core");

TEST_CASE("what was inserted is had, what was not or was erased is not") {
  KeyHashes hashes;
  CHECK_FALSE(hashes.may_have("x"));
  std::mt19937 random{5};
  std::set<std::string> model;
  // Grows to thousands and shrinks to none, several times over.
  for (int round = 0; round < 4; ++round) {
    for (const unsigned inserted_of_ten : {8U, 2U, 0U}) {
      for (int i = 0; i < 10'000; ++i) {
        const std::string key = "tasks/" + std::to_string(random() % 20'000);
        const bool known = model.contains(key);
        if (hashes.may_have(key) != known) FAIL(key);
        if (random() % 10 < inserted_of_ten && !known) {
          hashes.insert(key);
          model.insert(key);
        } else if (known) {
          hashes.erase(key);
          model.erase(key);
        }
      }
    }
    while (model.size() > static_cast<std::size_t>(3 - round)) {
      hashes.erase(*model.begin());
      model.erase(model.begin());
    }
    for (const std::string& key : model) CHECK(hashes.may_have(key));
  }
  hashes.insert("last");
  hashes.clear();
  CHECK_FALSE(hashes.may_have("last"));
}

TEST_CASE("of many keys those that were not inserted are told, in their order") {
  KeyHashes hashes;
  const std::vector<std::string_view> none;
  const std::vector<std::string_view> two{"b", "a"};
  CHECK(hashes.others(two) == two);
  hashes.insert("k");
  CHECK(hashes.others(none).empty());
  CHECK(hashes.others(two) == two);
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back(std::to_string(i));
  std::vector<std::string_view> asked, expected;
  for (int i = 0; i < 100; ++i) {
    asked.emplace_back(keys[static_cast<std::size_t>(i)]);
    if (i % 3 == 0) {
      hashes.insert(asked.back());
    } else {
      expected.push_back(asked.back());
    }
  }
  CHECK(hashes.others(asked) == expected);
}

TEST_CASE("a key that was inserted twice is had until it was erased twice") {
  KeyHashes hashes;
  hashes.insert("x");
  hashes.insert("x");
  hashes.erase("x");
  CHECK(hashes.may_have("x"));
  hashes.erase("x");
  CHECK_FALSE(hashes.may_have("x"));
}
