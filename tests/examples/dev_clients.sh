#!/usr/bin/env bash
# lictor dev as other programs see it: a client library of Python's finds all it looks for.
#
#   dev_clients.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

python=/usr/bin/python3  # Debian's, for which its libraries are
if ! "$python" -c 'import consul' 2>"$dir/import.log"; then
  echo "python3-consul is not installed: tests/install-deps.sh test"
  exit 77
fi
start_dev
timeout 300 "$python" tests/examples/dev_clients.py "${CONSUL_HTTP_ADDR##*:}"
