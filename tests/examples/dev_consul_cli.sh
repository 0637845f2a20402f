#!/usr/bin/env bash
# The consul command, which is HashiCorp's own client library in Go, says of lictor dev what it says
# of a real agent.
#
#   dev_consul_cli.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

consul=${CONSUL_BIN:-$(consul/get-consul.sh)}
export CONSUL_BIN=$consul

# run COMMAND...: what it says and how it ends, into the folder of the server asked.
run() {
  local code=0
  printf '\n$ %s\n' "$*" >>said
  timeout 60 "$@" >>said 2>&1 </dev/null || code=$?
  echo "exit $code" >>said
}
kv() { run "$consul" kv "$@"; }
# until_so COMMAND...: until it succeeds.
until_so() {
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt 600 ] || { echo "waited in vain: $*" >&2; exit 1; }
    sleep 0.05
  done
}
field() { "$consul" kv get -detailed "$1" | sed -n "s/^$2 *//p"; }
api() { curl -fs -X PUT "http://$CONSUL_HTTP_ADDR/v1/$1" -d "${2-}"; }
new_session() { api session/create | sed 's/.*:"\(.*\)"}/\1/'; }

keys() {
  kv put a/b hello
  kv get a/b
  kv get -detailed a/b
  kv put -flags=42 a/c flagged
  printf 'bytes\0\377' >bytes
  kv put a/bytes @bytes
  kv put -base64 a/e aGVsbG8=
  kv get -base64 a/e
  kv get -recurse a/
  kv get -recurse -detailed a/
  kv get -keys a/
  kv get -keys -separator= a
  kv get -recurse none
  kv get none
  kv get -stale a/b
  kv put -cas -modify-index=1 a/b refused
  kv put -cas -modify-index="$(field a/b ModifyIndex)" a/b taken
  kv put -acquire -session=short a/b x
  kv put -acquire -session=00000000-0000-0000-0000-000000000000 a/b x
  local session
  session=$(new_session)
  kv put -acquire -session="$session" a/lock held
  kv put -acquire -session="$(new_session)" a/lock held
  kv get -detailed a/lock
  kv put -release -session="$session" a/lock free
  kv export a/
  "$consul" kv export a/ >exported.json
  kv delete a/b
  kv delete -cas -modify-index=1 a/c
  kv delete -cas -modify-index="$(field a/c ModifyIndex)" a/c
  kv delete -recurse a/
  kv get -recurse a/
  kv import @exported.json
  kv get -recurse a/
}

# Its own lock: sessions that are renewed, blocking queries, flags, compare-and-set.
locks() {
  # The command's words are joined and given to a shell.
  run "$consul" lock -child-exit-code lk/one 'echo in; exit 3'
  run "$consul" lock -name=named -timeout=20s lk/one echo again
  run "$consul" lock -n 2 lk/two echo alone
  # Two hold the semaphore, the third does not get it.
  echo "'$consul' lock -n 2 -timeout=100ms lk/two echo three; echo two" >second_holder
  run "$consul" lock -n 2 lk/two "$consul" lock -n 2 lk/two sh second_holder
  # One waits until the other lets go.
  echo 'touch has; until [ -e go ]; do sleep 0.05; done' >holder
  timeout 120 "$consul" lock lk/one sh holder >first 2>&1 &
  local first=$!
  until_so test -e has
  run "$consul" lock -timeout=100ms lk/one echo "not mine"
  timeout 120 "$consul" lock lk/one echo "mine now" >second 2>&1 &
  local second=$!
  touch go
  wait "$first"
  wait "$second"
  run cat first second
  # A session that is gone ends the child.
  cat >lose <<'END'
session=$(curl -fs "http://$CONSUL_HTTP_ADDR/v1/kv/lk/lost/.lock" | sed 's/.*Session":"\([^"]*\).*/\1/')
curl -fs -o /dev/null -X PUT "http://$CONSUL_HTTP_ADDR/v1/session/destroy/$session"
exec sleep 60
END
  run "$consul" lock lk/lost sh lose
  # The third's session is destroyed as the command ends, if it comes to it; else by its TTL.
  "$consul" kv delete -recurse lk/two >/dev/null
  kv get -recurse lk
}

# watch NAME ARGUMENT...: whose handler's input goes to watched.NAME, a line each time.
watch() {
  local name=$1
  shift
  start "watch.$name.log" "$consul" watch "$@" sh -c "cat >>watched.$name; echo >>watched.$name"
  watchers+=("$name")
}
# told NAME TEXT: waits until the handler has the text.
told() {
  until_so grep -qF -- "$2" "watched.$1"
}
watches() {
  watchers=()
  api kv/wt/a 1 >/dev/null
  watch key -type=key -key=wt/a
  watch prefix -type=keyprefix -prefix=wt/
  told key MQ==
  told prefix MQ==
  api kv/wt/a 2 >/dev/null
  told key Mg==
  told prefix Mg==
  api kv/wt/b 3 >/dev/null
  told prefix wt/b
  curl -fs -X DELETE "http://$CONSUL_HTTP_ADDR/v1/kv/wt/?recurse" >/dev/null
  told key null
  told prefix null
  local name
  for name in "${watchers[@]}"; do run grep . "watched.$name"; done  # a newline may come later
}

# What is a server's own: indexes, ids, ports, times.
plain() {
  sed -E -e 's/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/ID/g' \
    -e 's/^((Create|Modify)Index *)[0-9]+/\1N/' \
    -e 's/"((Create|Modify)Index)": ?[0-9]+/"\1":N/g' -e 's/-modify-index=[0-9]+/-modify-index=N/' \
    -e 's/127\.0\.0\.1:[0-9]+ */HERE /g' -e 's/([^_]port)=[0-9]+/\1=N/' "$1"
}

# ask NAME: all of it, of the server at CONSUL_HTTP_ADDR.
ask() {
  mkdir "$dir/$1"
  cd "$dir/$1"
  keys
  locks
  watches
  plain said >"$dir/$1.said"
  cd "$OLDPWD"
}

start_dev --no-worker
ask dev
start_consul -node=dev
ask agent
diff -a -U2 --label "a real agent" --label "lictor dev" "$dir/agent.said" "$dir/dev.said"

# What lictor dev has not, it says.
address=$(sed -n 's|^  store   http://||p' "$dir/dev.log")
for command in leave reload members "catalog nodes" "catalog services" "event -name=x" "keyring -list" "snapshot save $dir/snapshot" "force-leave none" \
  "operator autopilot get-config" "config list -kind service-defaults" "intention match db"; do
  code=0
  # shellcheck disable=SC2086  # the command's words
  CONSUL_HTTP_ADDR=$address timeout 60 "$consul" $command >"$dir/missing.log" 2>&1 || code=$?
  [ "$code" -ne 0 ] && grep -q "501 (lictor dev has no /v1/" "$dir/missing.log" || {
    echo "consul $command: expected a 501 that says so, got:" >&2
    cat "$dir/missing.log" >&2
    exit 1
  }
done
