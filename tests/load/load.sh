#!/usr/bin/env bash
# Load on daemons of a build and a Consul of its own, and what it costs them; a failure is exit 1.
#
#   tests/load/load.sh puts       [--seconds 60] [--rate 1000]   PUTs, a connection each: tasks that
#                                                                succeed, fail and hang
#   tests/load/load.sh step-downs [--seconds 3600]               changes of leader while tasks run
#   tests/load/load.sh soak       [--seconds 3600]               three daemons: memory, descriptors
#
# Builds nothing: see tests/run.sh. BUILD names another folder than build/ci.
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }

cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
kind=${1-}
[ $# -eq 0 ] || shift
case "$kind" in
  puts) seconds=60 variable=LICTOR_LOAD_SECONDS title='load: a thousand*' ;;
  step-downs) seconds=3600 variable=LICTOR_STEP_DOWN_SECONDS title='load: leadership*' ;;
  soak) seconds=3600 variable=LICTOR_SOAK_SECONDS title='load: memory*' ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
while [ $# -gt 0 ]; do
  case "$1 ${2-}" in
    "--seconds "[1-9]*) seconds=$2 ;;
    "--rate "[1-9]*) export LICTOR_LOAD_RATE="$2" ;;
    *) usage >&2; exit 2 ;;
  esac
  shift 2
done

CONSUL_BIN="$(consul/get-consul.sh)"
export CONSUL_BIN "$variable=$seconds"
exec "${BUILD:-build/ci}/tests/live/live_tests" --test-case="$title"
