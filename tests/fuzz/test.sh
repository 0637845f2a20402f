#!/usr/bin/env bash
# The test "fuzz.run": run.sh with the same inputs each time, so that a run that fails can be had
# again. Exit code 77: there is no clang.
#
# LICTOR_FUZZ_SECONDS=n sets how long each fuzzer runs (5), LICTOR_FUZZ_SEED=n what inputs it
# makes (1).
set -euo pipefail

command -v clang++ >/dev/null || { echo "skipped: no clang++ (tests/install-deps.sh test)" >&2; exit 77; }
JOBS=1 LICTOR_FUZZ_QUICK=1 LICTOR_FUZZ_SEED="${LICTOR_FUZZ_SEED:-1}" exec \
  "$(dirname -- "${BASH_SOURCE[0]}")/run.sh" "${LICTOR_FUZZ_SECONDS:-5}"
