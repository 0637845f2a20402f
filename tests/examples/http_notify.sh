#!/usr/bin/env bash
# Has lictor's command post tasks from a real Consul to the receiver of examples/http-notify.
#
#   http_notify.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

lictor=$build/src/lictor
start receiver.log python3 examples/http-notify/receiver.py 0
await_text receiver.log "listening on 127.0.0.1:"
port=$(sed -n 's/^listening on 127.0.0.1://p' "$dir/receiver.log")
sed "s/127.0.0.1:9000/127.0.0.1:$port/" examples/http-notify/lictor.json >"$dir/lictor.json"

start_consul
start daemon.log "$lictor" run --config "$dir/lictor.json"

"$lictor" submit Notify --id "a b" --para to=alice --wait --wait-timeout 60s
grep -q "^notified alice (task a b, attempt 1)$" "$dir/receiver.log"
"$lictor" submit Notify --para to=bob --para busy=yes --wait --wait-timeout 60s
grep -q "^notified bob (task .*, attempt 2)$" "$dir/receiver.log"
expect_dead "$lictor" submit Notify --wait --wait-timeout 60s
grep -q "POST http://127.0.0.1:$port/notify: status 422" "$dir/dead.log"
