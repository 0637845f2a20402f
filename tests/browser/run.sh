#!/usr/bin/env bash
# The web page in a real browser, against real daemons and a real Consul.
#
#   run.sh BUILD_FOLDER    exits 77 where it cannot run, and says why
#
# The packages of package-lock.json go to BUILD_FOLDER/tests/browser.
set -euo pipefail
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
build=$1

skip() { echo "skipped: $*"; exit 77; }
command -v node >/dev/null || skip "no node (Debian's package nodejs)"
command -v npm >/dev/null || skip "no npm (Debian's package npm)"
browser=$(command -v chromium || true)
[ -n "$browser" ] || skip "no chromium (Debian's package of that name)"

packages=$build/tests/browser
mkdir -p "$packages"
if ! cmp -s "$here/package-lock.json" "$packages/package-lock.json" || [ ! -d "$packages/node_modules" ]; then
  cp "$here/package.json" "$packages/"
  cp "$here/package-lock.json" "$packages/package-lock.json.new"
  mv "$packages/package-lock.json.new" "$packages/package-lock.json"
  (cd "$packages" && npm ci --ignore-scripts --no-audit --no-fund >&2) ||
    { rm -f "$packages/package-lock.json"; exit 1; }
fi

export LICTOR_BROWSER=$browser LICTOR_PACKAGES=$packages LICTOR_COMMAND=$build/src/lictor
export CONSUL_BIN=${CONSUL_BIN:-$("$here/../../consul/get-consul.sh")}
exec node --test "$here"/page.test.mjs "$here"/on_call.test.mjs
