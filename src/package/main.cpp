// Writes what shells and man show of lictor, from the definitions that the program parses by.
//
//   lictor_reference FOLDER PAGE TOPIC...
//     writes lictor.bash, _lictor, lictor.fish and lictor.1 to FOLDER; PAGE: the man page without
//     options and commands; TOPIC: a topic of the manual in Markdown
//   lictor_reference --manual FOLDER PAGE...
//     writes to FOLDER, of each PAGE, a topic in Markdown, its man page, <topic>.txt and
//     <topic>.html; and index.html

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

void write_manual(const std::string& folder, const std::vector<std::string>& files) {
  std::vector<ManualPage> pages;
  std::vector<std::string> topics;
  for (const std::string& file : files) {
    const std::string topic = std::filesystem::path{file}.stem();
    const std::string markdown = read(file);
    if (topic == "configuration") check_forms(markdown, lictor::app::configuration_forms());
    pages.emplace_back(topic, markdown);
    topics.push_back(topic);
  }
  for (ManualPage& page : pages) {
    write(folder + page.topic() + ".txt", page.text());
    write(folder + man_name(page.topic()) + '.' + man_section(page.topic()), page.man());
    write(folder + page.topic() + ".html", page.html(topics));
  }
  write(folder + "index.html", manual_index(pages));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 3 && std::string{argv[1]} == "--manual") {
    write_manual(std::string{argv[2]} + '/', {argv + 3, argv + argc});
    return 0;
  }
  if (argc < 3) throw std::runtime_error{"expected FOLDER PAGE TOPIC..."};
  const std::string folder = std::string{argv[1]} + '/';
  auto commands = all_commands();
  write(folder + "lictor.1", man_page(read(argv[2]), commands));
  std::vector<Command> topics;
  for (const std::string& file : std::vector<std::string>{argv + 3, argv + argc}) {
    const ManualPage page{std::filesystem::path{file}.stem(), read(file)};
    topics.push_back({page.topic(), page.summary(), {}, {}, {}, {}});
  }
  add_help(commands, topics);
  write(folder + "lictor.bash", bash_completion(commands));
  write(folder + "_lictor", zsh_completion(commands));
  write(folder + "lictor.fish", fish_completion(commands));
} catch (const std::exception& error) {
  std::fprintf(stderr, "lictor_reference: %s\n", error.what());
  return 1;
}
