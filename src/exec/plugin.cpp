// A plug-in is code in the daemon's own process, built elsewhere. The descriptor that its
// lictor_plugin() returns is compared before any other function is called: types of other sizes
// would corrupt memory. A file is loaded once and never unloaded, since its executors are kept for
// the daemon's life and shared by all queues. So a new version of the file needs a restart.

#include "exec/plugin.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <string_view>

#include <fmt/format.h>

#include "base/errno_text.h"
#include "base/text.h"
#include "base/traced_file.h"
#include "base/try.h"
#include "lictor/plugin.h"

namespace lictor::exec {
namespace {

using Executors = std::map<std::string, std::shared_ptr<Executor>, std::less<>>;

// Tells one version of a file from the next.
using FileVersion = std::array<std::int64_t, 4>;

struct Plugin {
  Executors executors;
  FileVersion version;
};

// All loaded plug-ins, by file; guarded by the mutex.
std::mutex mutex;
std::map<std::string, Plugin> loaded;

FileVersion version_of(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return {};
  return {static_cast<std::int64_t>(status.st_ino), status.st_size, status.st_mtim.tv_sec,
          status.st_mtim.tv_nsec};
}

tl::unexpected<Error> refuse(const std::string& file, const std::string& message) {
  return fail(ErrorCode::kInvalid, "plug-in \"" + excerpt(file, 200) + "\": " + message);
}

Result<void> check_descriptor(const std::string& file, const PluginDescriptor* found) {
  const PluginDescriptor ours;
  if (found == nullptr || found->magic != ours.magic) {
    return refuse(file,
                  "its lictor_plugin() does not return a descriptor; make it with "
                  "LICTOR_PLUGIN of lictor/plugin.h");
  }
  if (found->abi != ours.abi || std::strcmp(found->build, ours.build) != 0 ||
      found->size != sizeof ours || found->object_sizes != ours.object_sizes ||
      found->fill == nullptr) {
    return refuse(
        file, fmt::format("was built with lictor {}, plug-in ABI {}, {}; this is lictor "
                          "{}, plug-in ABI {}, {}; rebuild the plug-in with its headers, "
                          "libraries and options",
                          excerpt(found->lictor_version), found->abi, excerpt(found->build, 200),
                          LICTOR_VERSION, ours.abi, ours.build));
  }
  return {};
}

Result<Executors> load(const std::string& file) {
  if (auto checked = check_plugin_file(file); !checked) {
    return tl::unexpected(std::move(checked.error()));
  }
  void* const object = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (object == nullptr) {
    const char* const problem = dlerror();
    return refuse(file,
                  std::string{"cannot be loaded: "} + (problem ? problem : "no reason given"));
  }
  const auto describe =
      reinterpret_cast<const PluginDescriptor* (*)()>(dlsym(object, "lictor_plugin"));
  if (describe == nullptr) {
    return refuse(file,
                  "has no lictor_plugin(), so it is no plug-in of lictor's; make it one with "
                  "LICTOR_PLUGIN of lictor/plugin.h");
  }
  PluginRegistry registry;
  try {
    const PluginDescriptor* const descriptor = describe();
    if (auto checked = check_descriptor(file, descriptor); !checked) {
      return tl::unexpected(std::move(checked.error()));
    }
    descriptor->fill(registry);
  } catch (const std::exception& thrown) {
    return refuse(file, std::string{"its LICTOR_PLUGIN threw: "} + excerpt(thrown.what(), 200));
  } catch (...) {
    return refuse(file, "its LICTOR_PLUGIN threw something that is no std::exception");
  }
  if (registry.executors().empty()) return refuse(file, "adds no executor in its LICTOR_PLUGIN");
  return registry.executors();
}

}  // namespace

Result<void> check_plugin_file(const std::string& file) {
  const auto opened = open_traced(file, O_RDONLY | O_NONBLOCK);
  if (!opened) {
    return fail(
        ErrorCode::kFailed,
        refuse(file, errno_text() + "; install the plug-in or correct the path").value().message);
  }
  Elf64_Ehdr head{};
  if (!S_ISREG(opened->status.st_mode) ||
      pread(opened->fd.get(), &head, sizeof head, 0) != ssize_t{sizeof head} ||
      std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) {
    return refuse(file, "expected a shared object, got something else; build it with g++ -shared");
  }
  // The file ends with its section headers. Memory beyond the end of a truncated file is a SIGBUS.
  const auto bytes = static_cast<std::uint64_t>(opened->status.st_size);
  if (head.e_shoff > bytes || head.e_shnum * head.e_shentsize > bytes - head.e_shoff) {
    return refuse(file, "the file is cut off; copy it again");
  }
  // dlopen() gets the path, not the descriptor: $ORIGIN and debuggers need to find the file.
  const std::string fault = distrust(*opened, "make root load code");
  return fault.empty() ? Result<void>{} : refuse(file, fault);
}

Result<std::shared_ptr<Executor>> plugin_executor(const std::string& file,
                                                  const std::string& executor,
                                                  const std::string& type) {
  const std::lock_guard lock{mutex};
  auto plugin = loaded.find(file);
  if (plugin == loaded.end()) {
    const FileVersion version = version_of(file);
    LICTOR_TRY(auto executors, load(file));
    plugin = loaded.emplace(file, Plugin{std::move(executors), version}).first;
  }
  const Executors& executors = plugin->second.executors;
  if (const auto it = executors.find(executor.empty() ? type : executor); it != executors.end()) {
    return it->second;
  }
  if (executor.empty() && executors.size() == 1) return executors.begin()->second;

  std::string all;
  for (const auto& [name, ignored] : executors) {
    all += (all.empty() ? "\"" : ", \"") + excerpt(name) + '"';
  }
  return refuse(file, executor.empty()
                          ? "has several executors; name one with \"executor\": " + all
                          : "has no executor \"" + excerpt(executor) + "\"; it has " + all);
}

std::vector<std::string> replaced_plugins() {
  std::vector<std::string> files;
  const std::lock_guard lock{mutex};
  for (const auto& [file, plugin] : loaded) {
    if (version_of(file) != plugin.version) files.push_back(file);
  }
  return files;
}

}  // namespace lictor::exec
