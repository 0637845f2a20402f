#include "admin/routes.h"

namespace lictor::admin {

void add_task_routes(Router& router, Backend& backend) {
  router.add("GET", "/v1/tasks/*/why", [&backend](const Request& request) {
    const std::string queue = request.parameter("queue").value_or("default");
    auto why = backend.why(queue, request.wildcard);
    if (!why) {
      return error_response(
          404, "this daemon does not lead queue " + queue + "; ask its leader, see /v1/status");
    }
    Response response;
    response.body = *why + "\n";
    return response;
  });
}

}  // namespace lictor::admin
