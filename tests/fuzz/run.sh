#!/usr/bin/env bash
# Builds the fuzzers with clang, in build/fuzz, and runs each of them for a while.
#
#   tests/fuzz/run.sh [SECONDS [FUZZER...]]
#   tests/fuzz/run.sh 600 record config   ten minutes each for two of them
#
# Begins with the inputs in tests/fuzz/corpus and with those that earlier runs found, which are kept
# in build/fuzz/found. An input that breaks something is left in build/fuzz/broken; to have it run
# alone: build/fuzz/tests/fuzz/fuzz_<name> <file>. JOBS=n sets how many run at once.
#
# LICTOR_FUZZ_SEED=n makes the same inputs in the same order each time, beginning with those of
# tests/fuzz/corpus alone and without libFuzzer's -use_cmp; a slower machine only gets less far.
# What such a run finds is kept in build/fuzz/seeded, until the next. Otherwise each run is another.
#
# LICTOR_FUZZ_QUICK=1 builds without optimization and lines of sources, in half the time; the fuzzers
# then get a third as far.
set -euo pipefail

case "${1-}" in
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
esac

cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

seconds=${1:-10}
shift || true
fuzzers=("$@")
[ "${#fuzzers[@]}" -gt 0 ] || fuzzers=(admin config job letters record replies schedule text warden)
jobs=${JOBS:-$(nproc)}

seed=${LICTOR_FUZZ_SEED-}
case "$seed" in
  *[!0-9]* | 0*)
    printf 'fuzz: LICTOR_FUZZ_SEED: expected a whole number above 0, got "%s"\n' "$seed" >&2
    exit 2
    ;;
esac

fresh=()
if [ -f build/fuzz/CMakeCache.txt ] &&
  ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" build/fuzz/CMakeCache.txt; then
  fresh=(--fresh)  # moved or copied: its cache names the old place
fi
cmake --preset fuzz "${fresh[@]}" ${LICTOR_FUZZ_QUICK:+-DCMAKE_BUILD_TYPE=None} >/dev/null
cmake --build --preset fuzz --parallel "$jobs"

fuzz() {
  local name=$1 dictionary=json log=build/fuzz/broken/$1.log
  local found=build/fuzz/found/$1 chance=(-seed=0)
  case "$name" in
    admin) dictionary=http ;;
    replies) dictionary=consul ;;
    schedule) dictionary=cron ;;
  esac
  if [ -n "$seed" ]; then
    found=build/fuzz/seeded/$name
    rm -rf -- "$found"
    # What is compared holds addresses, which are others in each run.
    chance=("-seed=$seed" -use_cmp=0)
  fi
  mkdir -p "$found" build/fuzz/broken
  if UBSAN_OPTIONS=print_stacktrace=1 "build/fuzz/tests/fuzz/fuzz_$name" \
    "${chance[@]}" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=8192 \
    -print_final_stats=1 \
    -dict="tests/fuzz/$dictionary.dict" -artifact_prefix="build/fuzz/broken/$name-" \
    "$found" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    printf '%-8s %s inputs\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    grep -vE '^(#[0-9]|0x|Base64)' "$log" | tail -n 40
    printf '%-8s BROKEN: see above, and build/fuzz/broken\n' "$name"
    return 1
  fi
}
export -f fuzz
export seconds seed

printf '%s\n' "${fuzzers[@]}" | xargs -P "$jobs" -I{} bash -c 'fuzz {}'
