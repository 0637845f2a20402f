#!/usr/bin/env bash
# Tries executors with "lictor try", where there is no Consul and no daemon.
#
#   try.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

export TMPDIR=$dir/tmp
mkdir "$TMPDIR"
cat >"$dir/lictor.json" <<'END'
{
  "consul": {"addresses": ["http://127.0.0.1:1"]},
  "queues": [{"executors": {
    "Ok": {"exec": ["/bin/sh", "-c", "echo hello $LICTOR_PARA_name; echo '{\"x\": 1}' >$LICTOR_RESULT; echo '[{\"key\": \"app/x\", \"value\": \"1\"}]' >$LICTOR_COMMIT"]},
    "Bad": {"exec": ["/bin/sh", "-c", "echo oops >&2; exit 3"], "max_attempts": 1},
    "ForGood": {"exec": ["/bin/sh", "-c", "exit 65"]},
    "Slow": {"exec": ["/bin/sh", "-c", "echo begun; sleep 1000 & echo $! >$PID_FILE; wait"], "env": {"PID_FILE": "PLACE/pid"}},
    "Forbidden": {"exec": ["/bin/sh", "-c", "echo '[{\"key\": \"lictor/default/leader\", \"value\": \"1\"}]' >$LICTOR_COMMIT"]},
    "Many": {"exec": ["/bin/sh", "-c", "seq 200 | sed 's|.*|{\"key\": \"app/&\", \"value\": \"\"}|' | sed '1s/^/[/; $s/$/]/; $!s/$/,/' >$LICTOR_COMMIT"], "max_attempts": 1},
    "Refused": {"http": "http://127.0.0.1:1/"},
    "Deep": {"exec": ["/bin/sh", "-c", "(head -c 200000 /dev/zero | tr '\\0' '['; head -c 200000 /dev/zero | tr '\\0' ']') >$LICTOR_RESULT"]},
    "Noop": {"noop": {}},
    "Missing": {"exec": ["/opt/none/job"], "cwd": "/opt/none", "user": "lictor-nobody"},
    "One": {"worker": ["PLACE/worker.sh"]},
    "Several": {"worker": ["PLACE/worker.sh"], "tasks_per_process": 8},
    "NotReady": {"worker": ["/bin/sh", "-c", "echo no database; echo 'at line 7'; exit 3"], "tasks_per_process": 8}
  }}]
}
END
cat >"$dir/worker.sh" <<'END'
#!/usr/bin/env bash
echo "starts"
printf '{"ready": {"protocol": 1}}\n' >&3
read -r line
echo "runs"
attempt=${line#*'"attempt":"'} attempt=${attempt%%\"*}
case $line in
  *'"later"'*) printf '{"failed": {"attempt": "%s", "error": "no", "retryIn": "25h"}}\n' "$attempt" >&3 ;;
  *) printf '{"done": {"attempt": "%s", "output": "its own\\n"}}\n' "$attempt" >&3 ;;
esac
read -r line
echo "ends"
END
chmod +x "$dir/worker.sh"
sed -i "s|PLACE|$dir|" "$dir/lictor.json"

# try CODE ARGUMENT...: its output goes to $dir/out.log and $dir/err.log
try() {
  local wanted=$1 code=0
  shift
  "$build/src/lictor" try "$@" --config "$dir/lictor.json" >"$dir/out.log" 2>"$dir/err.log" || code=$?
  expect "exit code of try $*: $(cat "$dir/err.log")" "$code" "$wanted"
}
try 0 Ok --para name=reader
expect "output" "$(cat "$dir/out.log")" "hello reader"
grep -q '^done (it took ' "$dir/err.log"
grep -q '"x": 1' "$dir/err.log"
grep -q '"key": "app/x"' "$dir/err.log"
try 0 Ok --json
grep -q '"output": "hello\\n"' "$dir/out.log"
try 0 Noop
try 0 Deep --json
grep -q '"result": null' "$dir/out.log"
grep -q '"result_fault": ".*512' "$dir/out.log"
try 1 Bad
grep -q "since max_attempts is 1: exit status 3: oops (" "$dir/err.log"
try 1 ForGood
grep -q "^failed for good, a dead letter at once: exit status 65 (" "$dir/err.log"
try 1 Forbidden
grep -q "KV writes cannot be made: .*lictor/default/leader is a leader's lock" "$dir/err.log"
try 1 Many
grep -q "its 200 writes do not fit into the transaction" "$dir/err.log"
try 1 Refused
grep -q "^not started on this host; the task would wait: " "$dir/err.log"
# All that a worker prints, also with several tasks at a time: of a trial it can only be the one task's.
for type in One Several; do
  try 0 $type
  expect "output of $type" "$(sort "$dir/out.log" | tr '\n' ' ')" "ends its own runs starts "
done
try 1 NotReady
expect "output" "$(cat "$dir/out.log")" $'no database\nat line 7'
grep -q "exit status 3" "$dir/err.log"
try 1 One --para when=later
grep -q "not before 24h" "$dir/err.log"
# What only other executors name need not be there.
try 1 Missing
grep -q "executors.Missing.cwd.*No such file" "$dir/err.log"
try 3 Okk
grep -q 'did you mean "Ok"?' "$dir/err.log"
try 2 Ok --timeout soon

# What runs too long is ended, with all that it started; so is what Ctrl-C interrupts.
try 1 Slow --timeout 1s
expect "output" "$(cat "$dir/out.log")" "begun"
grep -q "^timed out after 1s" "$dir/err.log"
await "the end of the job" eval '! kill -0 "$(cat "$dir/pid")"'
rm "$dir/pid"
start slow.log "$build/src/lictor" try Slow --config "$dir/lictor.json"
await_text slow.log begun
stop TERM
[ "$code" -ne 0 ] || fail "an interrupted trial is a success"
grep -q "^interrupted" "$dir/slow.log"
await "the end of the job" eval '! kill -0 "$(cat "$dir/pid")"'
[ -z "$(ls "$TMPDIR")" ] || fail "left behind: $(ls "$TMPDIR")"
