#include "lictor/worker.h"

#include <utility>

#include "app/command.h"
#include "base/assert.h"

namespace lictor {
namespace {

class FunctionExecutor : public Executor {
 public:
  explicit FunctionExecutor(std::function<JobResult(const Context&)> function)
      : function_(std::move(function)) {}
  JobResult run(const Context& context) override { return function_(context); }

 private:
  std::function<JobResult(const Context&)> function_;
};

}  // namespace

void Worker::add(std::string name, std::shared_ptr<Executor> executor) {
  LICTOR_ASSERT(executor != nullptr);
  executors_.insert_or_assign(std::move(name), std::move(executor));
}

void Worker::add(std::string name, std::function<JobResult(const Context&)> function) {
  LICTOR_ASSERT(function != nullptr);
  add(std::move(name), std::make_shared<FunctionExecutor>(std::move(function)));
}

int Worker::main(int argc, char** argv) { return app::run_command(argc, argv, executors_); }

}  // namespace lictor
