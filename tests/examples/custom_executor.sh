#!/usr/bin/env bash
# Installs lictor from BUILD into a folder of its own, builds examples/custom-executor against it
# with find_package(lictor), and has the program run tasks from a real Consul.
#
#   custom_executor.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

install_lictor
build_project examples/custom-executor
program=$dir/build/word-counter

start_consul
# A copy: root's daemon takes no file that another user, whose checkout this may be, could change.
install -m 644 examples/custom-executor/lictor.json "$dir/lictor.json"
start daemon.log "$program" run --config "$dir/lictor.json"

# It knows of itself what is registered in it: a queue needs no executors of its own.
echo '{"queues": [{"name": "a"}, {"name": "b", "executors": {"Greet": {"cpp": "Greet"}}}]}' \
  >"$dir/two.json"
"$program" check --config "$dir/two.json" >"$dir/check.log" || [ $? = 1 ]  # nobody leads these
grep -q '^ok    configuration ' "$dir/check.log"

"$program" submit CountWords --para file=examples/custom-executor/lictor.json --wait --wait-timeout 60s
grep -q "words in .*lictor.json.* (attempt 1, token " "$dir/daemon.log"

# How far it is, while it runs: the file is a pipe that has not ended.
mkfifo "$dir/words"
"$program" submit CountWords --id slow --para file="$dir/words"
exec 9>"$dir/words"
seq 2000 >&9
counted() {
  grep -q "is running, attempt 1, since .*, 0% done: 2000 words so far" <("$program" why slow)
}
await "the progress of a task that runs" counted
grep -q '"progress":{"fraction":0.0,"note":"2000wordssofar"}' <("$program" why slow --json | tr -d ' \n')
exec 9>&-
await_text daemon.log "slow: 2000 words in "

"$program" submit Greet --para name=reader --wait --wait-timeout 60s  # registered, not configured
grep -q "^Hello, reader$" "$dir/daemon.log"
expect_dead "$program" submit CountWords --wait --wait-timeout 60s
grep -q "expected the path of a file" "$dir/dead.log"
