#pragma once

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <lictor/executor.h>

namespace lictor {

/// Your own lictor: the whole command, `run` and all the others, with executors in C++.
///
///   int main(int argc, char** argv) {
///     lictor::Worker worker;
///     worker.add("Greet", [](const lictor::Context& context) {
///       std::cout << "Hello, " << context.task().parameters.at("name") << std::endl;
///       return lictor::JobResult::done();
///     });
///     return worker.main(argc, argv);
///   }
///
/// An executor serves the tasks whose taskType is its name, in every queue that does not configure
/// that type otherwise; with {"cpp": "<name>"} a configuration gives it another type, time-outs and
/// attempts. Not thread safe.
class Worker {
 public:
  /// Replaces an earlier executor of the same name. Throws std::invalid_argument if `executor` is
  /// null.
  void add(std::string name, std::shared_ptr<Executor> executor);

  /// A function of a const Context&, such as a lambda, that returns a JobResult, or nothing: done.
  template <class Function>
  requires std::is_invocable_v<Function&, const Context&>
  void add(std::string name, Function function) {
    add(std::move(name), make_executor(std::move(function)));
  }

  /// Parses the command line, runs the command and returns the process's exit code. Call it from
  /// main(), before there is any other thread: `run` forks its guard of processes first.
  [[nodiscard]] int main(int argc, char** argv);

 private:
  std::map<std::string, std::shared_ptr<Executor>, std::less<>> executors_;
};

}  // namespace lictor
