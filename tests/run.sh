#!/usr/bin/env bash
# Builds lictor with warnings as errors and runs every test, against a real Consul too.
#
#   tests/run.sh [ARGUMENTS FOR CTEST...]
#   tests/run.sh -R election              only tests whose name matches
#   tests/run.sh -L unit                  only tests with this label
#
# Installs what is missing (tests/install-deps.sh), finds or fetches a consul binary
# (consul/get-consul.sh; CONSUL_BIN names one), builds in build/ci. Runs from any folder.
#
# LICTOR_SKIP_INSTALL=1 installs nothing; JOBS=n sets how many compilers and tests run at once (as
# many as there are processors, and of tests, which mostly wait, two more); LICTOR_FUZZ_SECONDS and
# LICTOR_FUZZ_SEED: see tests/fuzz/test.sh.
set -euo pipefail

case "${1-}" in
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
esac

. "$(dirname -- "${BASH_SOURCE[0]}")/prepare.sh"

# A checkout that was moved or copied brings along a cache that names the old place: begin again.
fresh=()
if [ -f build/ci/CMakeCache.txt ] &&
  ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" build/ci/CMakeCache.txt; then
  fresh=(--fresh)
fi

cmake --preset ci "${fresh[@]}"
cmake --build --preset ci --parallel "${JOBS:-$(nproc)}"
ctest --preset ci --output-on-failure --parallel "${JOBS:-$(($(nproc) + 2))}" "$@"
