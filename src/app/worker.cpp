#include "lictor/worker.h"

#include "app/command.h"
#include "base/assert.h"

namespace lictor {

void Worker::add(std::string name, std::shared_ptr<Executor> executor) {
  LICTOR_ASSERT(executor != nullptr);
  executors_.insert_or_assign(std::move(name), std::move(executor));
}

int Worker::main(int argc, char** argv) { return app::run_command(argc, argv, executors_); }

}  // namespace lictor
