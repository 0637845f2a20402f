// A daemon that counts words: the whole of lictor, with one executor of its own.
//
//   word-counter run --config lictor.json
//   word-counter submit CountWords --para file=/etc/services

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>

#include <lictor/worker.h>

namespace {

class CountWords : public lictor::Executor {
 public:
  lictor::JobResult run(const lictor::Context& context) override {
    const auto& parameters = context.task().parameters;
    if (!parameters.is_object() || !parameters.contains("file") ||
        !parameters["file"].is_string()) {
      // Trying again would not help: the task becomes a dead letter at once.
      return lictor::JobResult::permanent("taskPara.file: expected the path of a file");
    }
    const std::filesystem::path path{parameters["file"].get<std::string>()};
    std::ifstream file{path};
    if (!file) {
      // It may be there later: tried again after the backoff, up to max_attempts.
      return lictor::JobResult::retry("cannot open " + path.string());
    }
    std::error_code unknown;  // of what is no plain file
    const auto size = static_cast<double>(std::filesystem::file_size(path, unknown));
    std::size_t words = 0;
    double bytes = 0;
    for (std::string word; file >> word;) {
      // Withdrawn, timed out, or the lease is lost: what was done so far does not matter here.
      if (context.stop_requested()) return lictor::JobResult::retry("stopped");
      bytes += static_cast<double>(word.size() + 1);
      // For "lictor why".
      if (++words % 1000 == 0)
        context.progress(unknown ? 0 : bytes / size, std::to_string(words) + " words so far");
    }
    std::cout << context.task().id << ": " << words << " words in " << path << " (attempt "
              << context.attempt() << ", token " << context.fencing_token() << ")" << std::endl;
    return lictor::JobResult::done();
  }
};

}  // namespace

int main(int argc, char** argv) {
  lictor::Worker worker;
  worker.add("CountWords", std::make_shared<CountWords>());
  worker.add("Greet", [](const lictor::Context& context) {
    std::cout << "Hello, " << context.task().parameters.value("name", "world") << std::endl;
    return lictor::JobResult::done();
  });
  return worker.main(argc, argv);
}
