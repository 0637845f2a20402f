// Writes what shells and man show of lictor, from the definitions that the program parses by.
//
//   lictor_reference FOLDER PAGE TOPIC...
//     writes lictor.bash, _lictor, lictor.fish and lictor.1 to FOLDER; PAGE: the man page without
//     options and commands; TOPIC: a topic of the manual in Markdown
//   lictor_reference --manual FOLDER PAGE TOPIC...
//     writes to FOLDER the man page and <topic>.html of each TOPIC, and index.html; PAGE: the frame
//     of a page of the web site

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "manual/manual.h"
#include "package/command_tree.h"
#include "package/manual.h"

// The program's pages are made by this one, which has none itself.
std::span<const lictor::manual::Page> lictor::manual::pages() { return {}; }
std::string_view lictor::manual::index_html() { return {}; }

namespace {

using namespace lictor::package;

std::string read(const std::string& path) {
  std::ostringstream text;
  if (!(text << std::ifstream{path}.rdbuf())) throw std::runtime_error{"cannot read " + path};
  return text.str();
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file{path};
  if (!(file << text << std::flush)) throw std::runtime_error{"cannot write " + path};
}

void write_manual(const std::string& folder, const std::string& frame,
                  const std::vector<ManualPage>& pages) {
  for (const ManualPage& page : pages) {
    if (page.topic == "configuration") {
      check_forms(page.markdown, lictor::app::configuration_forms());
    }
    write(folder + man_file(page.topic), man_of(page));
    write(folder + page.topic + ".html", html_of(page, frame, pages));
  }
  write(folder + "index.html", html_index(frame, pages));
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> words{argv + 1, argv + argc};
  const bool manual = !words.empty() && words.front() == "--manual";
  if (manual) words.erase(words.begin());
  if (words.size() < 3) throw std::runtime_error{"expected [--manual] FOLDER FRAME TOPIC..."};
  const std::string folder = words[0] + '/';
  const std::string frame = read(words[1]);
  std::vector<ManualPage> pages;
  for (std::size_t i = 2; i < words.size(); ++i) {
    pages.push_back(manual_page(std::filesystem::path{words[i]}.stem(), read(words[i])));
  }
  if (manual) {
    write_manual(folder, frame, pages);
    return 0;
  }
  auto commands = all_commands();
  write(folder + "lictor.1", man_page(frame, commands));
  std::vector<Command> topics;
  for (const ManualPage& page : pages) topics.push_back({page.topic, page.summary, {}, {}, {}, {}});
  add_help(commands, topics);
  write(folder + "lictor.bash", bash_completion(commands));
  write(folder + "_lictor", zsh_completion(commands));
  write(folder + "lictor.fish", fish_completion(commands));
} catch (const std::exception& error) {
  std::fprintf(stderr, "lictor_reference: %s\n", error.what());
  return 1;
}
