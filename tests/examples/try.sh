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
    "Refused": {"http": "http://127.0.0.1:1/"},
    "Noop": {"noop": {}}
  }}]
}
END
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
try 1 Bad
grep -q "since max_attempts is 1: exit status 3: oops (" "$dir/err.log"
try 1 ForGood
grep -q "^failed for good, a dead letter at once: exit status 65 (" "$dir/err.log"
try 1 Forbidden
grep -q "KV writes cannot be made: .*lictor/default/leader is a leader's lock" "$dir/err.log"
try 1 Refused
grep -q "^not started on this host; the task would wait: " "$dir/err.log"
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
