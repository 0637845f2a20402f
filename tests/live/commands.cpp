#include "commands.h"

#include <doctest/doctest.h>

namespace lictor::live {

std::vector<std::string> command_line(const World& world, const std::vector<std::string>& arguments,
                                      const std::string& consul) {
  const std::string config = world.folder.file("client.json");
  write_text(config, "{}");
  std::vector<std::string> line{LICTOR_COMMAND, "--config", config, "--root",
                                world.root,     "--consul", consul};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return line;
}

Output lictor(const World& world, const std::vector<std::string>& arguments) {
  return lictor(world, arguments, world.address());
}

Output lictor(const World& world, const std::vector<std::string>& arguments,
              const std::string& consul) {
  return run(command_line(world, arguments, consul));
}

bool says(const Output& output, const std::string& text) {
  INFO(output.out);
  const bool found = output.out.find(text) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace lictor::live
