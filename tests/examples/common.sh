# What the tests of the examples share: a folder of their own in $dir, removed at the end with all
# that was started; waits that end; a real Consul on free ports. To be sourced, with BUILD and CMAKE
# as arguments; $limit_s, if it is set before, replaces the 400 s that the whole script may take.
set -Eeuo pipefail

# Whatever hangs, a command among them, is ended in time to say where: ctest would only kill it.
if [ -z "${EXAMPLE_ENDS-}" ]; then
  EXAMPLE_ENDS=1 exec timeout --kill-after=30 "${limit_s:-400}" "$0" "$@"
fi
unset EXAMPLE_ENDS

build=$1 cmake=$2
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
dir=$(mktemp -d "${TMPDIR:-/tmp}/lictor-example.XXXXXX")
pids=()
finish() {
  local status=$? pid
  [ "$status" -eq 0 ] || tail -n 50 "$dir"/*.log >&2 || true
  for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do
    for _ in {1..300}; do
      kill -0 "$pid" 2>/dev/null || continue 2
      sleep 0.1
    done
    echo "$0: does not end 30 s after TERM: $(tr '\0' ' ' <"/proc/$pid/cmdline")" >&2
    kill -KILL "$pid"
    [ "$status" -ne 0 ] || { status=1 && tail -n 50 "$dir"/*.log >&2; }
  done
  rm -rf -- "$dir"
  exit "$status"
}
trap finish EXIT
trap 'echo "${BASH_SOURCE[0]}:$LINENO: failed: $BASH_COMMAND" >&2' ERR
trap 'exit 130' INT
trap 'echo "$0: not done in time: ${awaited:-$BASH_COMMAND}" >&2; exit 143' TERM

fail() {
  echo "$0: $*" >&2
  exit 1
}

# start LOG COMMAND...: in the background, ended before what was started earlier.
start() {
  local log=$1
  shift
  : >"$dir/$log"  # now, and not when the process begins: nobody is to find what an earlier one wrote
  # It ends with this test, also when a time limit kills that.
  setpriv --pdeathsig KILL "$@" >"$dir/$log" 2>&1 &
  pids=($! "${pids[@]}")
}

# stop [SIGNAL]: what was started last; its exit code in $code.
stop() {
  local pid=${pids[0]}
  pids=("${pids[@]:1}")
  code=0
  kill -"${1:-TERM}" "$pid"
  wait "$pid" 2>/dev/null || code=$?
}

# await WHAT COMMAND...: until COMMAND succeeds, while all lives that was started.
await() {
  local end=$((SECONDS + 90)) pid
  awaited=$1
  shift
  until "$@" >/dev/null 2>&1; do
    for pid in "${pids[@]}"; do
      kill -0 "$pid" 2>/dev/null || fail "a process ended, see its log; waited for $awaited"
    done
    [ "$SECONDS" -lt "$end" ] || fail "waited 90 s for $awaited"
    sleep 0.1
  done
  awaited=
}
# Conditions to wait for.
has_text() { grep -qsF -- "$2" "$dir/$1"; }  # has_text FILE TEXT
absent() { ! curl -fs -o /dev/null "http://$CONSUL_HTTP_ADDR/v1/kv/$1"; }
await_text() { await "\"$2\" in $1" has_text "$@"; }
await_absent() { await "the end of the key $1" absent "$1"; }
await_file() { await "a file $1 that is not empty" test -s "$1"; }

# expect WHAT IT-IS WANTED
expect() {
  [ "$2" = "$3" ] || fail "$1: expected $3, got $2"
}

# free_ports COUNT: as many, all different, below the range that the kernel hands out to clients.
free_ports() {
  local port
  local -A found=()
  while [ "${#found[@]}" -lt "$1" ]; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || found[$port]=1
  done
  echo "${!found[@]}"
}

# start_dev ARGUMENT...: a lictor dev on a free port, whose output goes to $dir/dev.log.
start_dev() {
  TMPDIR=$dir start dev.log setsid "$build/src/lictor" dev --listen 127.0.0.1:0 "$@"
  await_text dev.log "  store   http"
  CONSUL_HTTP_ADDR=$(sed -n 's|^  store   http://||p' "$dir/dev.log")
  export CONSUL_HTTP_ADDR LICTOR_STATE_DIR=$dir/state
  unset CONSUL_HTTP_TOKEN CONSUL_HTTP_TOKEN_FILE CONSUL_HTTP_SSL LICTOR_CONFIG
}

# start_consul ARGUMENT...: of the agent. With EXAMPLE_STORE=dev a lictor dev takes its place.
start_consul() {
  if [ "${EXAMPLE_STORE-}" = dev ]; then
    start_dev --no-worker
    return
  fi
  local consul closed_ports http server lan
  consul=${CONSUL_BIN:-$(consul/get-consul.sh)}
  closed_ports=$(consul/agent-ports.sh "$consul")
  mapfile -t closed_ports <<<"$closed_ports"
  export LICTOR_STATE_DIR=$dir/state
  unset CONSUL_HTTP_TOKEN CONSUL_HTTP_TOKEN_FILE CONSUL_HTTP_SSL
  # A port may be taken between its choice and its use: then others are chosen.
  for _ in 1 2 3; do
    read -r http server lan <<<"$(free_ports 3)"
    start consul.log "$consul" agent -config-file=consul/dev-agent.hcl -data-dir="$dir/consul" \
      -http-port="$http" -server-port="$server" -serf-lan-port="$lan" "${closed_ports[@]}" "$@"
    export CONSUL_HTTP_ADDR=127.0.0.1:$http
    for _ in {1..900}; do
      ! consul_answers || return 0
      kill -0 "${pids[0]}" 2>/dev/null || break
      sleep 0.1
    done
    grep -q "address already in use" "$dir/consul.log" || break
    stop KILL 2>/dev/null || true
  done
  fail "Consul does not start: $(tail -n 3 "$dir/consul.log")"
}
consul_answers() { [ "$(curl -fs -X PUT "http://$CONSUL_HTTP_ADDR/v1/kv/up" -d yes)" = true ]; }

# Into $dir/prefix.
install_lictor() { "$cmake" --install "$build" --prefix "$dir/prefix" >"$dir/install.log"; }

# build_project FOLDER: with find_package(lictor), into $dir/build.
build_project() {
  "$cmake" -S "$1" -B "$dir/build" -G Ninja -DCMAKE_PREFIX_PATH="$dir/prefix" \
    >"$dir/configure.log" 2>&1
  "$cmake" --build "$dir/build" >"$dir/build.log" 2>&1
}

# The task whose submission with --wait is to fail; its message goes to $dir/dead.log.
expect_dead() {
  if "$@" 2>"$dir/dead.log"; then
    fail "done, and should have become a dead letter: $*"
  fi
}
