// A producer in C++: writes a task, waits for its end, and says how it ended.
//
//   producer NAME

#include <iostream>

#include <lictor/client.h>

int main(int argc, char** argv) {
  const auto failed = [](const lictor::Error& error) {
    std::cerr << error.message << std::endl;
    return 1;
  };
  auto client = lictor::Client::open();  // CONSUL_HTTP_ADDR and the others
  if (!client) return failed(client.error());

  const auto task =
      client->submit({.type = "Greet", .parameters = {{"name", argc > 1 ? argv[1] : "world"}}});
  if (!task) return failed(task.error());
  std::cout << "submitted " << task->id << std::endl;

  const auto ending = client->wait(task->id, {.index = task->index});
  if (!ending) return failed(ending.error());
  using How = lictor::Ending::How;
  if (ending->how != How::kDone && ending->how != How::kGone) {
    std::cerr << (ending->how == How::kDead ? "dead: " + ending->task.error : "cancelled")
              << std::endl;
    return 1;
  }
  std::cout << "done " << ending->task.result << std::endl;
}
