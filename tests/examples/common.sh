# What the tests of the examples share: a folder of their own in $dir, removed at the end with all
# that was started; a real Consul on free ports. To be sourced, with BUILD and CMAKE as arguments.
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

# start LOG COMMAND...: in the background, ended before what was started earlier.
start() {
  local log=$1
  shift
  "$@" >"$dir/$log" 2>&1 &
  pids=($! "${pids[@]}")
}

# expect WHAT IT-IS WANTED
expect() {
  [ "$2" = "$3" ] || { echo "$1: expected $3, got $2" >&2; exit 1; }
}

free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
}

# start_dev ARGUMENT...: a lictor dev on a free port, whose output goes to $dir/dev.log.
start_dev() {
  rm -f "$dir/dev.log"
  TMPDIR=$dir start dev.log setsid "$build/src/lictor" dev --listen 127.0.0.1:0 "$@"
  until grep -qs "^  store   " "$dir/dev.log"; do kill -0 "${pids[0]}"; sleep 0.1; done
  CONSUL_HTTP_ADDR=$(sed -n 's|^  store   http://||p' "$dir/dev.log")
  export CONSUL_HTTP_ADDR LICTOR_STATE_DIR=$dir/state
  unset CONSUL_HTTP_TOKEN CONSUL_HTTP_TOKEN_FILE CONSUL_HTTP_SSL LICTOR_CONFIG
}

# start_consul ARGUMENT...: of the agent.
start_consul() {
  local consul http closed_ports
  consul=${CONSUL_BIN:-$(consul/get-consul.sh)}
  closed_ports=$(consul/agent-ports.sh "$consul")
  mapfile -t closed_ports <<<"$closed_ports"
  http=$(free_port)
  start consul.log "$consul" agent -config-file=consul/dev-agent.hcl -data-dir="$dir/consul" \
    -http-port="$http" -server-port="$(free_port)" -serf-lan-port="$(free_port)" \
    "${closed_ports[@]}" "$@"
  export CONSUL_HTTP_ADDR=127.0.0.1:$http LICTOR_STATE_DIR=$dir/state
  unset CONSUL_HTTP_TOKEN CONSUL_HTTP_TOKEN_FILE CONSUL_HTTP_SSL
  until [ "$(curl -fs -X PUT "http://$CONSUL_HTTP_ADDR/v1/kv/up" -d yes)" = true ]; do
    kill -0 "${pids[0]}"
    sleep 0.1
  done
}

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
    echo "done, and should have become a dead letter: $*" >&2
    exit 1
  fi
}
