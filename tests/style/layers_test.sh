#!/usr/bin/env bash
# layers.sh finds each forbidden include that is planted, and nothing in the tree as it is.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
tests/style/layers.sh

copy=$(mktemp -d)
trap 'rm -rf -- "$copy"' EXIT
cp -r CONTRIBUTING.md src include "$copy"
# planted FILE INCLUDE: found with its file and line.
planted() {
  cp "$1" "$copy/$1"
  sed -i "1i #include $2" "$copy/$1"
  if tests/style/layers.sh "$copy" 2>"$copy/said"; then
    echo "$1 includes $2, and layers.sh does not tell" >&2
    exit 1
  fi
  grep -qF "$1:1:" "$copy/said" || { cat "$copy/said" >&2; exit 1; }
  cp "$1" "$copy/$1"
}
planted src/core/queue.cpp '"wire/record.h"'
planted src/core/queue.h '<thread>'
planted src/core/queue.h '<nlohmann/json.hpp>'
planted src/core/queue.cpp '"base/clock.h"'
planted src/core/queue.cpp '"../net/transport.h"'
planted src/schedule/ticks.cpp '"core/task.h"'
planted src/schedule/zone.cpp '<mutex>'
planted src/wire/record.cpp '"net/transport.h"'
planted src/net/curl_transport.cpp '"core/task.h"'
planted src/exec/spawn.cpp '"core/task.h"'
planted src/core/queue.cpp '"base/json_text.h"'
planted src/base/text.cpp '"exec/runner.h"'
planted src/client/store.cpp '"runtime/loop.h"'
planted src/cli/list.cpp '"app/config.h"'
planted src/dev/model.cpp '"wire/record.h"'
planted src/httpd/server.cpp '"exec/runner.h"'
planted src/runtime/loop.cpp '"app/config.h"'
planted include/lictor/client.h '"core/task.h"'
