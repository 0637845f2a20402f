#pragma once

#include <memory>
#include <string>

#include "lictor/executor.h"
#include "lictor/result.h"

namespace lictor::exec {

/// What can be said of a plug-in (lictor/plugin.h) without loading it: that it is there, is a
/// shared object, and that nobody else can change or replace it while we are root
/// (base/traced_file.h). Errors: kInvalid.
[[nodiscard]] Result<void> check_plugin_file(const std::string& file);

/// The executor called `executor` of the plug-in at `file`, an absolute path; with an empty name,
/// the one called like the task's `type`, else the only one. A plug-in is loaded with the first of
/// its executors, once for the process, and never unloaded. Runs what the plug-in does at its
/// start, which may start threads, so the warden must be forked before.
/// Errors: kInvalid; the message names file, reason and way out. Thread-safe.
[[nodiscard]] Result<std::shared_ptr<Executor>> plugin_executor(const std::string& file,
                                                                const std::string& executor,
                                                                const std::string& type);

}  // namespace lictor::exec
