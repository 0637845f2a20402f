#!/usr/bin/env bash
# lictor dev: tasks by curl come to their end without a Consul, examples/outbox works unchanged, and
# Ctrl-C ends all of it.
#
#   dev.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

lictor=$build/src/lictor
export LICTOR_CONFIG= # empty: not set
start_dev
kv=$CONSUL_HTTP_ADDR/v1/kv

# The greeting gives the address of the web page.
page=$(sed -n 's/^  page    //p' "$dir/dev.log")
curl -fs "$page/" >"$dir/page.html"
grep -q "<title>lictor" "$dir/page.html"
manual=$(sed -n 's/^  manual  \([^,]*\),.*/\1/p' "$dir/dev.log")
curl -fs "$manual" >"$dir/manual.html"
grep -q "<h1>The manual" "$dir/manual.html"

grep -qxF "  export CONSUL_HTTP_ADDR=http://$CONSUL_HTTP_ADDR" "$dir/dev.log"

# As the greeting says, and with a body too long for a form.
padding=$(printf '%20000s' '' | tr ' ' x)
expect "the write" "$(curl -fs -X PUT "$kv/lictor/default/tasks/1" -d '{"taskType": "Hello", "taskPara": {"to": "you"}}')" true
await_text dev.log 'task 1: Hello {"to":"you"}'
await_absent lictor/default/tasks/1
curl -fs -o /dev/null -X PUT "$kv/lictor/default/tasks/2" -d "{\"taskType\": \"Long\", \"taskPara\": \"$padding\"}"
await_text dev.log 'task 2: Long "xxx'
await_absent lictor/default/tasks/2

# Commands find it as they find a Consul.
"$lictor" submit Waited --wait --wait-timeout 60s --id 3 >"$dir/submit.log"
"$lictor" leader >"$dir/leader.log"

# A blocking query is woken by a write.
curl -fs -o /dev/null -X PUT "$kv/app/watched" -d first
index=$(curl -fs -D - -o /dev/null "$kv/app/watched" | sed -n 's/^X-Consul-Index: *\([0-9]*\).*/\1/pI')
curl -fs "$kv/app/watched?raw&index=$index&wait=5m" >"$dir/watched" &
watch=$!
curl -fs -o /dev/null -X PUT "$kv/app/watched" -d changed
wait "$watch"
expect "what the watch saw" "$(cat "$dir/watched")" changed

# The outbox, with the tasks kept by a pause, then run.
"$lictor" pause
id=$(examples/outbox/order.sh 7 0 paid)
expect "the order" "$(curl -fs "$kv/orders/7?raw")" '{"state": "paid"}'
code=0
examples/outbox/order.sh 7 0 shipped 2>"$dir/refused.log" || code=$?
expect "the exit code of a change that is late" "$code" 1
grep -q "index is stale" "$dir/refused.log"
"$lictor" resume
await_text dev.log "task $id: OrderChanged"
await_absent "lictor/default/tasks/$id"

kill -INT -- "-${pids[0]}"
code=0
wait "${pids[0]}" || code=$?
pids=()
expect "the exit code after Ctrl-C" "$code" 0
if curl -s -o /dev/null "$kv/up"; then echo "the store outlived Ctrl-C" >&2; exit 1; fi
expect "folders left behind" "$(find "$dir" -name 'lictor-dev.*' | wc -l)" 0
