#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "app/command_line.h"

namespace lictor::app {

/// A command of `parent`, with its examples and what holds everywhere below its help.
CLI::App* add_command(CLI::App& parent, const char* name, const char* description,
                      const char* examples);

/// An option whose last value counts.
CLI::Option* add_text(CLI::App* app, const char* names, std::optional<std::string>& target,
                      const char* what, const char* form);

/// A duration as an argument; what is wrong with it otherwise, as CLI11 wants it.
[[nodiscard]] CLI::Validator duration_form();
/// A whole number from `least` on.
[[nodiscard]] CLI::Validator count_form(std::uint32_t least);

/// The operator's part of the command line: why, cancel, retry, dead, pause, resume.
class OperatingCommands {
 public:
  OperatingCommands() = default;
  OperatingCommands(const OperatingCommands&) = delete;  // options point into it
  OperatingCommands& operator=(const OperatingCommands&) = delete;

  void add(CLI::App& app);

  /// What was asked for, once parsed; nothing: another command.
  [[nodiscard]] std::optional<Command> command();

 private:
  void add_cancel(CLI::App& app);
  void add_retry(CLI::App& app);
  void add_dead(CLI::App& app);

  CLI::App* why_ = nullptr;
  CLI::App* cancel_ = nullptr;
  CLI::App* retry_ = nullptr;
  CLI::App* dead_list_ = nullptr;
  CLI::App* dead_show_ = nullptr;
  CLI::App* dead_purge_ = nullptr;
  CLI::App* pause_ = nullptr;
  CLI::App* resume_ = nullptr;

  WhyCommand why_command_;
  cli::CancelOptions cancel_options_;
  cli::RetryOptions retry_options_;
  cli::DeadListOptions list_options_;
  cli::DeadShowOptions show_options_;
  cli::DeadPurgeOptions purge_options_;
  std::optional<std::string> older_than_;
  cli::PauseOptions pause_options_;
};

}  // namespace lictor::app
