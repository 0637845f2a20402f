#!/usr/bin/env bash
# Builds lictor and its tests under a sanitizer, and runs them.
#
#   tests/sanitize.sh asan|tsan [ARGUMENTS FOR CTEST...]
#   tests/sanitize.sh asan                AddressSanitizer and UBSan: unit, simulation, live
#   tests/sanitize.sh tsan -L unit        ThreadSanitizer, only the unit tests
#
# In build/asan or build/tsan. A finding ends the program that it is in. AddressSanitizer's and
# ThreadSanitizer's are shown at the end and fail the run, also where no test notices: a daemon's
# while it is taken down. UBSan writes to the program's standard error and has it exit with 1.
#
# Like tests/run.sh it installs what is missing and finds or fetches a consul binary, and takes
# LICTOR_SKIP_INSTALL and CONSUL_BIN. JOBS=n sets how many compilers and tests run at once. Live
# tests are given five times the patience. Objects go through ccache, where there is one.
set -euo pipefail

case "${1-}" in
  asan | tsan) kind=$1; shift ;;
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
  *) printf 'sanitize: expected asan or tsan, got "%s"; see --help\n' "${1-}" >&2; exit 2 ;;
esac

. "$(dirname -- "${BASH_SOURCE[0]}")/prepare.sh"
export LICTOR_LIVE_PATIENCE="${LICTOR_LIVE_PATIENCE:-450}"
if type -P ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
fi

findings="$PWD/build/$kind/findings"
rm -rf -- "$findings"
mkdir -p -- "$findings"
chmod 1777 "$findings"  # some tests run lictor as another user
log="log_path=\"$findings/report\""
export ASAN_OPTIONS="$log:detect_stack_use_after_return=1:${ASAN_OPTIONS-}"
export UBSAN_OPTIONS="$log:print_stacktrace=1:${UBSAN_OPTIONS-}"
export TSAN_OPTIONS="$log:halt_on_error=1:second_deadlock_stack=1:${TSAN_OPTIONS-}"

# GCC 12's ThreadSanitizer does not start where addresses are shuffled by more bits than this.
as_is=()
if [ "$kind" = tsan ] && [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -gt 28 ]; then
  as_is=(setarch --addr-no-randomize)
fi

jobs=${JOBS:-$(nproc)}
cmake --preset "$kind"
cmake --build --preset "$kind" --parallel "$jobs"
[ "$#" -gt 0 ] || set -- -L 'unit|scenario|sim|live'
status=0
"${as_is[@]}" ctest --preset "$kind" --output-on-failure --parallel "$jobs" "$@" || status=$?

for report in "$findings"/report.*; do
  [ -e "$report" ] || continue
  printf '\n== %s\n' "$report" >&2
  cat -- "$report" >&2
  status=1
done
exit "$status"
