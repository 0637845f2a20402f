#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace lictor {

/// The kind of an error; decides a command's exit code and whether to try again.
enum class ErrorCode {
  kInvalid,           ///< bad usage, configuration or record: trying again cannot help
  kNotFound,          ///< the requested thing does not exist
  kConflict,          ///< it changed meanwhile, or exists already
  kPermissionDenied,  ///< Consul's ACLs or the operating system refused
  kUnavailable,       ///< Consul, or a host, could not be reached or has no leader
  kTimeout,           ///< no answer in time; a write may have landed
  kTooLarge,          ///< over a limit of Consul or of the configuration
  kFailed,            ///< anything else
};

/// One line for a person: what was being done, on what, what was expected, what came instead, and
/// what to do about it.
struct Error {
  ErrorCode code = ErrorCode::kFailed;
  std::string message;
};

/// A value or an Error. Functions that return it are [[nodiscard]].
template <class T>
using Result = tl::expected<T, Error>;

/// `return fail(ErrorCode::kInvalid, "...");` from a function that returns a Result.
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace lictor
