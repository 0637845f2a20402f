#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>

#include "package/manual.h"

namespace lictor::package {
namespace {

// How the page words a key below its heading.
std::string worded(const app::KeyForm& key) {
  const bool quoted = key.default_text != "the queue's";
  const std::string standard = quoted ? '`' + key.default_text + '`' : key.default_text;
  return key.form + ". " + (key.default_text.empty() ? "" : "Default: " + standard + ". ") +
         (key.reloads ? "A reload takes over a change.\n" : "A change takes a restart.\n");
}

}  // namespace

void check_forms(const std::string& markdown, const std::vector<app::ObjectForm>& forms) {
  std::string fault;  // the first form that is not as expected
  for (const app::ObjectForm& object : forms) {
    const std::string place = "configuration.md: " + object.name + ": ";
    const std::size_t begin = markdown.find("\n## " + object.name + '\n');
    if (begin == std::string::npos) throw std::runtime_error{place + "no section"};
    std::map<std::string, std::string> keys;
    for (const app::KeyForm& key : object.keys) keys.emplace(key.key, worded(key));
    const std::string section =
        markdown.substr(begin + 1, markdown.find("\n## ", begin + 1) - begin);
    std::istringstream lines{section};
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("### ")) continue;
      const bool several = line.find(',') != std::string::npos;
      std::istringstream names{line.substr(4)};
      std::string expected{'\n'};
      for (std::string name; std::getline(names >> std::ws, name, ',');) {
        const auto key = keys.extract(name);
        if (key.empty()) {
          throw std::runtime_error{place + "there is no key " + name + ", or it stands twice"};
        }
        expected += (several ? "- `" + name + "`: " : "Form: ") + key.mapped();
      }
      const auto at = std::min(section.size(), static_cast<std::size_t>(lines.tellg()));
      if (fault.empty() && section.compare(at, expected.size() + 1, expected + '\n') != 0) {
        fault = place + "below \"" + line + "\" expected, between blank lines:" + expected;
      }
    }
    if (!keys.empty()) throw std::runtime_error{place + "no heading for " + keys.begin()->first};
  }
  if (!fault.empty()) throw std::runtime_error{fault};
}

}  // namespace lictor::package
