// Writes man pages and web pages.
//
//   lictor_reference FOLDER PAGE
//     writes lictor.1 to FOLDER; PAGE: the man page without options and commands
//   lictor_reference FOLDER FRAME TOPIC...
//     writes to FOLDER the man page and <topic>.html of each TOPIC, a page of the manual in
//     Markdown, and index.html; FRAME: the frame of a page of the web site

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "manual/manual.h"
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
  if (argc < 3) throw std::runtime_error{"expected FOLDER FRAME TOPIC..."};
  const std::string folder = std::string{argv[1]} + '/';
  const std::string frame = read(argv[2]);
  if (argc == 3) {
    write(folder + "lictor.1", man_page(frame));
    return 0;
  }
  std::vector<ManualPage> pages;
  for (int i = 3; i < argc; ++i) {
    pages.push_back(manual_page(std::filesystem::path{argv[i]}.stem(), read(argv[i])));
  }
  write_manual(folder, frame, pages);
} catch (const std::exception& error) {
  std::fprintf(stderr, "lictor_reference: %s\n", error.what());
  return 1;
}
