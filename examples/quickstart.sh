#!/usr/bin/env bash
# lictor's main job, from nothing to done. The build takes 4 to 8 minutes on two cores, the rest one:
#
#   examples/quickstart.sh            shows it, and leaves nothing behind but build/ and a cache
#   examples/quickstart.sh --keep     leaves Consul and the daemons running, to play with
#
# Installs what is missing, builds lictor, starts a Consul agent and two daemons on free ports of
# the loopback interface, writes tasks with curl, and kills the leader in mid-job. All that it
# starts and writes lies in one temporary folder, but for the build.
#
# LICTOR_SKIP_INSTALL=1 installs nothing; JOBS=n sets how many compilers run at once. LICTOR_BIN names
# a lictor that was built elsewhere, and nothing is installed or built.
set -euo pipefail

keep=no
case "${1-}" in
  "") ;;
  --keep) keep=yes ;;
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
  *) echo "quickstart: expected --keep or nothing, got \"$1\"; see --help" >&2; exit 2 ;;
esac

cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source_dir=$PWD

if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi
step() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
say() { printf '   %s\n' "$*"; }
give_up() { printf 'quickstart: %s\n' "$*" >&2; exit 1; }

# Prints the command as a user would type it, whatever its paths hold, and runs it.
run() { printf '   $'; printf ' %q' "$@"; printf '\n'; "$@" | sed 's/^/   /'; }

# show_progress LOG: writes what a build says to LOG and, on a terminal, how many steps are done.
show_progress() {
  local line
  : >"$1"
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$1"
    [ -t 1 ] && [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    printf '\r   %s of %s steps done' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
  done
  [ ! -t 1 ] || printf '\n'
}

# wait_for SECONDS WHAT COMMAND...: until COMMAND succeeds, while all lives that has to.
declare -A log_of=()  # the processes that have to live, by their ids
wait_for() {
  local limit=$((SECONDS + $1)) what=$2 pid; shift 2
  until "$@" >/dev/null 2>&1; do
    for pid in "${!log_of[@]}"; do
      kill -0 "$pid" 2>/dev/null || {
        tail -n 8 "${log_of[$pid]}" >&2
        give_up "waited for $what, but the process with this log has ended: ${log_of[$pid]}"
      }
    done
    if [ "$SECONDS" -ge "$limit" ]; then
      tail -n 8 "${log_of[@]}" >&2
      give_up "waited too long for $what; see above"
    fi
    sleep 0.1
  done
}

# ------------------------------------------------------------------------------------------------
step "Installing what is missing, building, finding Consul"
if [ -n "${LICTOR_BIN-}" ]; then
  lictor=$(realpath -- "$LICTOR_BIN")
else
  [ "${LICTOR_SKIP_INSTALL-}" = 1 ] || tests/install-deps.sh build
  fresh=()
  if [ -f build/release/CMakeCache.txt ] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" build/release/CMakeCache.txt; then
    fresh=(--fresh)
  fi
  cmake --preset release "${fresh[@]}" >/dev/null
  say "building; the first time this takes 4 to 8 minutes on two cores"
  if ! cmake --build --preset release --parallel "${JOBS:-$(nproc)}" 2>&1 | show_progress build/release/build.log; then
    tail -n 40 build/release/build.log >&2
    give_up "lictor cannot be built; see build/release/build.log"
  fi
  lictor=$source_dir/build/release/src/lictor
fi
unset LICTOR_BIN LICTOR_SKIP_INSTALL  # lictor warns of variables that it does not know
consul=$(consul/get-consul.sh)
say "$("$lictor" version | head -n 1)"

# ------------------------------------------------------------------------------------------------
dir=$(mktemp -d "${TMPDIR:-/tmp}/lictor-quickstart.XXXXXX")
pids=()
stop_all() {
  local pid
  for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
}
finish() {
  local status=$?
  if [ "$keep" = yes ] && [ "$status" -eq 0 ]; then return; fi
  # The daemons first, while Consul is there to take their leave.
  local pid
  for pid in "${pids[@]:1}"; do kill -TERM "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]:1}"; do wait "$pid" 2>/dev/null || true; done
  stop_all
  if [ "$status" -eq 0 ]; then rm -rf -- "$dir"; else say "what was logged is in $dir"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM

# free_ports COUNT: all different, below the range that the kernel hands out to clients.
free_ports() {
  local port
  local -A found=()
  while [ "${#found[@]}" -lt "$1" ]; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || found[$port]=1
  done
  echo "${!found[@]}"
}

step "Starting a Consul agent"
read -r http server lan <<<"$(free_ports 3)"
closed_ports=$(consul/agent-ports.sh "$consul")
mapfile -t closed_ports <<<"$closed_ports"
"$consul" agent -ui -config-file=consul/dev-agent.hcl -data-dir="$dir/consul" \
  -http-port="$http" -server-port="$server" -serf-lan-port="$lan" \
  "${closed_ports[@]}" >"$dir/consul.log" 2>&1 &
pids+=($!)
log_of[$!]=$dir/consul.log
export CONSUL_HTTP_ADDR=127.0.0.1:$http
kv=http://$CONSUL_HTTP_ADDR/v1/kv
consul_is_up() { [ "$(curl -fs -X PUT "$kv/up" -d yes)" = true ] && curl -fs -X DELETE "$kv/up"; }
wait_for 60 "the Consul agent" consul_is_up
say "it answers on $CONSUL_HTTP_ADDR"

# ------------------------------------------------------------------------------------------------
step "Writing tasks with curl, before anybody is there to run them"
put() {  # put ID TIME TYPE PARA
  local record
  record=$(printf '{"taskId": "%s", "taskTime": "%s", "taskTaken": "false", "taskType": "%s", "taskPara": %s}' "$@")
  printf "   \$ curl -X PUT %s/lictor/default/tasks/%s -d '%s'\n" "$kv" "$1" "$record"
  [ "$(curl -fsS -X PUT "$kv/lictor/default/tasks/$1" -d "$record")" = true ] ||
    give_up "Consul refused task $1"
}
put third 1445599890 Say '{"text": "I am the youngest"}'
put first 1445599880 Say '{"text": "I am the oldest"}'
put second 1445599885 Say '{"text": "I am in between"}'
put 42 1445599887 CreateTableSpace \
  '{"instanceId": "db7", "initSize": "8000", "maxSize": "100000", "stepSize": "2000"}'

cat >"$dir/say" <<'JOB'
#!/bin/sh
# The task is in the environment, and as JSON on standard input. $1 is where to write.
echo "begin $LICTOR_TASK_ID attempt $LICTOR_ATTEMPT token $LICTOR_FENCING_TOKEN: $LICTOR_PARA_text" >>"$1"
[ "$LICTOR_ATTEMPT" -gt 1 ] || sleep "${LICTOR_PARA_seconds:-0}"
echo "end   $LICTOR_TASK_ID attempt $LICTOR_ATTEMPT" >>"$1"
JOB
chmod +x "$dir/say"
cat >"$dir/lictor.json" <<CONFIG
{
  "queues": [
    {
      "name": "default",
      // As short as Consul allows, so that the end of this show comes soon. In earnest, keep the
      // defaults (15s and 30s): jobs then outlive an election among Consul's servers.
      "session_ttl": "10s", "lock_delay": "12s", "kill_grace": "2s", "request_timeout": "2s",
      "executors": {
        "Say": {"exec": ["$dir/say", "$dir/said"]},
        "CreateTableSpace": {"exec": ["$source_dir/examples/create-tablespace/create-tablespace", "$dir/tablespaces"]}
      }
    }
  ]
}
CONFIG

# ------------------------------------------------------------------------------------------------
start_daemon() {  # start_daemon NODE
  LICTOR_NODE=$1 LICTOR_STATE_DIR=$dir/state-$1 \
    "$lictor" run --config "$dir/lictor.json" >>"$dir/$1.log" 2>&1 &
  pids+=($!)
  log_of[$!]=$dir/$1.log
}
lead() { "$lictor" leader --json | sed -n 's/.*"node": *"\([^"]*\)".*/\1/p' | head -n 1; }
somebody_leads() { [ -n "$(lead)" ]; }
all_done() { [ "$(curl -fs "$kv/lictor/default/tasks/?keys")" = '["lictor/default/tasks/"]' ]; }

step "Starting two daemons, as on two hosts"
start_daemon host-a
start_daemon host-b
wait_for 60 "a leader" somebody_leads
run "$lictor" leader
wait_for 60 "the tasks to be done" all_done
say "the leader ran the tasks, oldest taskTime first, and deleted their keys:"
sed 's/^/   /' "$dir/said"
order=$(sed -n 's/^begin \([^ ]*\) .*/\1/p' "$dir/said" | tr '\n' ' ')
[ "$order" = "first second third " ] || give_up "the order was $order"
say "and task 42 made a file of the size that it asked for:"
run ls -l "$dir/tablespaces/db7.db"
[ "$(stat -c %s "$dir/tablespaces/db7.db")" -eq 8192000 ] || give_up "its size is wrong"

# ------------------------------------------------------------------------------------------------
step "Killing the leader in mid-job, with kill -9"
: >"$dir/said"
put long 1445599900 Say '{"text": "I take long at first", "seconds": 600}'
wait_for 30 "the job to begin" grep -q "begin long" "$dir/said"
old=$(lead)
index=1; [ "$old" = host-a ] || index=2
say "$old runs it; now: kill -9 ${pids[$index]}"
unset "log_of[${pids[$index]}]"
{ kill -9 "${pids[$index]}"; wait "${pids[$index]}" || true; } 2>/dev/null
say "its warden ends the job, and then gives the lock back, so that no two hosts ever work at a time ..."
began=$(date +%s%N)
moved() { local now; now=$(lead); [ -n "$now" ] && [ "$now" != "$old" ]; }
wait_for 120 "the other daemon to take over" moved
say "... after $((($(date +%s%N) - began) / 1000000)) ms $(lead) leads, and runs the task again:"
wait_for 60 "the task to be done" all_done
sed 's/^/   /' "$dir/said"
grep -q "end   long attempt 2" "$dir/said" || give_up "the second attempt did not end"
[ "$(grep -c "^end " "$dir/said")" -eq 1 ] || give_up "the killed attempt ended, too"

# ------------------------------------------------------------------------------------------------
printf -v shown %q "$lictor"
printf -v here %q "$dir"
printf -v script %q "$source_dir/examples/quickstart.sh"
if [ "$keep" = yes ]; then
  step "Left running"
  say "export CONSUL_HTTP_ADDR=$CONSUL_HTTP_ADDR"
  say "$shown submit Say --para text=hello --wait"
  say "$shown list; $shown leader; $shown check --config $here/lictor.json"
  say "the web page: $("$lictor" leader --json | sed -n 's/^ *"admin": "\(.*\)",\{0,1\}$/\1/p')/"
  say "Consul's own page: http://$CONSUL_HTTP_ADDR/ui"
  say "logs, configuration and data: $here"
  alive=()
  for pid in "${pids[@]}"; do ! kill -0 "$pid" 2>/dev/null || alive+=("$pid"); done
  say "to stop it all: kill ${alive[*]}; rm -r $here"
else
  step "Done: stopping it all"
  say "to go on: $script --keep   leaves Consul and the daemons running, to play with"
  say "          $shown dev   needs no Consul"
  say "          $shown help   lists the manual; README.md has a first real queue on two hosts"
fi
