#!/usr/bin/env bash
# lictor dev as the npm client "consul" sees it, and the same of a real agent. Needs no network: the
# client is in $LICTOR_NODE_MODULES, where tests/install-deps.sh puts it.
#
#   dev_node_client.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

modules=${LICTOR_NODE_MODULES:-${XDG_CACHE_HOME:-$HOME/.cache}/lictor/npm}
if ! type -P node >/dev/null || [ ! -d "$modules/node_modules/consul" ]; then
  echo "no node, or no npm client \"consul\" in $modules: tests/install-deps.sh test"
  exit 77
fi
start_consul
timeout 100 node tests/examples/dev_client.mjs "${CONSUL_HTTP_ADDR##*:}" "$modules"
start_dev --no-worker
timeout 100 node tests/examples/dev_client.mjs "${CONSUL_HTTP_ADDR##*:}" "$modules"
