#!/usr/bin/env bash
# Each folder of src includes only what it may know; the core and the schedules include nothing of
# the outside world.
#
#   layers.sh [ROOT]   ROOT: a checkout (this one); exits 1 and names each forbidden include
set -euo pipefail
cd -- "${1:-$(dirname -- "${BASH_SOURCE[0]}")/../..}"

# What each folder may include, besides itself. `lictor` is include/lictor.
declare -A may=(
  [base]="lictor"
  [schedule]="base lictor"
  [core]="schedule base lictor"
  [wire]="core schedule base lictor"
  [net]="base lictor"
  [exec]="base lictor"
  [httpd]="base lictor"
  [dev]="httpd base lictor"
  [client]="wire net core schedule base lictor"
  [runtime]="core wire net exec base lictor"
  [admin]="manual client runtime wire exec httpd core base lictor"
  [cli]="client wire net exec core schedule base lictor"
  [manual]="base lictor"
  [package]="app manual base lictor"
  [app]="admin cli client core dev exec httpd manual net runtime wire base lictor"
)
# Threads, clocks, sockets, JSON and logs do not belong into decisions that a simulation replays.
pure_bans='<(thread|mutex|shared_mutex|condition_variable|future|atomic|iostream|fstream|filesystem|random|unistd\.h|time\.h|ctime|sys/.*|poll\.h|fcntl\.h|curl/.*|nlohmann/.*|simdjson.*|spdlog/.*|microhttpd\.h)>|"base/clock\.h"'

bad=0
tell() { echo "$1" >&2; bad=1; }
for folder in src/*/; do
  name=$(basename "$folder")
  [ -n "${may[$name]-}" ] || { tell "$folder: not in the table of tests/style/layers.sh"; continue; }
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
