#include "core/key_table.h"

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
  KeyTable table;
  CHECK(table.find("x") == nullptr);
  std::mt19937 random{5};
  std::set<std::string> model;
  // Grows to thousands and shrinks to none, several times over.
  for (int round = 0; round < 4; ++round) {
    for (const unsigned inserted_of_ten : {8U, 2U, 0U}) {
      for (int i = 0; i < 10'000; ++i) {
        const std::string key = "tasks/" + std::to_string(random() % 20'000);
        const bool known = model.contains(key);
        if ((table.find(key) != nullptr) != known) FAIL(key);
        if (random() % 10 < inserted_of_ten && !known) {
          table.insert(key);
          model.insert(key);
        } else if (known) {
          table.erase(key);
          model.erase(key);
        }
      }
    }
    while (model.size() > static_cast<std::size_t>(3 - round)) {
      table.erase(*model.begin());
      model.erase(model.begin());
    }
    for (const std::string& key : model) CHECK(table.find(key) != nullptr);
  }
  table.insert("last");
  table.clear();
  CHECK(table.find("last") == nullptr);
}

TEST_CASE("of many keys those that were not inserted are told, in their order") {
  KeyTable table;
  const std::vector<std::string_view> none;
  const std::vector<std::string_view> two{"b", "a"};
  CHECK(table.others(two) == two);
  table.insert("k");
  CHECK(table.others(none).empty());
  CHECK(table.others(two) == two);
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back(std::to_string(i));
  std::vector<std::string_view> asked, expected;
  for (int i = 0; i < 100; ++i) {
    asked.emplace_back(keys[static_cast<std::size_t>(i)]);
    if (i % 3 == 0) {
      table.insert(asked.back());
    } else {
      expected.push_back(asked.back());
    }
  }
  CHECK(table.others(asked) == expected);
}

TEST_CASE("a key that was inserted twice is had until it was erased twice") {
  KeyTable table;
  table.insert("x");
  table.insert("x");
  table.erase("x");
  CHECK(table.find("x") != nullptr);
  table.erase("x");
  CHECK(table.find("x") == nullptr);
}
