#!/usr/bin/env bash
# Every C++ file is as clang-format leaves it. `format.sh --fix` makes it so.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
how=(--dry-run -Werror)
# Another version formats a few lines in another way.
if ! clang-format --version | grep -q 'version 14\.'; then
  echo "skipped: the source is as clang-format 14 (Debian 12) leaves it; here is $(clang-format --version)"
  exit 77
fi
[ "${1-}" != --fix ] || how=(-i)
find src include tests examples \( -name '*.h' -o -name '*.cpp' \) -print0 |
  xargs -0 clang-format "${how[@]}"
