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
grep -q grpc-tls-port <("$real" agent -help 2>&1) || for flag; do
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
await "the neighbour" curl -fs -o /dev/null -X PUT http://127.0.0.1:8500/v1/kv/up

cat >"$dir/browser.mjs" <<END
import { startConsul } from "$PWD/tests/browser/programs.mjs";
const { program } = await startConsul(process.argv[2], "$dir");
await program.stop();
END
# Each in a shell of its own, which ends what it started.
three_servers() {
  (
    pids=()
    trap 'stop || true; cat "$dir/three.log"' EXIT
    CONSUL_BIN=$1 start three.log consul/three-servers/run.sh
    await_text three.log "running;"
  )
}
# The files for agents have no setting that a new Consul warns of.
echo "data_dir = \"$dir\"" >"$dir/data.hcl"
for file in consul/dev-agent.hcl consul/three-servers/server-?.hcl; do
  files=("$file")
  [ "$file" = consul/dev-agent.hcl ] || files=(consul/three-servers/common.hcl "$file")
  "$real" validate "${files[@]}" "$dir/data.hcl" >"$dir/validate.log" 2>&1
  if grep -i deprecated "$dir/validate.log" || grep -nE '^ *ui( |$)' "${files[@]}"; then
    fail "$file has a setting that newer versions take, but warn of"
  fi
done

# What is run with a Consul, which each of them starts.
example() { (pids=(); trap 'stop KILL || true' EXIT; CONSUL_BIN=$1 start_consul); }
quickstart() { TMPDIR=$dir CONSUL_BIN=$1 LICTOR_BIN=$build/src/lictor examples/quickstart.sh; }
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
  grep -q "8503: bind" "$dir/$user.out" "$dir"/consul.log || { cat "$dir/$user.out" >&2; echo "$user does not show how Consul ended" >&2; exit 1; }
done
