#!/usr/bin/env bash
# Runs a cluster of three Consul servers on 127.0.0.1, ports 8510, 8520 and 8530, until Ctrl-C.
#
#   consul/three-servers/run.sh [DATA_DIR]
#
# Without DATA_DIR the data lies in a temporary folder that goes when the cluster goes; with it the
# data is kept, and a later run takes it up again. To try a failure, kill one server by the process
# id that is printed, or freeze it with kill -STOP; the others go on, and the command that starts it
# again is printed too. A server started by hand is stopped by hand.
#
# Let lictor know all three:
#   "consul": {"addresses": ["http://127.0.0.1:8510", "http://127.0.0.1:8520", "http://127.0.0.1:8530"]}
set -euo pipefail

case "${1-}" in
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
  -*) printf 'three-servers: unexpected option "%s"; see --help\n' "$1" >&2; exit 2 ;;
esac

here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
consul="$("$here/../get-consul.sh")"
closed_ports=$("$here/../agent-ports.sh" "$consul")
mapfile -t closed_ports <<<"$closed_ports"

temporary=
data="${1-}"
if [ -z "$data" ]; then
  data="$(mktemp -d "${TMPDIR:-/tmp}/lictor-three-servers.XXXXXXXX")"
  temporary="$data"
fi
mkdir -p -- "$data"
data="$(cd -- "$data" && pwd)"

pids=()
stop() {
  trap - EXIT
  trap '' INT TERM
  local pid
  for pid in "${pids[@]}"; do
    kill -CONT "$pid" 2>/dev/null || true  # A frozen server would not see the TERM.
    kill -TERM "$pid" 2>/dev/null || true
  done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  [ -z "$temporary" ] || rm -rf -- "$temporary"
}
trap stop EXIT
trap 'stop; exit 130' INT
trap 'stop; exit 143' TERM

for n in 1 2 3; do
  command=("$consul" agent -ui -config-file="$here/common.hcl" -config-file="$here/server-$n.hcl"
    -data-dir="$data/server-$n" "${closed_ports[@]}")
  "${command[@]}" >"$data/server-$n.out" 2>&1 &
  pids+=($!)
  printf 'server-%s  http://127.0.0.1:85%s0  pid %s  log %s\n' "$n" "$n" "$!" "$data/server-$n.out"
  printf '          again after a kill: %s\n' "$(printf '%q ' "${command[@]}")"
done

# 30 s: an election takes 3 s; a slow machine that also verifies its data on disk gets ten times that.
for ((tenths = 0; ; tenths++)); do
  for i in 0 1 2; do
    if ! kill -0 "${pids[i]}" 2>/dev/null; then
      printf 'three-servers: server-%s ended at once; the end of its output:\n' "$((i + 1))" >&2
      tail -n 5 "$data/server-$((i + 1)).out" >&2
      exit 1
    fi
  done
  if leader="$("$consul" operator raft list-peers 2>/dev/null -http-addr=127.0.0.1:8510 |
    awk '$4 == "leader" && $1 ~ /^server-[123]$/ { print $1 }')" && [ -n "$leader" ]; then
    printf 'leader: %s\n' "$leader"
    break
  fi
  if [ "$tenths" -ge 300 ]; then
    printf 'three-servers: no leader after 30 s; see the logs in %s\n' "$data" >&2
    temporary=
    exit 1
  fi
  sleep 0.1
done

printf 'running; Ctrl-C stops all three\n'
# Goes on while any server lives: killing one or two of them is what this cluster is for.
wait "${pids[@]}" 2>/dev/null || true
for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
