// Writes what shells and man show of lictor, from the definitions that the program parses by.
//
//   lictor_reference FOLDER PAGE   writes lictor.bash, _lictor, lictor.fish and lictor.1 to FOLDER;
//                                  PAGE: the man page without options and commands

#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "package/command_tree.h"

namespace {

std::string read(const std::string& path) {
  std::ostringstream text;
  if (!(text << std::ifstream{path}.rdbuf())) throw std::runtime_error{"cannot read " + path};
  return text.str();
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file{path};
  if (!(file << text << std::flush)) throw std::runtime_error{"cannot write " + path};
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace lictor::package;
  if (argc != 3) throw std::runtime_error{"expected FOLDER PAGE"};
  const std::string folder = std::string{argv[1]} + '/';
  const auto commands = all_commands();
  write(folder + "lictor.bash", bash_completion(commands));
  write(folder + "_lictor", zsh_completion(commands));
  write(folder + "lictor.fish", fish_completion(commands));
  write(folder + "lictor.1", man_page(read(argv[2]), commands));
} catch (const std::exception& error) {
  std::fprintf(stderr, "lictor_reference: %s\n", error.what());
  return 1;
}
