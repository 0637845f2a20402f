#!/usr/bin/env bash
# Installs lictor from BUILD, builds examples/function against it, and has its functions run tasks.
#
#   function.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

install_lictor
build_project examples/function
program=$dir/build/greeter

start_consul
start daemon.log "$program" run

"$program" submit Greet --para name=reader --wait --wait-timeout 60s
grep -q "^Hello, reader$" "$dir/daemon.log"
"$program" submit Divide --id third --para dividend=1 --para by=4 --wait --wait-timeout 60s
grep -q "^third: 0.25$" "$dir/daemon.log"
expect_dead "$program" submit Divide --para dividend=1 --wait --wait-timeout 60s
grep -q "taskPara.by: expected a number but 0" "$dir/dead.log"
