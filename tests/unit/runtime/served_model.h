#pragma once

#include <memory>

#include "../cli/model_consul.h"
#include "../net/test_server.h"

namespace lictor::runtime::test {

/// The model over HTTP, for clients that make their connections themselves.
inline std::unique_ptr<net::test::TestServer> serve(cli::test::ModelConsul& consul) {
  return std::make_unique<net::test::TestServer>([&](const auto& got, auto& connection) {
    const http::Response reply = consul.perform({got.method, got.target, got.body});
    const std::string index = std::to_string(reply.consul_index);
    connection.reply(reply.status, reply.body, "X-Consul-Index: " + index + "\r\n");
  });
}

}  // namespace lictor::runtime::test
