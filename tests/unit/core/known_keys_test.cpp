#include "core/tasks/known_keys.h"

#include <deque>
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

TEST_CASE("the table finds the keys that were inserted and no others") {
  KnownKeys table{7};
  CHECK(table.find("x") == nullptr);
  std::mt19937 random{5};
  std::map<std::string, KnownKey> model;
  // Grows to thousands and shrinks to none, several times over.
  for (int round = 0; round < 4; ++round) {
    for (const unsigned inserted_of_ten : {8U, 2U, 0U}) {
      for (int i = 0; i < 10'000; ++i) {
        const std::string key = "tasks/" + std::to_string(random() % 20'000);
        const auto known = model.find(key);
        KnownKey* const found = table.find(key);
        if (found != (known == model.end() ? nullptr : &known->second)) FAIL(key);
        if (random() % 10 < inserted_of_ten && known == model.end()) {
          table.insert(model[key] = KnownKey{key, 1});
        } else if (known != model.end()) {
          table.erase(known->second);
          model.erase(known);
        }
      }
    }
    while (model.size() > static_cast<std::size_t>(3 - round)) {
      table.erase(model.begin()->second);
      model.erase(model.begin());
    }
    CHECK(table.size() == model.size());
    for (auto& [key, known] : model) CHECK(table.find(key) == &known);
  }
  table.clear();
  CHECK(table.size() == 0);
}

TEST_CASE("a listing is compared: what is unknown, in its order, and what it lacks") {
  KnownKeys table{7};
  const std::vector<std::string_view> two{"b", "a"};
  CHECK(table.match(two).unknown == two);
  std::deque<KnownKey> known;
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back(std::to_string(i));
  std::vector<std::string_view> listed, unknown;
  std::set<std::string> lacking;
  for (int i = 0; i < 100; ++i) {
    const std::string& name = names[static_cast<std::size_t>(i)];
    if (i % 3 == 0) table.insert(known.emplace_back(KnownKey{name, 1}));
    if (i % 4 != 0) {
      listed.emplace_back(name);
      if (i % 3 != 0) unknown.emplace_back(name);
    } else if (i % 3 == 0) {
      lacking.insert(name);
    }
  }
  const KnownKeys::Match match = table.match(listed);
  CHECK(match.unknown == unknown);
  std::set<std::string> unlisted;
  table.for_each_unlisted(match, [&](const KnownKey& key) { unlisted.insert(key.key); });
  CHECK(unlisted == lacking);
  CHECK(table.listed(match, known[1]));        // "3"
  CHECK_FALSE(table.listed(match, known[0]));  // "0"
}

TEST_CASE("names that collide under one seed do not under another") {
  // Two tables of the same names share their places only by chance.
  std::deque<KnownKey> known;
  for (int i = 0; i < 64; ++i) known.push_back({std::to_string(i), 1});
  const auto order = [&](std::uint64_t seed) {
    KnownKeys table{seed};
    for (KnownKey& key : known) table.insert(key);
    std::vector<std::string> keys;
    table.for_each([&](const KnownKey& key) { keys.push_back(key.key); });
    return keys;
  };
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
}

TEST_SUITE_END();
