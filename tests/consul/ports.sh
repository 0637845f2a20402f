#!/usr/bin/env bash
# Whatever starts a Consul does so beside an agent on Consul's usual ports, whatever the version; and
# it sees the end of one that does not start at once, and shows its last words.
#
#   ports.sh BUILD CMAKE
#
# On a network of its own, whose usual ports are free. Exit code 77: there can be none, and why.
if [ -z "${LICTOR_ALONE-}" ]; then
  rights=()
  [ "$(id -u)" -eq 0 ] || rights=(--user --map-root-user)
  unshare "${rights[@]}" --net true 2>/dev/null || { echo "skipped: no network of its own can be had here"; exit 77; }
  LICTOR_ALONE=1 exec unshare "${rights[@]}" --net -- "$0" "$@"
fi
. "$(dirname -- "${BASH_SOURCE[0]}")/../examples/common.sh"
ip link set lo up

real=${CONSUL_BIN:-$(consul/get-consul.sh)}
# A Consul of 1.14 or later where another agent has port 8503; and one that finds another port taken.
# Both know the new flag. The real one need not.
stub() {  # stub NAME WHEN
  cat >"$dir/$1" <<END
#!/bin/bash
case "\$*" in
  "agent -help") "$real" "\$@"; echo "  -grpc-tls-port=<value>"; exit ;;
  agent*) $2 { echo "==> Error starting agent: listen tcp 127.0.0.1:8503: bind: address already in use"; exit 1; } ;;
esac
"$real" agent -help 2>&1 | grep -q grpc-tls-port || for flag; do
  shift
  [ "\$flag" = -grpc-tls-port=-1 ] || set -- "\$@" "\$flag"
done
exec "$real" "\$@"
END
  chmod +x "$dir/$1"
}
stub new-consul '[[ $* == *-grpc-tls-port=-1* ]] ||'
stub ending-consul ''

# The neighbour, as most hosts have it.
start neighbour.log "$real" agent -dev -log-level=warn
until curl -fs -o /dev/null -X PUT http://127.0.0.1:8500/v1/kv/up; do kill -0 "${pids[0]}"; sleep 0.1; done

cat >"$dir/browser.mjs" <<END
import { startConsul } from "$PWD/tests/browser/programs.mjs";
const { program } = await startConsul(process.argv[2], "$dir");
await program.stop();
END
three_servers() {
  local consul pid
  CONSUL_BIN=$1 consul/three-servers/run.sh >"$dir/three.log" 2>&1 &
  pid=$!
  until grep -q '^running' "$dir/three.log"; do kill -0 "$pid" || break; sleep 0.1; done
  kill "$pid" || true
  wait "$pid" || true
  cat "$dir/three.log"
  grep -q '^running' "$dir/three.log"
}
# The files for agents have no setting that a new Consul warns of.
for file in consul/dev-agent.hcl consul/three-servers/server-?.hcl; do
  cat consul/three-servers/common.hcl "$file" >"$dir/agent.hcl"
  echo "data_dir = \"$dir\"" >>"$dir/agent.hcl"
  "$real" validate "$dir/agent.hcl" >"$dir/validate.log" 2>&1 || { cat "$dir/validate.log" >&2; exit 1; }
  if grep -i deprecated "$dir/validate.log" || grep -nE '^ *ui( |$)' "$dir/agent.hcl"; then
    echo "$file has a setting that newer versions take, but warn of" >&2
    exit 1
  fi
done

# What is run with a Consul, which each of them starts.
example() { (pids=(); CONSUL_BIN=$1 start_consul); }
quickstart() { CONSUL_BIN=$1 LICTOR_BIN=$build/src/lictor examples/quickstart.sh; }
live() { CONSUL_BIN=$1 "$build/tests/live/live_tests" --test-case="a task without a time has its place by its creation"; }
browser() { node "$dir/browser.mjs" "$1"; }
users=(example quickstart live three_servers)
type -P node >/dev/null && users+=(browser)

for user in "${users[@]}"; do
  for consul in "$real" "$dir/new-consul"; do
    "$user" "$consul" >"$dir/$user.out" 2>&1 || { cat "$dir/$user.out" >&2; echo "$user fails with $consul" >&2; exit 1; }
  done
  if "$user" "$dir/ending-consul" >"$dir/$user.out" 2>&1; then
    echo "$user is content with a Consul that ends" >&2
    exit 1
  fi
  cat "$dir/$user.out" "$dir"/consul.log | grep -q "8503: bind" || { cat "$dir/$user.out" >&2; echo "$user does not show how Consul ended" >&2; exit 1; }
done
