#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <lictor/executor.h>
#include <lictor/version.h>

namespace lictor {

/// The contents of a plug-in: executors by name.
class PluginRegistry {
 public:
  /// Throws std::invalid_argument if `executor` is null, or the name is taken.
  void add(std::string name, std::shared_ptr<Executor> executor) {
    if (executor == nullptr) throw std::invalid_argument{name + ": no executor"};
    const auto [it, added] = executors_.emplace(std::move(name), std::move(executor));
    if (!added) throw std::invalid_argument{it->first + ": added twice"};
  }

  /// A function of a const Context&, such as a lambda, that returns a JobResult, or nothing: done.
  template <class Function>
  requires std::is_invocable_v<Function&, const Context&>
  void add(std::string name, Function function) {
    add(std::move(name), make_executor(std::move(function)));
  }

  [[nodiscard]] const std::map<std::string, std::shared_ptr<Executor>, std::less<>>& executors()
      const {
    return executors_;
  }

 private:
  std::map<std::string, std::shared_ptr<Executor>, std::less<>> executors_;
};

/// Raised whenever a declaration in executor.h or here changes its layout or its meaning.
inline constexpr std::uint32_t kPluginAbi = 1;

#define LICTOR_TEXT_OF(x) #x
#define LICTOR_TEXT(x) LICTOR_TEXT_OF(x)
#if defined(_GLIBCXX_DEBUG)
#define LICTOR_BUILD_DEBUG ", _GLIBCXX_DEBUG"
#else
#define LICTOR_BUILD_DEBUG ""
#endif
#if defined(_GLIBCXX_RELEASE)
#define LICTOR_BUILD_LIBRARY \
  "libstdc++ " LICTOR_TEXT(_GLIBCXX_RELEASE) ", cxx11-abi " LICTOR_TEXT(_GLIBCXX_USE_CXX11_ABI)
#else
#define LICTOR_BUILD_LIBRARY "another C++ library"
#endif

/// C++ objects pass between daemon and plug-in, so both need the same libraries of C++ and JSON.
inline constexpr const char* kPluginBuild = LICTOR_BUILD_LIBRARY LICTOR_BUILD_DEBUG
    ", nlohmann_json " LICTOR_TEXT(NLOHMANN_JSON_VERSION_MAJOR) "." LICTOR_TEXT(
        NLOHMANN_JSON_VERSION_MINOR) "." LICTOR_TEXT(NLOHMANN_JSON_VERSION_PATCH);

/// A plug-in's description of itself, read before any of its functions is called.
struct PluginDescriptor {
  // These never change: every lictor can read them from every plug-in.
  std::array<char, 8> magic{'l', 'i', 'c', 't', 'o', 'r', '\0', '\0'};
  std::uint32_t abi = kPluginAbi;
  std::uint32_t size = 0;  ///< of the descriptor, in bytes
  const char* lictor_version = LICTOR_VERSION;
  const char* build = kPluginBuild;

  // `abi` decides the meaning of these.
  std::array<std::uint32_t, 4> object_sizes{sizeof(Task), sizeof(JobResult), sizeof(Context),
                                            sizeof(PluginRegistry)};
  void (*fill)(PluginRegistry& registry) = nullptr;
};

}  // namespace lictor

/// Makes a shared object a plug-in, and adds its executors. Once in a shared object, at file scope:
///
///   LICTOR_PLUGIN(registry) {
///     registry.add("Resize", std::make_unique<Resize>());
///   }
///
/// It needs only lictor's headers and nlohmann_json; no part of lictor is linked:
///
///   g++ -std=c++20 -fPIC -shared -o libresize.so resize.cpp
///
/// and named in the configuration: {"plugin": "/opt/jobs/libresize.so"}. The daemon loads it once,
/// at its start, and never unloads it; an exception refuses it.
#define LICTOR_PLUGIN(registry)                                                     \
  static void lictor_plugin_fill(lictor::PluginRegistry& registry);                 \
  extern "C" __attribute__((visibility("default"))) const lictor::PluginDescriptor* \
  lictor_plugin();                                                                  \
  extern "C" __attribute__((visibility("default"))) const lictor::PluginDescriptor* \
  lictor_plugin() {                                                                 \
    static const lictor::PluginDescriptor descriptor = [] {                         \
      lictor::PluginDescriptor made;                                                \
      made.size = sizeof made;                                                      \
      made.fill = &lictor_plugin_fill;                                              \
      return made;                                                                  \
    }();                                                                            \
    return &descriptor;                                                             \
  }                                                                                 \
  static void lictor_plugin_fill(lictor::PluginRegistry& registry)
