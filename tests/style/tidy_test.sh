#!/usr/bin/env bash
# tidy.sh finds a bug that is planted in a file that changed, and nothing in the tree as it is.
set -euo pipefail
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
. tests/style/clang_14.sh
needs_clang_14 clang-tidy

copy=$(mktemp -d)
trap 'rm -rf -- "$copy"' EXIT
cp -r CMakeLists.txt LICENSE README.md .clang-tidy consul examples include src systemd "$copy"
mkdir -p "$copy/tests/style"
cp tests/style/tidy.sh "$copy/tests/style"
in_copy() { git -C "$copy" -c user.name=test -c user.email=test@example.org "$@"; }
in_copy init -q -b main
in_copy add src include
in_copy commit -qm "As it is"
in_copy checkout -qb work

cat >>"$copy/src/base/random.cpp" <<'PLANTED'
#include <string>
#include <utility>
std::string planted(std::string text) {
  std::string moved = std::move(text);
  return moved + text;
}
PLANTED
echo "// changed" >>"$copy/src/base/siphash.h"
in_copy commit -qam "Planted"
if LICTOR_TIDY_FILES=1 "$copy/tests/style/tidy.sh" >"$copy/said"; then
  echo "tidy.sh does not tell of a use after a move" >&2
  exit 1
fi
grep -q 'random.cpp:.*bugprone-use-after-move' "$copy/said" || { cat "$copy/said" >&2; exit 1; }
grep -q '1 more files changed' "$copy/said" || { cat "$copy/said" >&2; exit 1; }

tests/style/tidy.sh
