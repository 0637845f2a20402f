#pragma once

#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "fake_consul.h"

namespace lictor::cli::test {

/// A command's surroundings: what Consul answers, and what the command prints.
class Scene {
 public:
  explicit Scene(std::deque<http::Response> replies, bool json = false)
      : consul(std::move(replies)),
        out_(std::tmpfile()),
        err_(std::tmpfile()),
        console_(out_.get(), err_.get(), {}, {}),
        store_(consul),
        client{console_, store_, "q", wire::Layout::under("lictor/", "q"), json} {}

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
  Store store_;

 public:
  Client client;
};

inline constexpr const char* kNoLetters =
    R"({"Results":null,"Errors":[)"
    R"({"OpIndex":0,"What":"key doesn't exist"},{"OpIndex":1,"What":"key doesn't exist"},)"
    R"({"OpIndex":2,"What":"key doesn't exist"},{"OpIndex":3,"What":"key doesn't exist"},)"
    R"({"OpIndex":4,"What":"key doesn't exist"},{"OpIndex":5,"What":"key doesn't exist"},)"
    R"({"OpIndex":6,"What":"key doesn't exist"},{"OpIndex":7,"What":"key doesn't exist"},)"
    R"({"OpIndex":8,"What":"key doesn't exist"},{"OpIndex":9,"What":"key doesn't exist"},)"
    R"({"OpIndex":10,"What":"key doesn't exist"},{"OpIndex":11,"What":"key doesn't exist"},)"
    R"({"OpIndex":12,"What":"key doesn't exist"},{"OpIndex":13,"What":"key doesn't exist"},)"
    R"({"OpIndex":14,"What":"key doesn't exist"},{"OpIndex":15,"What":"key doesn't exist"}]})";

}  // namespace lictor::cli::test
