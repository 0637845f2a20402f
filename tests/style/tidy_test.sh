#!/usr/bin/env bash
# tidy.sh finds a bug that is planted in a file that changed, and nothing in the tree as it is.
#
#   tidy_test.sh BUILD   a configured build
set -euo pipefail
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
build=$1

copy=$(mktemp -d)
trap 'rm -rf -- "$copy"' EXIT
cp -r src include .clang-tidy "$copy"
mkdir -p "$copy/tests/style" "$copy/build/ci"
cp tests/style/tidy.sh "$copy/tests/style"
sed "s|$PWD\([/\"]\)|$copy\1|g; s|\"directory\": \".*\"|\"directory\": \"$copy/build/ci\"|" \
  "$build/compile_commands.json" >"$copy/build/ci/compile_commands.json"
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
if LICTOR_TIDY_FILES=1 "$copy/tests/style/tidy.sh" -p build/ci >"$copy/said"; then
  echo "tidy.sh does not tell of a use after a move" >&2
  exit 1
fi
grep -q 'random.cpp:.*bugprone-use-after-move' "$copy/said" || { cat "$copy/said" >&2; exit 1; }
grep -q '1 more files changed' "$copy/said" || { cat "$copy/said" >&2; exit 1; }

tests/style/tidy.sh -p "$build"
