#!/usr/bin/env bash
# Builds the fuzzers with clang, in build/fuzz, and runs each of them for a while.
#
#   tests/fuzz/run.sh [SECONDS [FUZZER...]]
#   tests/fuzz/run.sh 600 record config   ten minutes each for two of them
#
# Begins with the inputs in tests/fuzz/corpus and with those that earlier runs found, which are kept
# in build/fuzz/found. An input that breaks something is left in build/fuzz/broken; to have it run
# alone: build/fuzz/tests/fuzz/fuzz_<name> <file>. JOBS=n sets how many run at once.
set -euo pipefail

case "${1-}" in
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
esac

cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

seconds=${1:-10}
shift || true
fuzzers=("$@")
[ "${#fuzzers[@]}" -gt 0 ] || fuzzers=(admin config job letters record replies text warden)
jobs=${JOBS:-$(nproc)}

fresh=()
if [ -f build/fuzz/CMakeCache.txt ] &&
  ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" build/fuzz/CMakeCache.txt; then
  fresh=(--fresh)  # moved or copied: its cache names the old place
fi
cmake --preset fuzz "${fresh[@]}" >/dev/null
cmake --build --preset fuzz --parallel "$jobs"

fuzz() {
  local name=$1 dictionary=json log=build/fuzz/broken/$1.log
  case "$name" in
    admin) dictionary=http ;;
    replies) dictionary=consul ;;
  esac
  mkdir -p "build/fuzz/found/$name" build/fuzz/broken
  if UBSAN_OPTIONS=print_stacktrace=1 "build/fuzz/tests/fuzz/fuzz_$name" \
    -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 \
    -dict="tests/fuzz/$dictionary.dict" -artifact_prefix="build/fuzz/broken/$name-" \
    "build/fuzz/found/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    printf '%-8s %s inputs\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    grep -vE '^(#[0-9]|0x|Base64)' "$log" | tail -n 40
    printf '%-8s BROKEN: see above, and build/fuzz/broken\n' "$name"
    return 1
  fi
}
export -f fuzz
export seconds

printf '%s\n' "${fuzzers[@]}" | xargs -P "$jobs" -I{} bash -c 'fuzz {}'
