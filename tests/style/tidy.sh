#!/usr/bin/env bash
# clang-tidy (.clang-tidy) finds nothing in the sources that changed last.
#
#   tidy.sh [FILE...]   FILE: a source under src; without any, those that changed since the branch
#                       left main, or in the last 10 commits: the newest 8 (LICTOR_TIDY_FILES=n),
#                       and the number of those left out is shown
#   tidy.sh --all       all of src, with the static analyzer: an hour of processor time
#
# Each source is compiled alone, so that an include which it lacks is seen: the builds of CI compile
# in batches. Exit code 77: git does not know.
set -euo pipefail
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

git() { command git -c safe.directory='*' "$@"; }
# Paths that changed, the newest first. A shallow clone knows less, and its first commit names all.
changed() {
  git diff --name-only HEAD -- src include
  local base="" name
  for name in origin/main main; do
    base=$(git merge-base HEAD "$name" 2>/dev/null) && [ "$base" != "$(git rev-parse HEAD)" ] && break
    base=""
  done
  if [ -n "$base" ]; then
    git log --format= --name-only "$base..HEAD" -- src include
  else
    git log --format= --name-only -n 10 -- src include
  fi
}
# A source that compiles FILE: of a header that of the same name, or one that includes it.
source_of() {
  case $1 in
    *.cpp) echo "$1" ;;
    *.h)
      if [ -e "${1%.h}.cpp" ]; then
        echo "${1%.h}.cpp"
      else
        local name=${1#*/} user  # without src/ or include/
        user=$({ grep -rlF "\"$name\"" src || true; } | sort | awk '/cpp$/ {print; found = 1; exit} {h = h ? h : $0}
          END {if (!found && h) print h}')
        [ -z "$user" ] || source_of "$user"
      fi
      ;;
  esac
}

checks=()
if [ "${1-}" = --all ]; then
  checks=(--checks=clang-analyzer-*)
  mapfile -t files < <(find src -name '*.cpp' | sort)
elif [ "$#" -gt 0 ]; then
  files=("$@")
else
  git rev-parse HEAD >/dev/null || { echo "skipped: git does not know what changed" >&2; exit 77; }
  mapfile -t files < <(changed | while read -r path; do
    [ ! -e "$path" ] || source_of "$path"
  done | awk '!seen[$0]++')
  most=${LICTOR_TIDY_FILES:-8}
  if [ "${#files[@]}" -gt "$most" ]; then
    echo "tidy.sh: $((${#files[@]} - most)) more files changed and are not checked (tidy.sh --all)"
    files=("${files[@]:0:$most}")
  fi
fi
[ "${#files[@]}" -gt 0 ] || exit 0
commands=$(mktemp -d)
trap 'rm -rf -- "$commands"' EXIT
cmake -S . -B "$commands" -DCMAKE_CXX_COMPILER=clang++ -DLICTOR_UNITY=OFF -DLICTOR_TESTS=OFF >"$commands/log" 2>&1 ||
  { cat "$commands/log" >&2; exit 1; }
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$commands" "${checks[@]}" 2>&1 |
  sed '/warnings* generated\.$/d'  # those of system headers, which count for nothing
