#!/usr/bin/env bash
# README.md's first use, as it stands there: "lictor dev" with its tasks, then the first real queue
# with its configuration, submitted to by curl, by Python and by command. Only Consul's port and the
# path of the job are others.
#
#   readme.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

lictor=$build/src/lictor
readme=$PWD/README.md
PATH=$build/src:$PATH

# snippet LANGUAGE TEXT: the first block of this language that has TEXT in it.
snippet() {
  awk -v language="$1" -v text="$2" '
    !inside && $0 == "```" language { inside = 1; block = ""; next }
    inside && $0 == "```" { inside = 0; if (index(block, text)) { printf "%s", block; exit } next }
    inside { block = block $0 "\n" }' "$readme" |
    sed "s|127.0.0.1:8500|$CONSUL_HTTP_ADDR|; s|/opt/jobs/|$PWD/examples/create-tablespace/|; s|/srv/|$dir/|" |
    grep . || { echo "README.md has no block of $1 with \"$2\"" >&2; exit 1; }
}

start_dev
snippet sh "lictor submit Hello" >"$dir/first.sh"
bash -eu "$dir/first.sh" >"$dir/first.log" 2>&1
await_absent lictor/default/tasks/1
grep -q 'task 1: Hello {"to":"you"}' "$dir/dev.log"
stop

snippet jsonc CreateTableSpace >"$dir/lictor.json"
start_dev --config "$dir/lictor.json"
snippet sh '"taskId": "42"' >"$dir/curl.sh"
expect "the answer to curl" "$(bash -eu "$dir/curl.sh")" true
await_absent lictor/default/tasks/42
expect "the size of db7" "$(stat -c %s "$dir/tablespaces/db7.db")" 8192000
snippet python urllib >"$dir/submit.py"
python3 "$dir/submit.py"
command=$(grep -o '`lictor submit CreateTableSpace [^`]*`' "$readme" | tr -d '`')
bash -euc "$command"
[ -e "$dir/tablespaces/db9.db" ]
await_file "$dir/tablespaces/db8.db"

# What it says of a task that failed for good.
"$lictor" submit CreateTableSpace --id bad --para instanceId=../db7 --wait --wait-timeout 60s 2>/dev/null && exit 1
grep -q bad <("$lictor" dead list)
"$lictor" why bad >/dev/null
grep -q 'taskPara.instanceId' <("$lictor" logs bad)
"$lictor" retry bad >/dev/null
"$lictor" list >/dev/null
"$lictor" leader >/dev/null
"$lictor" members >/dev/null

# The manual's producers, against the same store; the task that they write is done by a worker.
stop
start_dev
readme=$PWD/src/manual/producers.md
snippet python 'def wait' >"$dir/producer.py"
expect "the end that Python waits for" "$(python3 "$dir/producer.py")" True
snippet js randomUUID >"$dir/producer.mjs"
if type -P node >/dev/null; then
  id=$(node "$dir/producer.mjs")
  await_text dev.log "task $id: Notify"
fi
snippet go 'package main' >"$dir/producer.go"
if type -P go >/dev/null; then
  # Go's own library is compiled once a build folder: that takes a minute.
  (cd "$dir" && GOFLAGS=-mod=mod GOCACHE=$build/tests/go go run producer.go)
  await_text dev.log "task go-1: Notify"
fi

# The manual's jobs: they end as it says, with and without their parameter; one starts the next.
stop
readme=$PWD/src/manual/jobs.md
snippet sh 'notify $LICTOR_PARA_to' >"$dir/job.sh"
snippet python 'json.load(sys.stdin)' | sed '1i #!/usr/bin/env python3' >"$dir/job.py"
readme=$PWD/src/manual/recipes.md
snippet sh '"$LICTOR_COMMIT"' >"$dir/next.sh"
chmod +x "$dir/job.sh" "$dir/job.py" "$dir/next.sh"
cat >"$dir/jobs.json" <<CONFIG
{"queues": [{"executors": {
  "Shell": {"exec": ["$dir/job.sh"]}, "Python": {"exec": ["$dir/job.py"]},
  "First": {"exec": ["$dir/next.sh"]}, "Mail": {"noop": {}}}}]}
CONFIG
start_dev --config "$dir/jobs.json"
for type in Shell Python; do
  "$lictor" submit "$type" --id "good-$type" --para to=ops --wait --wait-timeout 60s
  grep -q "notify ops" <("$lictor" logs "good-$type")
  "$lictor" submit "$type" --id "bad-$type" --wait --wait-timeout 60s 2>/dev/null && exit 1
  grep -q permanent <("$lictor" dead show "bad-$type")
done
"$lictor" pause >/dev/null
"$lictor" submit First --id one >/dev/null
"$lictor" submit Mail --id one-mail --in 1h >/dev/null  # its key is taken, so "cas" 0 fails the first one
"$lictor" resume >/dev/null
refused() { grep -q "its writes were refused" <("$lictor" show one); }
await "a refusal of what one has to write" refused
"$lictor" cancel one-mail >/dev/null
await_absent lictor/default/tasks/one
await_absent lictor/default/tasks/one-mail
