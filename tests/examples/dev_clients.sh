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
unset CONSUL_HTTP_TOKEN CONSUL_HTTP_TOKEN_FILE CONSUL_HTTP_SSL LICTOR_CONFIG
TMPDIR=$dir start dev.log setsid "$build/src/lictor" dev --listen 127.0.0.1:0
until grep -q "  store   " "$dir/dev.log"; do kill -0 "${pids[0]}"; sleep 0.1; done
address=$(sed -n 's/^  store *//p' "$dir/dev.log")
timeout 300 "$python" tests/examples/dev_clients.py "${address##*:}"
