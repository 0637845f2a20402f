#!/usr/bin/env bash
# Has the script of examples/commit change a figure in a real Consul, once for each task.
#
#   commit.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

lictor=$build/src/lictor
start_consul
sed -e "s|/opt/jobs/book-stock|$PWD/examples/commit/book-stock|" \
  -e "s|127.0.0.1:8500|$CONSUL_HTTP_ADDR|" examples/commit/lictor.json >"$dir/lictor.json"
start daemon.log "$lictor" run --config "$dir/lictor.json"

stock() { curl -fs "http://$CONSUL_HTTP_ADDR/v1/kv/stock/apples?raw"; }
book() { "$lictor" submit BookStock --para item=apples --para quantity="$1" --wait --wait-timeout 60s; }
book 12
[ "$(stock)" = 12 ]
book -5
[ "$(stock)" = 7 ]
expect_dead book -8
grep -q "exit status 65" "$dir/dead.log"
[ "$(stock)" = 7 ]
# What the attempts left is taken away with them.
[ -z "$(find "$dir/state/scratch" -type f)" ]
