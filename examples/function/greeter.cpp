// A daemon whose executors are two functions; it needs no configuration at all.

#include <iostream>

#include <lictor/worker.h>

int main(int argc, char** argv) {
  lictor::Worker worker;

  // What returns nothing is done, unless it throws: then it is tried again.
  worker.add("Greet", [](const lictor::Context& context) {
    std::cout << "Hello, " << context.task().parameters.value("name", "world") << std::endl;
  });

  // What answers can give a result, ask for another try, or fail for good.
  worker.add("Divide", [](const lictor::Context& context) {
    const auto& parameters = context.task().parameters;
    const double by = std::stod(parameters.value("by", "0"));
    if (by == 0) return lictor::JobResult::permanent("taskPara.by: expected a number but 0");
    const double quotient = std::stod(parameters.value("dividend", "0")) / by;
    std::cout << context.task().id << ": " << quotient << std::endl;
    return lictor::JobResult::done({{"quotient", quotient}});
  });

  return worker.main(argc, argv);
}
