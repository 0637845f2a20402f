#include <lictor/plugin.h>

namespace {

class Resize : public lictor::Executor {
 public:
  lictor::JobResult run(const lictor::Context& context) override {
    context.put("app/" + context.task().id, "resized");
    return lictor::JobResult::done({{"runs", ++runs_}});
  }

 private:
  int runs_ = 0;
};

}  // namespace

LICTOR_PLUGIN(registry) {
  registry.add("Resize", std::make_unique<Resize>());
  registry.add("Rotate", [](const lictor::Context&) {});
}
