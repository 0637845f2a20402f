#!/usr/bin/env bash
# Has the workers of examples/workers make tablespaces for a real daemon, in each language.
#
#   workers.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

lictor=$build/src/lictor
jobs=$dir/jobs
cp -r examples/workers "$jobs"
cp examples/create-tablespace/create-tablespace "$jobs"
(cd "$jobs" && GOFLAGS='' GOTOOLCHAIN=local CGO_ENABLED=0 GOCACHE=${GOCACHE:-$dir/go} go build -o create_tablespace_go . 2>&1)

start_consul
for language in py mjs sh go; do
  program=$jobs/create_tablespace.$language
  [ "$language" != go ] || program=$jobs/create_tablespace_go
  folder=$dir/tablespaces-$language
  sed -e "s|/opt/jobs/create_tablespace.py|$program|" -e "s|/srv/tablespaces|$folder|" \
    -e "s|127.0.0.1:8500|$CONSUL_HTTP_ADDR|" -e 's|"concurrency": 4,|"concurrency": 4, "history": {"keep": 100},|' \
    "$jobs/lictor.json" >"$dir/lictor.json"
  start daemon.log "$lictor" run --config "$dir/lictor.json"
  create() { # create ID SIZE [INSTANCE]
    "$lictor" submit CreateTableSpace --id "$language-$1" --para instanceId="${3-$1}" --para initSize="$2" \
      --para maxSize=9000 --para stepSize=100 --wait --wait-timeout 60s
  }
  create one 80
  create two 160
  expect "$language: size" "$(stat -c %s "$folder/one.db")" 81920
  expect "$language: size" "$(stat -c %s "$folder/two.db")" 163840
  create again 80 one
  "$lictor" show "$language-again" >"$dir/show.log"
  grep -q '"created": false' "$dir/show.log"
  expect_dead create worse 88 one
  expect_dead create nonsense 80 'a b'
  stop
  expect "$language: end of the daemon" "$code" 0
done
