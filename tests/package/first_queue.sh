#!/usr/bin/env bash
# Prints a script that runs every command of README.md's "A first real queue" on a host with lictor
# and Consul; the last line that it prints is "worked it".
#
#   first_queue.sh README
set -euo pipefail

commands=$("$(dirname -- "${BASH_SOURCE[0]}")/readme_commands.sh" "$1" "A first real queue on two hosts")

cat <<'END'
set -euxo pipefail
until_true() { for _ in $(seq 1800); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; false; }
type -P sudo || sudo() { "$@"; }
# The third way to submit takes a Python, which a small Debian has not.
type -P python3 || python3() { cat; }
systemctl() { command systemctl "$@"; until_true lictor leader; until_true lictor members; }
lictor() {
  [ "$*" = top ] || { command lictor "$@"; return; }
  # On a terminal; the key comes once the screen says what it does.
  { until_true grep -qs "q quit" /root/top.out; printf q; } |
    TERM=xterm script -qfec "lictor top" /root/top.out >/dev/null
}
END
sed '/^lictor top/,$d' <<<"$commands"
cat <<'END'
sized() { [ "$(stat -c %s "/srv/tablespaces/$1.db")" = 8192000 ]; }
until_true sized db7
sized db9
# "What failed for good": another task 42.
lictor submit CreateTableSpace --id 42 --para instanceId=../db7 --wait && exit 1
END
sed -n '/^lictor top/,$p' <<<"$commands" | grep . || { echo "no block of commands begins with lictor top" >&2; exit 1; }
echo 'echo worked it'
