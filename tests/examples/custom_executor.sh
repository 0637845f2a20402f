#!/usr/bin/env bash
# Installs lictor from BUILD into a folder of its own, builds examples/custom-executor against it
# with find_package(lictor), and has the program run tasks from a real Consul.
#
#   custom_executor.sh BUILD CMAKE
set -euo pipefail

build=$1 cmake=$2
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
dir=$(mktemp -d "${TMPDIR:-/tmp}/lictor-example.XXXXXX")
pids=()
finish() {
  local status=$? pid
  for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  [ "$status" -eq 0 ] || tail -n 50 "$dir"/*.log >&2 || true
  rm -rf -- "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM

"$cmake" --install "$build" --prefix "$dir/prefix" >"$dir/install.log"
"$cmake" -S examples/custom-executor -B "$dir/build" -G Ninja -DCMAKE_PREFIX_PATH="$dir/prefix" \
  >"$dir/configure.log" 2>&1
"$cmake" --build "$dir/build" >"$dir/build.log" 2>&1
program=$dir/build/word-counter

free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
}
consul=${CONSUL_BIN:-$(consul/get-consul.sh)}
http=$(free_port)
"$consul" agent -config-file=consul/dev-agent.hcl -data-dir="$dir/consul" -http-port="$http" \
  -server-port="$(free_port)" -serf-lan-port="$(free_port)" -serf-wan-port=-1 -dns-port=-1 \
  -grpc-port=-1 >"$dir/consul.log" 2>&1 &
pids=($!)
export CONSUL_HTTP_ADDR=127.0.0.1:$http LICTOR_STATE_DIR=$dir/state
until [ "$(curl -fs -X PUT "http://$CONSUL_HTTP_ADDR/v1/kv/up" -d yes)" = true ]; do sleep 0.1; done
"$program" run --config examples/custom-executor/lictor.json >"$dir/daemon.log" 2>&1 &
pids=($! "${pids[@]}")

"$program" submit CountWords --para file=examples/custom-executor/lictor.json --wait --wait-timeout 60s
grep -q "words in .*lictor.json.* (attempt 1, token " "$dir/daemon.log"
"$program" submit Greet --para name=reader --wait --wait-timeout 60s  # registered, not configured
grep -q "^Hello, reader$" "$dir/daemon.log"
if "$program" submit CountWords --wait --wait-timeout 60s 2>"$dir/dead.log"; then
  echo "a task without its parameter was done" >&2
  exit 1
fi
grep -q "expected the path of a file" "$dir/dead.log"
