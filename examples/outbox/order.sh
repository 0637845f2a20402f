#!/usr/bin/env bash
# Changes an order and writes the task that follows from it, in one Consul transaction: either both
# are there or neither. That is what an outbox table is for, without one.
#
#   order.sh ORDER INDEX STATE
#
# INDEX is the ModifyIndex of orders/ORDER that the change goes out from; 0: it is new. Exit code 1:
# somebody else has changed the order meanwhile, and no task was written.
set -euo pipefail

order=$1 index=$2 state=$3
consul=${CONSUL_HTTP_ADDR:-127.0.0.1:8500}
case "$consul" in http://* | https://*) ;; *) consul=http://$consul ;; esac
token=()
if [ -n "${CONSUL_HTTP_TOKEN-}" ]; then token=(-H "X-Consul-Token: $CONSUL_HTTP_TOKEN"); fi

base64_of() { printf '%s' "$1" | base64 -w0; }
value=$(base64_of "{\"state\": \"$state\"}")
# One task a change: the index makes its id, so that sending the same change again writes no second.
id=order-$order-$index
task=$(base64_of "{\"taskId\": \"$id\", \"taskTime\": \"$(date +%s)\", \"taskType\": \"OrderChanged\",
  \"taskPara\": {\"order\": \"$order\", \"state\": \"$state\"}}")

answer=$(mktemp)
trap 'rm -f -- "$answer"' EXIT
status=$(curl -sS -o "$answer" -w '%{http_code}' "${token[@]}" -X PUT "$consul/v1/txn" -d "[
  {\"KV\": {\"Verb\": \"cas\", \"Key\": \"orders/$order\", \"Index\": $index, \"Value\": \"$value\"}},
  {\"KV\": {\"Verb\": \"cas\", \"Key\": \"lictor/default/tasks/$id\", \"Index\": 0, \"Value\": \"$task\"}}]")
if [ "$status" = 200 ]; then
  echo "$id"
  exit 0
fi
cat -- "$answer" >&2
echo >&2
[ "$status" = 409 ] || exit 2
exit 1
