#pragma once

#include <functional>
#include <map>

#include <CLI/CLI.hpp>

#include "app/command_line.h"

namespace lictor::app {

/// What each command is called, takes and says of itself. Its options point into it.
class CommandOptions {
 public:
  /// Adds to `app` all commands, and the flags that go with all of them, which are read into
  /// `invocation`.
  CommandOptions(CLI::App& app, Invocation& invocation);
  CommandOptions(const CommandOptions&) = delete;
  CommandOptions& operator=(const CommandOptions&) = delete;

  /// What was asked for by `command`, which was parsed. Reads a file or standard input where an
  /// argument asks for it. Throws what CLI11 does.
  [[nodiscard]] Command command(const CLI::App& command) const { return commands_.at(&command)(); }

 private:
  CLI::App* add_command(CLI::App& parent, const char* name, const char* description,
                        const char* about);
  template <class Options>
  std::pair<CLI::App*, Options*> add(const char* name, const char* description, const char* about,
                                     CLI::App* parent = nullptr);
  void add_globals();
  void add_run();
  void add_submit();
  void add_lookups();
  void add_cancel_and_retry();
  void add_dead();
  void add_pause();
  void add_logs();
  void add_leader();
  void add_tools();

  CLI::App& app_;
  Invocation& invocation_;
  std::map<const CLI::App*, std::function<Command()>> commands_;
};

}  // namespace lictor::app
