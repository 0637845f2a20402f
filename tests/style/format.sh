#!/usr/bin/env bash
# Every C++ file is as clang-format leaves it. `format.sh --fix` makes it so.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
how=(--dry-run -Werror)
. tests/style/clang_14.sh
needs_clang_14 clang-format
[ "${1-}" != --fix ] || how=(-i)
find src include tests examples \( -name '*.h' -o -name '*.cpp' \) -print0 |
  xargs -0 clang-format "${how[@]}"
