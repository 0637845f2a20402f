// An executor in a shared object: makes a picture (PPM, P6) smaller.
//
//   g++ -std=c++20 -O2 -fPIC -shared -o libresize.so resize.cpp
//   lictor submit Resize --para from=/srv/a.ppm --para to=/srv/a-small.ppm --para width=64

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include <lictor/plugin.h>

namespace {

class Resize : public lictor::Executor {
 public:
  lictor::JobResult run(const lictor::Context& context) override {
    const auto& parameters = context.task().parameters;
    std::size_t new_width = 0;
    std::string from;
    std::string to;
    try {
      from = parameters.at("from").get<std::string>();
      to = parameters.at("to").get<std::string>();
      new_width = std::stoul(parameters.at("width").get<std::string>());
    } catch (const std::exception& error) {
      return lictor::JobResult::permanent(std::string{"taskPara: "} + error.what());
    }

    std::ifstream in{from, std::ios::binary};
    if (!in) return lictor::JobResult::retry("cannot open " + from);
    std::string magic;
    std::size_t width = 0, height = 0, maximum = 0;
    in >> magic >> width >> height >> maximum;
    in.get();
    if (!in || magic != "P6" || maximum != 255 || width == 0 || height == 0 || width > 65'535 ||
        height > 65'535 || new_width == 0 || new_width > width) {
      return lictor::JobResult::permanent(from + ": expected a P6 picture wider than that");
    }
    std::string pixels(width * height * 3, '\0');
    if (!in.read(pixels.data(), static_cast<std::streamsize>(pixels.size()))) {
      return lictor::JobResult::permanent(from + ": broken off");
    }

    // Written beside and renamed, so that an attempt that ends half-way leaves the old one.
    const std::size_t new_height = std::max<std::size_t>(1, height * new_width / width);
    const std::string draft = to + "." + std::to_string(context.fencing_token());
    std::ofstream out{draft, std::ios::binary};
    out << "P6\n" << new_width << ' ' << new_height << "\n255\n";
    for (std::size_t y = 0; y < new_height; ++y) {
      if (context.stop_requested()) return give_up(draft, "stopped");
      context.progress(static_cast<double>(y) / static_cast<double>(new_height), "rows");
      for (std::size_t x = 0; x < new_width; ++x) {
        const std::size_t source = (y * height / new_height) * width + x * width / new_width;
        out.write(&pixels[source * 3], 3);
      }
    }
    out.close();
    if (!out || std::rename(draft.c_str(), to.c_str()) != 0) {
      return give_up(draft, "cannot write " + to);
    }
    // In Consul KV with the finish of the task, or not at all.
    context.put("pictures/" + context.task().id, to);
    return lictor::JobResult::done({{"width", new_width}, {"height", new_height}});
  }

 private:
  static lictor::JobResult give_up(const std::string& draft, const std::string& why) {
    std::remove(draft.c_str());
    return lictor::JobResult::retry(why);
  }
};

}  // namespace

LICTOR_PLUGIN(registry) { registry.add("Resize", std::make_unique<Resize>()); }
