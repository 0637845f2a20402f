#include "cli/exit_code.h"

namespace lictor::cli {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return kUsage;
    case ErrorCode::kNotFound:
      return kNotFound;
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
      return kUnreachable;
    case ErrorCode::kPermissionDenied:
      return kDenied;
    case ErrorCode::kConflict:
    case ErrorCode::kTooLarge:
    case ErrorCode::kFailed:
      return kFailed;
  }
  return kFailed;
}

}  // namespace lictor::cli
