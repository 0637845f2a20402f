#!/usr/bin/env bash
# examples/outbox against a real Consul: the data and the task are written both or not at all.
#
#   outbox.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

start_consul

kv() { curl -fs "http://$CONSUL_HTTP_ADDR/v1/kv/$1?raw"; }
tasks() { curl -s "http://$CONSUL_HTTP_ADDR/v1/kv/lictor/default/tasks/?keys" | tr -d '[] ' | tr ',' '\n' | grep -c . || true; }

id=$(examples/outbox/order.sh 7 0 paid)
expect "the order" "$(kv orders/7)" '{"state": "paid"}'
expect "the task's type" "$(kv "lictor/default/tasks/$id" | grep -o '"taskType": "[A-Za-z]*"')" '"taskType": "OrderChanged"'

# The same change again, and one that goes out from what is no longer so: nothing is written.
for state in paid shipped; do
  code=0
  examples/outbox/order.sh 7 0 "$state" 2>"$dir/refused.log" || code=$?
  expect "the exit code of a change that is late" "$code" 1
  grep -q "index is stale" "$dir/refused.log"
done
expect "the order" "$(kv orders/7)" '{"state": "paid"}'
expect "the number of tasks" "$(tasks)" 1

# The order may be changed, but a task of that id is in the way: the order stays as it is too.
curl -fs -o /dev/null -X PUT "http://$CONSUL_HTTP_ADDR/v1/kv/lictor/default/tasks/order-8-0" -d '{"taskType": "Other"}'
if examples/outbox/order.sh 8 0 paid 2>/dev/null; then
  echo "an existing task was overwritten" >&2
  exit 1
fi
if kv orders/8; then
  echo "the order was written without its task" >&2
  exit 1
fi
