#!/usr/bin/env bash
# examples/schedule against "lictor dev": a schedule written by curl makes a backup at each tick.
#
#   schedule.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

lictor=$build/src/lictor
mkdir "$dir/data" "$dir/to"
echo precious >"$dir/data/file"
sed "s|/opt/jobs/backup|$PWD/examples/schedule/backup|" examples/schedule/lictor.json >"$dir/lictor.json"
start_dev --config "$dir/lictor.json"
add() { examples/schedule/add.sh "$1" "$2" "$dir/data" "$dir/to"; }
await "a leader" "$lictor" leader

add nightly '"cron": "30 2 * * *", "timezone": "Europe/Rome"'
code=0
add nightly '"every": "1h"' 2>"$dir/refused.log" || code=$?
expect "the exit code for a name that exists" "$code" 1
grep -q "^nightly .*30 2 \* \* \*, Europe/Rome .* active" <("$lictor" schedule list)
expect "the number of ticks" "$("$lictor" schedule next nightly -n 3 | grep -c 'T02:30:00+0[12]:00')" 3
"$lictor" check >"$dir/check.log" || true # nothing else is looked at
expect "findings about schedules" "$(sed -n '/makes no tasks\|without an executor/p' "$dir/check.log")" ""

# One now: the file is named after its tick, and holds the folder.
id=$("$lictor" schedule run nightly)
backups() { compgen -G "$dir/to/data-*.tar.gz"; }
await "the backup of $id" backups
file=$(backups)
tick=${file#"$dir/to/data-"}
expect "the tick that the file is named after" "$(tr -d ':-' <<<"${tick%.tar.gz}")" "${id#nightly/}"
expect "the content of the backup" "$(tar -xzOf "$file" ./file)" precious
rm "$file"

# Each tick makes one.
add demo '"every": "2s"'
three_backups() { [ "$(backups | wc -l)" -ge 3 ]; }
await "three ticks' backups" three_backups
"$lictor" schedule remove demo >/dev/null
expect "backups of a second without a tick" \
  "$(find "$dir/to" -name 'data-*[13579]Z.tar.gz' | wc -l)" 0
