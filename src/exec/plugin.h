#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lictor/executor.h"
#include "lictor/result.h"

namespace lictor::exec {

/// Checks a plug-in (lictor/plugin.h) without loading it: it exists, is a shared object and, if we
/// are root, nobody else can change or replace it (base/traced_file.h). Errors: kFailed, it cannot
/// be opened; kInvalid.
[[nodiscard]] Result<void> check_plugin_file(const std::string& file);

/// The executor called `executor` of the plug-in at `file`, an absolute path. If the name is empty:
/// the executor called like the task's `type`, or the only one. The first call for a plug-in loads
/// it; it is never unloaded. Its start-up code may start threads, so fork the warden before.
/// Errors: kInvalid; the message names file, reason and remedy. Thread-safe.
[[nodiscard]] Result<std::shared_ptr<Executor>> plugin_executor(const std::string& file,
                                                                const std::string& executor,
                                                                const std::string& type);

/// The loaded plug-ins whose files have changed since: a new version needs a restart. Thread-safe.
[[nodiscard]] std::vector<std::string> replaced_plugins();

}  // namespace lictor::exec
