#!/usr/bin/env bash
# Installs lictor from BUILD into a folder of its own, builds examples/producer against it with
# find_package(lictor), and has it write tasks that a daemon carries out.
#
#   producer.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

install_lictor
export CXXFLAGS="-Wall -Wextra -Werror"
build_project examples/producer

start_consul
cat >"$dir/lictor.json" <<END
{"state_dir": "$dir/state", "admin": {"listen": []}, "queues": [{"executors": {
  "Greet": {"exec": ["/bin/sh", "-c", "[ \"\$LICTOR_PARA_name\" != nobody ] || exit 65"]}}}]}
END
start daemon.log "$dir/prefix/bin/lictor" run --config "$dir/lictor.json"

timeout 120 "$dir/build/producer" reader >"$dir/producer.log"
grep -q "^submitted " "$dir/producer.log"
grep -q "^done" "$dir/producer.log"
if timeout 120 "$dir/build/producer" nobody 2>"$dir/dead.log"; then
  echo "a task that failed for good was done" >&2
  exit 1
fi
grep -q "^dead: " "$dir/dead.log"
