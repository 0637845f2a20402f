#include "core/key_table.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace lictor;
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

TEST_CASE("distant tasks are erased by what is known of them, and others stay") {
  KeyTable table;
  std::vector<std::string> keys;
  for (int i = 0; i < 3'000; ++i) keys.push_back("tasks/" + std::to_string(i));
  std::map<std::string, std::uint64_t> distant;
  std::vector<std::string_view> listed;
  const WallTime tomorrow{std::chrono::hours{24}};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % 3 == 0) {
      table.insert(keys[i]);
      continue;
    }
    table.insert(keys[i], i, tomorrow + std::chrono::milliseconds{i});
    distant[keys[i]] = i;
    if (i % 2 == 0) listed.emplace_back(keys[i]);
  }
  const auto as_in = [&] {
    bool same = true;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const KeyTable::Entry* entry = table.find(keys[i]);
      const auto known = distant.find(keys[i]);
      if (i % 3 == 0) {
        same = same && entry != nullptr && !entry->distant();
      } else if (known == distant.end()) {
        same = same && entry == nullptr;
      } else {
        same = same && entry != nullptr && entry->distant() && entry->version == known->second &&
               entry->due == tomorrow + std::chrono::milliseconds{i};
      }
    }
    return same;
  };
  CHECK(as_in());

  const auto old = [](const KeyTable::Entry& entry) {
    return entry.distant() && entry.version < 1'000;
  };
  CHECK(table.erase_if(old) ==
        std::erase_if(distant, [](const auto& d) { return d.second < 1'000; }));
  CHECK(as_in());

  // Of what is not listed; what is near and not listed is not asked for here.
  const auto far = [](const KeyTable::Entry& entry) { return entry.distant(); };
  CHECK(table.erase_others(listed, far) ==
        std::erase_if(distant, [](const auto& d) { return d.second % 2 != 0; }));
  CHECK(as_in());
  CHECK(table.erase_others(listed, far) == 0);

  std::size_t visited = 0;
  table.for_each([&](KeyTable::Entry& entry) {
    ++visited;
    if (entry.distant()) ++entry.version;
  });
  CHECK(visited == distant.size() + 1'000);
  for (auto& [key, version] : distant) ++version;
  CHECK(as_in());
  CHECK(table.erase_others({}, [](const KeyTable::Entry&) { return true; }) == visited);
  CHECK(table.find(keys[0]) == nullptr);
}
