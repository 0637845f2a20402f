#!/usr/bin/env bash
# Each folder of src includes only what it may know; the core and the schedules include nothing of
# the outside world.
#
#   layers.sh [ROOT]   ROOT: a checkout (this one); exits 1 and names each forbidden include
set -euo pipefail
cd -- "${1:-$(dirname -- "${BASH_SOURCE[0]}")/../..}"

# What each folder may include, besides itself and include/lictor: the map in CONTRIBUTING.md.
declare -A may
while IFS='|' read -r _ folder _ names _; do
  folder=${folder//[\` ]/}
  may[${folder#src/}]="${names//\`/} lictor"
done < <(grep '^| `src/' CONTRIBUTING.md)
# Threads, clocks, sockets, JSON and logs do not belong into decisions that a simulation replays.
pure_bans='<(thread|mutex|shared_mutex|condition_variable|future|atomic|iostream|fstream|filesystem|random|unistd\.h|time\.h|ctime|sys/.*|poll\.h|fcntl\.h|curl/.*|nlohmann/.*|simdjson.*|spdlog/.*|microhttpd\.h)>|"base/(clock|json_text|curl_request)\.h"'

bad=0
tell() { echo "$1" >&2; bad=1; }
for folder in src/*/; do
  name=$(basename "$folder")
  [ -n "${may[$name]-}" ] || { tell "$folder: not in the map of CONTRIBUTING.md"; continue; }
  grep -qF "\`src/$name\`" src/manual/internals.md || tell "$folder: not in src/manual/internals.md"
  while IFS=: read -r file line text; do
    [[ $text =~ ^[[:space:]]*#[[:space:]]*include[[:space:]]*[\"\<](\.\./)*([a-z_]+)/ ]] || continue
    to=${BASH_REMATCH[2]}
    [ "$to" = "$name" ] && continue
    [ "$to" = lictor ] || [ -d "src/$to" ] || continue  # a system header
    [[ " ${may[$name]} " == *" $to "* ]] ||
      tell "$file:$line: src/$name may not include $to/ (it may: ${may[$name]})"
  done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include' "$folder" --include='*.h' --include='*.cpp')
done
while IFS=: read -r file line text; do
  tell "$file:$line: src/core and src/schedule are pure and may not have ${text#*include }"
done < <(grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*($pure_bans)" src/core src/schedule)
while IFS=: read -r file line text; do
  tell "$file:$line: an installed header may not include ${text#*include } of src"
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' include | grep -v '"lictor/')
exit "$bad"
