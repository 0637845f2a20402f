#pragma once

#include <cstdio>
#include <deque>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "../client/fake_consul.h"
#include "cli/command_line.h"
#include "cli/command_table.h"
#include "client/client.h"
#include "unit/json_members.h"
#include "unit/refusal.h"

namespace lictor::cli::test {

using namespace client::test;

/// Reads arguments as the program does, except the commands of src/app.
inline std::variant<Command, ParseOutcome> read(const std::vector<std::string>& words) {
  CommandLine line;
  Commands to = line.commands();
#define LICTOR_ELSEWHERE(name)
#define LICTOR_ADD(name) add_##name(to);
  LICTOR_COMMANDS(LICTOR_ELSEWHERE, LICTOR_ADD)
#undef LICTOR_ADD
#undef LICTOR_ELSEWHERE
  return line.parse(words);
}

/// A command's surroundings: its Consul, and its output.
class Stage {
 public:
  explicit Stage(net::Transport& consul, bool json = false, Terminal terminal = {})
      : out_(std::tmpfile()),
        err_(std::tmpfile()),
        console_(out_.get(), err_.get(), terminal, terminal),
        api_(impl_on(consul)),
        store_(consul),
        client{console_, api_, store_, "q", wire::Layout::under("lictor/", "q"), json} {}

  /// Runs a command: "list --state dead". Refused arguments are an error, too.
  Result<int> run(const std::string& words) {
    std::istringstream text{words};
    return run_words({std::istream_iterator<std::string>{text}, {}});
  }
  Result<int> run_words(const std::vector<std::string>& words) {
    const auto command = read(words);
    if (const auto* answer = std::get_if<ParseOutcome>(&command)) {
      return fail(ErrorCode::kInvalid, answer->text);
    }
    return std::get<Command>(command).on_queue(client);
  }

  [[nodiscard]] std::string out() const { return content(out_.get()); }
  [[nodiscard]] std::string err() const { return content(err_.get()); }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  static std::unique_ptr<lictor::Client::Impl> impl_on(net::Transport& consul) {
    auto impl =
        std::make_unique<lictor::Client::Impl>(consul, "q", wire::Layout::under("lictor/", "q"));
    impl->cancel_marks.stay = Duration::zero();
    return impl;
  }
  static std::string content(std::FILE* file) {
    std::fflush(file);
    std::rewind(file);
    std::string text(1 << 20U, '\0');
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

/// The output of a command, which must succeed.
struct Printed {
  std::string out, err;
};
inline Printed printed(net::Transport& consul, const std::string& words) {
  Stage stage{consul};
  REQUIRE(stage.run(words) == 0);
  return {stage.out(), stage.err()};
}
/// The document that the command prints with --json.
inline nlohmann::json document_of(net::Transport& consul, const std::string& words) {
  Stage stage{consul, true};
  REQUIRE(stage.run(words) == 0);
  return nlohmann::json::parse(stage.out());
}

/// The message of a command that must fail with this code.
inline std::string refusal(net::Transport& consul, const std::string& words, ErrorCode code) {
  Stage stage{consul};
  return refusal_of(stage.run(words), code);
}

struct ScriptedConsul {
  FakeConsul consul;
};

/// A Stage with Consul's answers in a script, one after the other.
class Scene : public ScriptedConsul, public Stage {
 public:
  explicit Scene(std::deque<http::Response> replies, bool json = false, Terminal terminal = {})
      : ScriptedConsul{FakeConsul{std::move(replies)}}, Stage{consul, json, terminal} {}
};

}  // namespace lictor::cli::test
