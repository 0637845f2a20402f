#pragma once

// Makes commands. A command's name, help, options and body are in one file, src/cli/NAME.cpp or
// src/app/NAME.cpp, whose add_NAME() adds it to the command line; command_table.h has a row for it.
//
//   struct RetryOptions {
//     std::vector<std::string> ids;
//     bool drop_expiry = false;
//   };
//   Result<int> retry(const Client& client, const RetryOptions& options) { ... }
//
//   void add_retry(Commands& to) {
//     auto [command, options] = to.add("retry", "Make dead letters waiting tasks", kAbout, retry);
//     command.arguments("ID", options.ids, "The tasks' ids").required();
//     command.flag("--drop-expiry", options.drop_expiry, "Remove expireAt");
//   }
//
// One argument needs no struct: the body of "show" takes a std::string.
//
// CLI11, which is slow to compile, stays behind command_line.cpp.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "client/client.h"
#include "client/queue.h"
#include "client/store.h"
#include "lictor/result.h"
#include "lictor/time.h"
#include "net/transport.h"
#include "wire/layout.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lictor::cli {

using client::Store;

// Exit codes, as commands.md lists them.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;  ///< the requested work failed
inline constexpr int kUsage = 2;   ///< bad usage or configuration
inline constexpr int kNotFound = 3;
inline constexpr int kUnreachable = 4;  ///< Consul
inline constexpr int kDenied = 5;
inline constexpr int kCancelled = 6;  ///< the task that was waited for

[[nodiscard]] int exit_code(ErrorCode code);

/// A schedule in the configuration file on this host.
struct LocalSchedule {
  std::string file;            ///< empty: no file has it
  std::optional<bool> paused;  ///< std::nullopt: its operator decides
};

/// The queue that a command works on.
struct Client {
  Console& console;
  lictor::Client& api;
  Store& store;  ///< for what the API does not offer
  std::string queue;
  wire::Layout layout;
  bool json = false;

  // Settings from the configuration of this host.
  std::string admin_token{};                   ///< of the members' admin APIs; empty: none is sent
  std::vector<std::string> admin_addresses{};  ///< URLs of the admin API of this host's daemon
  std::string node{};                          ///< the member on this host
  std::string state_dir{};                     ///< of that member
  net::Options consul{};
  std::map<std::string, LocalSchedule> schedules{};  ///< of this queue

  [[nodiscard]] client::Queue stored() const { return {store, queue, layout}; }
};

/// Runs a command once its arguments are read. The result is the exit code, or an error, which the
/// program prints and maps to one. Blocks.
struct Command {
  enum class Queue {
    kMustExist,
    kMayBeNew,  ///< producers may come before the first daemon
    kIsOwn,     ///< the command makes one for itself
  };

  std::function<Result<int>(const Client&)> on_queue{};  ///< empty: `alone` runs it
  std::function<Result<int>()> alone{};
  Queue queue = Queue::kMustExist;
  std::function<void()> before_threads{};  ///< called before Consul is asked; may be empty
};

/// An option of a command, or an argument without a name.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  Option& needs(const Option& other);
  Option& excludes(const Option& other);
  Option& excludes(const std::vector<Option>& others);

 private:
  CLI::Option* option_;
};

/// The options of one command. They are read into targets that outlive the command line. `names`:
/// "-f,--follow". `what`: a line of the help. `form`: what the value looks like, "FILE".
class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(app) {}

  /// Sets `target` to `value`.
  Option flag(const char* names, bool& target, const char* what, bool value = true);
  /// The last value counts.
  Option text(const char* names, std::string& target, const char* what, const char* form);
  Option text(const char* names, std::optional<std::string>& target, const char* what,
              const char* form);
  /// May be given several times, each with one value.
  Option texts(const char* names, std::vector<std::string>& target, const char* what,
               const char* form);
  /// One of `words`.
  Option choice(const char* names, std::string& target, const char* what, const char* form,
                std::vector<std::string> words);
  /// A whole number, from `least` on. `target`: a number, optional or not.
  template <class Target>
  Option count(const char* names, Target& target, const char* what, std::uint32_t least) {
    return number(
        names, [&target](std::uint32_t number) { target = number; }, what, least);
  }
  /// "90s", "10m"; `target`: a Duration, optional or not.
  template <class Target>
  Option duration(const char* names, Target& target, const char* what) {
    return length(
        names, [&target](Duration length) { target = length; }, what);
  }
  /// A time, or a duration until now.
  Option since(const char* names, std::optional<WallTime>& target, const char* what);

  /// A positional argument.
  Option argument(const char* name, std::string& target, const char* what);
  Option arguments(const char* name, std::vector<std::string>& targets, const char* what);

  /// The number of options, and the options from the `first` on.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::vector<Option> from(std::size_t first) const;

  /// Called when all options are read; an error is one of usage.
  void then(std::function<Result<void>()> read);

 private:
  // `take` reads a value, and returns the reason if it cannot; else an empty text.
  Option value(const char* names, std::function<std::string(const std::string&)> take,
               const char* what, const char* form);
  Option number(const char* names, std::function<void(std::uint32_t)> take, const char* what,
                std::uint32_t least);
  Option length(const char* names, std::function<void(Duration)> take, const char* what);

  CLI::App& app_;
};

/// Adds commands: to the program, or to one of its commands ("dead list").
class Commands {
 public:
  using Map = std::map<const CLI::App*, Command>;

  Commands(CLI::App& parent, Map& made) : parent_(parent), made_(made) {}

  /// Adds a command; returns its arguments and the struct that they are read into. `what`: its line
  /// in the list of commands. `about`: its help, with examples.
  template <class Options>
  std::pair<Arguments, Options&> add(const char* name, const char* what, const char* about,
                                     Result<int> (*body)(const Client&, const Options&),
                                     Command command = {}) {
    const auto options = std::make_shared<Options>();
    command.on_queue = [options, body](const Client& client) { return body(client, *options); };
    return {add(name, what, about, std::move(command)), *options};
  }
  Arguments add(const char* name, const char* what, const char* about,
                Result<int> (*body)(const Client&), Command command = {});
  /// Adds a command without a queue: `body` takes the Options alone.
  template <class Options, class Body>
  std::pair<Arguments, Options&> add_alone(const char* name, const char* what, const char* about,
                                           Body body) {
    const auto options = std::make_shared<Options>();
    return {add(name, what, about, Command{.alone = [options, body] { return body(*options); }}),
            *options};
  }
  Arguments add(const char* name, const char* what, const char* about, Command command);
  /// Adds a command that has commands of its own.
  Commands group(const char* name, const char* what, const char* about);

 private:
  CLI::App& add_app(const char* name, const char* what, const char* about);

  CLI::App& parent_;
  Map& made_;
};

}  // namespace lictor::cli
