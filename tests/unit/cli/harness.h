#pragma once

#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "../client/fake_consul.h"
#include "cli/commands.h"
#include "client/client.h"

namespace lictor::cli::test {

using namespace client::test;

/// A command's surroundings: what Consul answers, and what the command prints.
class Scene {
 public:
  explicit Scene(std::deque<http::Response> replies, bool json = false)
      : consul(std::move(replies)),
        out_(std::tmpfile()),
        err_(std::tmpfile()),
        console_(out_.get(), err_.get(), {}, {}),
        api_(std::make_unique<lictor::Client::Impl>(consul, "q",
                                                    wire::Layout::under("lictor/", "q"))),
        store_(consul),
        client{console_, api_, store_, "q", wire::Layout::under("lictor/", "q"), json} {}

  [[nodiscard]] std::string out() const { return content(out_.get()); }
  [[nodiscard]] std::string err() const { return content(err_.get()); }

  FakeConsul consul;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  static std::string content(std::FILE* file) {
    std::fflush(file);
    std::rewind(file);
    std::string text(65'536, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file));
    return text;
  }

  std::unique_ptr<std::FILE, Close> out_;
  std::unique_ptr<std::FILE, Close> err_;
  Console console_;
  lictor::Client api_;
  Store store_;

 public:
  Client client;
};

}  // namespace lictor::cli::test
