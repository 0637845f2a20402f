#!/usr/bin/env bash
# Builds lictor and its tests under a sanitizer, and runs them.
#
#   tests/sanitize.sh asan|tsan [ARGUMENTS FOR CTEST...]
#   tests/sanitize.sh asan                AddressSanitizer and UBSan: unit, simulation, live
#   tests/sanitize.sh tsan -L unit        ThreadSanitizer, only the unit tests
#
# In build/asan or build/tsan. A finding ends the program that it is in, and so fails its test.
# JOBS=n sets how many compilers and tests run at once; live tests are given five times the
# patience. Takes what tests/run.sh takes.
set -euo pipefail

case "${1-}" in
  asan | tsan) kind=$1; shift ;;
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
  *) printf 'sanitize: expected asan or tsan, got "%s"; see --help\n' "${1-}" >&2; exit 2 ;;
esac

cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

CONSUL_BIN="$(consul/get-consul.sh)"
export CONSUL_BIN
export LICTOR_LIVE_PATIENCE="${LICTOR_LIVE_PATIENCE:-450}"
export ASAN_OPTIONS="detect_stack_use_after_return=1:${ASAN_OPTIONS-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS-}"
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:${TSAN_OPTIONS-}"

jobs=${JOBS:-$(nproc)}
cmake --preset "$kind"
cmake --build --preset "$kind" --parallel "$jobs"
[ "$#" -gt 0 ] || set -- -L 'unit|sim|live'
ctest --preset "$kind" --output-on-failure --parallel "$jobs" --timeout 3000 "$@"
