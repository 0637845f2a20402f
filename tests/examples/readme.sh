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
gone() {
  until ! curl -fs -o /dev/null "$kv/$1"; do kill -0 "${pids[0]}"; sleep 0.1; done
}

start_dev
kv=$CONSUL_HTTP_ADDR/v1/kv
snippet sh "lictor submit Hello" >"$dir/first.sh"
bash -eu "$dir/first.sh" >"$dir/first.log" 2>&1
gone lictor/default/tasks/1
grep -q 'task 1: Hello {"to":"you"}' "$dir/dev.log"
kill -TERM "${pids[0]}"
wait "${pids[0]}" || true
pids=()

snippet jsonc CreateTableSpace >"$dir/lictor.json"
start_dev --config "$dir/lictor.json"
kv=$CONSUL_HTTP_ADDR/v1/kv
snippet sh '"taskId": "42"' >"$dir/curl.sh"
expect "the answer to curl" "$(bash -eu "$dir/curl.sh")" true
gone lictor/default/tasks/42
expect "the size of db7" "$(stat -c %s "$dir/tablespaces/db7.db")" 8192000
snippet python urllib >"$dir/submit.py"
python3 "$dir/submit.py"
command=$(grep -o '`lictor submit CreateTableSpace [^`]*`' "$readme" | tr -d '`')
bash -euc "$command"
[ -e "$dir/tablespaces/db9.db" ]
until [ -e "$dir/tablespaces/db8.db" ]; do kill -0 "${pids[0]}"; sleep 0.1; done

# What it says of a task that failed for good.
"$lictor" submit CreateTableSpace --id bad --para instanceId=../db7 --wait 2>/dev/null && exit 1
"$lictor" dead list | grep -q bad
"$lictor" why bad >/dev/null
"$lictor" logs bad | grep -q 'taskPara.instanceId'
"$lictor" retry bad >/dev/null
"$lictor" list >/dev/null
"$lictor" leader >/dev/null
"$lictor" members >/dev/null

# The manual's producers, against the same store; the task that they write is done by a worker.
kill -TERM "${pids[0]}"
wait "${pids[0]}" || true
pids=()
start_dev
kv=$CONSUL_HTTP_ADDR/v1/kv
readme=$PWD/src/manual/producers.md
snippet python 'def wait' >"$dir/producer.py"
expect "the end that Python waits for" "$(python3 "$dir/producer.py")" True
snippet js randomUUID >"$dir/producer.mjs"
if type -P node >/dev/null; then
  id=$(node "$dir/producer.mjs")
  until grep -q "task $id: Notify" "$dir/dev.log"; do kill -0 "${pids[0]}"; sleep 0.1; done
fi
snippet go 'package main' >"$dir/producer.go"
if type -P go >/dev/null; then
  (cd "$dir" && GOFLAGS=-mod=mod GOCACHE=$dir/go go run producer.go)
  until grep -q "task go-1: Notify" "$dir/dev.log"; do kill -0 "${pids[0]}"; sleep 0.1; done
fi

# The manual's jobs: they end as it says, with and without their parameter; one starts the next.
kill -TERM "${pids[0]}"
wait "${pids[0]}" || true
pids=()
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
kv=$CONSUL_HTTP_ADDR/v1/kv
for type in Shell Python; do
  "$lictor" submit "$type" --id "good-$type" --para to=ops --wait
  "$lictor" logs "good-$type" | grep -q "notify ops"
  "$lictor" submit "$type" --id "bad-$type" --wait 2>/dev/null && exit 1
  "$lictor" dead show "bad-$type" | grep -q permanent
done
"$lictor" pause >/dev/null
"$lictor" submit First --id one >/dev/null
"$lictor" submit Mail --id one-mail --in 1h >/dev/null  # its key is taken, so "cas" 0 fails the first one
"$lictor" resume >/dev/null
until "$lictor" show one 2>/dev/null | grep -q "its writes were refused"; do kill -0 "${pids[0]}"; sleep 0.1; done
"$lictor" cancel one-mail >/dev/null
gone lictor/default/tasks/one
gone lictor/default/tasks/one-mail
