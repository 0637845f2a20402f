#!/usr/bin/env bash
# lictor dev with a `lictor run` beside it: its own worker gives way, examples/create-tablespace and
# examples/existing-layout are carried out, every command works, and its ends are clean.
#
#   dev_commands.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

lictor=$build/src/lictor
# says TEXT COMMAND...: what is on its standard output.
says() {
  local text=$1
  shift
  "$@" >"$dir/says.log"
  grep -qF -- "$text" "$dir/says.log" || { echo "$*: expected \"$text\", got:" >&2; cat "$dir/says.log" >&2; exit 1; }
}

start_dev
dev=${pids[0]}
kv=http://$CONSUL_HTTP_ADDR/v1/kv

# A port that is taken is refused in a line.
code=0
"$lictor" dev --listen "$CONSUL_HTTP_ADDR" >"$dir/taken.log" 2>&1 || code=$?
[ "$code" -ne 0 ]
grep -q "$CONSUL_HTTP_ADDR.*choose another with --listen" "$dir/taken.log"

# examples/create-tablespace, as its README says. Its daemon's tasks are not printed by the other.
mkdir "$dir/try"
for example in create-tablespace existing-layout; do
  sed -e "s|/opt/jobs|$PWD/examples/create-tablespace|" -e "s|/srv|$dir/try|" \
    -e "s|127.0.0.1:8500|$CONSUL_HTTP_ADDR|" "examples/$example/lictor.json" >"$dir/$example.json"
done
LICTOR_STATE_DIR=$dir/run start run.log "$lictor" run --config "$dir/create-tablespace.json"
await_text dev.log 'the printing worker has stopped'
await_text run.log 'leading'
curl -fs -o /dev/null -X PUT "$kv/lictor/default/tasks/42" --data-binary @examples/create-tablespace/task.json
"$lictor" submit CreateTableSpace --para instanceId=db8 --para initSize=64 --para maxSize=100 --para stepSize=8 --wait --wait-timeout 60s
[ -s "$dir/try/tablespaces/db8.db" ]
await_file "$dir/try/tablespaces/db7.db"

# examples/existing-layout, beside the other.
LICTOR_STATE_DIR=$dir/oracle LICTOR_ADMIN_LISTEN=127.0.0.1:0 \
  start oracle.log "$lictor" run --config "$dir/existing-layout.json"
sed 's/db7/db9/' examples/create-tablespace/task.json |
  curl -fs -o /dev/null -X PUT "$kv/oracleTask/task_7" --data-binary @-
await_file "$dir/try/tablespaces/db9.db"
await_absent oracleTask/task_7
curl -fs -o /dev/null "$kv/consumerLeader"

# The commands.
submit() { "$lictor" submit CreateTableSpace --id "$1" --para instanceId="$2"; }
expect_dead "$lictor" submit CreateTableSpace --id bad --para instanceId=../x --wait --wait-timeout 60s
says bad "$lictor" dead list
says 'exit status 64' "$lictor" dead show bad
says bad "$lictor" retry bad
await "the dead letter bad" "$lictor" dead show bad
"$lictor" dead purge bad
"$lictor" pause --reason tests
submit held db10
says held "$lictor" list --state waiting
says held "$lictor" show held
says paused "$lictor" why held
says held "$lictor" cancel held
expect "a task that was withdrawn" "$(curl -s -o /dev/null -w '%{http_code}' "$kv/lictor/default/tasks/held")" 404
"$lictor" resume
"$lictor" leader >/dev/null
await "members without a finding" "$lictor" members
"$lictor" check --config "$dir/create-tablespace.json" >"$dir/check.log" || { cat "$dir/check.log" >&2; exit 1; }
"$lictor" leader --step-down --no-wait >/dev/null
echo '{}' >"$dir/empty.json"
if "$lictor" dev --listen 127.0.0.1:0 --config "$dir/empty.json" 2>"$dir/empty.log"; then exit 1; fi
grep -qF 'says nothing to run' "$dir/empty.log"
"$lictor" bench --tasks 50 >"$dir/bench.log"

# TERM ends it at once, with a blocking query that has long to wait; so does the death of its parent.
curl -s -o /dev/null "$kv/none?index=1000000&wait=10m" &
query=$!
kill -TERM "$dev"
code=0
wait "$dev" || code=$?
unset 'pids[-1]'  # what was started first
expect "the exit code after TERM" "$code" 0
wait "$query" || true
expect "folders left behind" "$(find "$dir" -name 'lictor-dev.*' | wc -l)" 0
start_dev
stop KILL
unreachable() { ! curl -s -o /dev/null "http://$CONSUL_HTTP_ADDR/v1/status/leader"; }
await "the end of the store" unreachable

# With a configuration it offers a type that this runs.
echo '{"queues": [{"executors": {"Greet": {"noop": {}}}}]}' >"$dir/greet.json"
start greet.log "$lictor" dev --listen 127.0.0.1:0 --config "$dir/greet.json"
await_text greet.log '"taskType": "Greet"'
