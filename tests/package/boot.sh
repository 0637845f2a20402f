#!/usr/bin/env bash
# Builds the packages and has them through the life of a service on a Debian of its own, of this
# machine's release, with systemd as its first process: installed, started, broken, upgraded and
# purged.
#
#   boot.sh BUILD            a build folder of lictor, built
#   boot.sh BUILD --shell    opens a shell in there before the first step, and when a step has failed
#
# Needs root, since it boots a container. A step that fails says so, with its name. BUILD/debian
# keeps that Debian for the next run. The network is used to make it and at no other time: the
# container has none. Nothing else stays: processes and mounts end with the namespaces that this
# makes for itself.
#
# Exit code 77: skipped, and why.
set -euo pipefail
shopt -s inherit_errexit

build=$(cd -P -- "$1" && pwd)
source=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
. "$source/tests/package/debian.sh"

# --- Outside: a cgroup and namespaces, which end with this test whatever ends it. -----------------

if [ "${LICTOR_BOOT_WORK-}" = "" ]; then
  needs_root_and systemd-nspawn lintian nsenter setpriv dpkg-deb findmnt cpack
  unshare --mount --pid --fork --mount-proc true 2>/dev/null || skip "namespaces cannot be made here"

  # Not below BUILD: debootstrap takes no path with a space.
  LICTOR_BOOT_WORK=$(mktemp -d /var/tmp/lictor-boot.XXXXXX)
  export LICTOR_BOOT_WORK
  groups=()
  finish() {
    local status=$? group
    trap - EXIT
    # unshare ignores TERM; all below it ends with it.
    [ -z "${inner-}" ] || { kill -KILL "$inner" && wait "$inner" || true; } 2>/dev/null
    for group in "${groups[@]}"; do
      echo 0 >"${group%/*}/cgroup.procs" || true
      # Killed processes leave their group a moment later.
      for _ in $(seq 100); do
        find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
        [ -d "$group" ] || break
        sleep 0.1
      done
    done
    rm -rf -- "$LICTOR_BOOT_WORK"
    exit "$status"
  }
  trap finish EXIT
  trap 'exit 143' TERM INT HUP

  # systemd-nspawn makes groups beside that of its caller: here they differ from those of others.
  # Read at once: the file changes with the first move.
  mapfile -t own </proc/self/cgroup
  for line in "${own[@]}"; do
    IFS=: read -r _ controllers path <<<"$line"
    case $controllers in
      "") mount=$(findmnt -n -o TARGET -t cgroup2 | head -n 1) ;;
      name=systemd | memory) mount=$(findmnt -n -o TARGET -t cgroup -O "$controllers" | head -n 1) ;;
      *) continue ;;
    esac
    [ -n "$mount" ] || continue
    group=${mount}${path%/}/lictor-boot.$$
    mkdir "$group" 2>/dev/null || skip "cgroups cannot be made in $mount"
    groups+=("$group")
    [ "$controllers" != memory ] || export LICTOR_BOOT_MEMORY=$group
    echo 0 >"$group/cgroup.procs" || skip "a process cannot be moved to a cgroup in $mount"
  done

  # Killed, this takes them along.
  setpriv --pdeathsig KILL unshare --mount --pid --fork --mount-proc --kill-child=KILL -- "$0" "$@" &
  inner=$!
  wait "$inner" && status=0 || status=$?
  inner=""
  exit "$status"
fi

# --- The container. -------------------------------------------------------------------------------

work=$LICTOR_BOOT_WORK
root=$work/root
began=$SECONDS
current="before the first step"

step() {
  current=$*
  printf '%4d s  %s\n' "$((SECONDS - began))" "$*"
}

# in_it COMMAND...: in the container, as root.
in_it() {
  nsenter --target "$init" --mount --uts --ipc --net --pid --root --wd \
    env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "$@"
}

fail() {
  trap - EXIT
  echo "FAILED: $current: $*" >&2
  [ -z "${init-}" ] || {
    in_it systemctl --no-pager status lictor.service
    in_it journalctl --no-pager -n 60 -u lictor.service -u consul.service
  } >&2 || true
  [ "${shell-}" = "" ] || in_it bash >&2 || true
  exit 1
}
trap 'case $? in 0 | 77) ;; *) fail "a command failed: $BASH_COMMAND" ;; esac' EXIT

# until_true WHAT COMMAND...: the wait ends with the condition; the limit is for a machine that is
# several times slower than any that was seen.
until_true() {
  local what=$1 end=$((SECONDS + 180))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || fail "not within 180 s: $what"
    sleep 0.1
  done
}

is() { [ "$(in_it systemctl show lictor.service --value -p "$1")" = "$2" ]; }
# expect PROPERTY VALUE: of the service.
expect() { is "$1" "$2" || fail "$1: expected $2, got $(in_it systemctl show lictor.service --value -p "$1")"; }
logged() { grep -qF -- "$1" <(in_it journalctl -u lictor.service -o cat --since "@$since"); }
# from_here: logged() finds what is logged from now on.
from_here() { since=$(date +%s.%N | cut -c 1-17); }
active() { is ActiveState active; }
# put ID TYPE [PARAMETERS]: as any producer does.
put() {
  [ "$(in_it curl -fsS -X PUT "http://127.0.0.1:8500/v1/kv/lictor/example/tasks/$1" \
    -d "{\"taskType\": \"$2\", \"taskPara\": ${3:-{\}}}")" = true ]
}
gone() { [ "$(in_it curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:8500/v1/kv/lictor/example/$1")" = 404 ]; }
# done_well ID: has left the queue, and not as a dead letter.
done_well() { gone "tasks/$1" && gone "dead/$1"; }
output() { in_it sh -c "cat /var/lib/lictor/logs/example/$1.*"; }
alive() { in_it test -d "/proc/$1"; }
# send SIGNAL PROCESS: a small Debian has no kill but the shell's.
send() { in_it sh -c "kill -$1 $2"; }
settled() { grep -qxE 'running|degraded' <(in_it systemctl is-system-running); }

mount -t tmpfs tmpfs /run  # of this namespace: systemd-nspawn leaves folders there
boot() {
  # Where the kernel has both versions of cgroups, a Debian on bare metal would have the second alone.
  findmnt -n -t cgroup2 >/dev/null && export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
  systemd-nspawn --quiet --register=no --keep-unit --private-network --boot --directory="$root" \
    --console=pipe --link-journal=no --resolv-conf=off --timezone=off --machine=lictor-boot \
    --bind-ro="$consul:/usr/local/bin/consul" --bind-ro="$work/debs:/debs" \
    </dev/null >"$work/console.log" 2>&1 &
  nspawn=$!
  local end=$((SECONDS + 180))
  while :; do
    init=$(pgrep -P "$nspawn" | head -n 1) || true  # the first process of the container
    [ -z "$init" ] || ! in_it systemctl show -p Version >/dev/null 2>&1 || break
    kill -0 "$nspawn" 2>/dev/null || { cat "$work/console.log" >&2; fail "systemd-nspawn ended"; }
    [ "$SECONDS" -lt "$end" ] || { cat "$work/console.log" >&2; fail "systemd does not answer"; }
    sleep 0.1
  done
}
halt() {
  kill -s RTMIN+4 "$init"  # systemd(1): as "systemctl start poweroff.target"
  init=""
  wait "$nspawn" || true
}

# --- Packages and Debian. -------------------------------------------------------------------------

step "cpack makes the packages"
consul=${CONSUL_BIN:-$("$source/consul/get-consul.sh")}
consul=$(readlink -f "$consul")
mkdir "$work/debs"
# By gzip: xz, as users have it, takes four times as long and shows nothing more.
(cd "$build" && cpack -G DEB -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B "$work/cpack" >"$work/cpack.log") ||
  { cat "$work/cpack.log"; fail "cpack"; }
arch=$(dpkg --print-architecture)
version=$(sed -n 's/.*LICTOR_VERSION "\(.*\)"/\1/p' "$source/include/lictor/version.h")
deb=lictor_${version}_$arch.deb
mv "$work/cpack/$deb" "$work/cpack/lictor-dev_${version}_$arch.deb" "$work/debs"

step "lintian finds neither errors nor warnings"
lintian --allow-root --fail-on error,warning "$work"/debs/*.deb >"$work/lintian.log" 2>&1 ||
  { cat "$work/lintian.log" >&2; fail "see above"; }

step "an example of lictor-dev builds against what it installs"
dpkg-deb -x "$work/debs/lictor-dev_${version}_$arch.deb" "$work/dev"
cmake -S "$work/dev/usr/share/doc/lictor-dev/examples/producer" -B "$work/producer" -G Ninja \
  -DCMAKE_PREFIX_PATH="$work/dev/usr" >"$work/example.log" 2>&1 &&
  cmake --build "$work/producer" >>"$work/example.log" 2>&1 || { cat "$work/example.log" >&2; fail "see above"; }

own_release
step "a Debian ($release) with systemd and what the package depends on"
needs=$(dpkg-deb -f "$work/debs/$deb" Depends)
with_systemd() {
  chroot "$1" apt-get update -q &&
    chroot "$1" env DEBIAN_FRONTEND=noninteractive \
      apt-get satisfy -q -y --no-install-recommends "systemd-sysv, curl, $needs"
}
debian_tree "$release" boot "$needs" with_systemd
cp -a -- "$tree" "$root"
cat >"$root/etc/systemd/system/consul.service" <<'UNIT'
[Service]
Type=exec
ExecStart=/usr/local/bin/consul agent -dev -log-level=warn
KillSignal=SIGKILL
UNIT

# --- The life of a service. -----------------------------------------------------------------------

boot
until_true "the container has started" settled
from_here
[ "${2-}" != --shell ] || { shell=1; in_it bash; }

step "apt-get installs it, without a Consul: the service runs, and says that it waits"
in_it apt-get install -q -y "/debs/$deb" >"$work/install.log" 2>&1 ||
  { cat "$work/install.log" >&2; fail "apt-get install"; }
in_it systemctl -q is-enabled lictor.service || fail "the service is not enabled"
until_true "lictor has looked for Consul" logged "lictor runs"
expect ActiveState active
[ "$(in_it stat -c '%U:%G %a' /etc/lictor/lictor.json /var/lib/lictor | tr '\n' ' ')" = \
  "root:root 644 lictor:lictor 750 " ] || fail "owners: $(in_it ls -ld /etc/lictor/lictor.json /var/lib/lictor)"

step "the exposure by systemd-analyze security is at most 1.5"
exposure=$(in_it systemd-analyze security --no-pager lictor.service | tail -n 1)
echo "        $exposure"
in_it systemd-analyze security --threshold=15 lictor.service >/dev/null || fail "$exposure"

step "a boot ends without Consul, and the status says what the daemon waits for"
halt
boot
until_true "the boot is over" settled
expect ActiveState active
waits() { grep -q '^waiting for Consul: .' <(in_it systemctl show lictor.service --value -p StatusText); }
until_true "the status says so" waits
expect NRestarts 0

step "it leads once Consul answers"
in_it systemctl start consul.service
leads() { [ "$(in_it systemctl show lictor.service --value -p StatusText)" = "leading example" ]; }
until_true "lictor leads" leads
expect NRestarts 0

step "the journal has the daemon's levels, and one time a line"
in_it journalctl -q -u lictor.service -p warning -o cat >"$work/warnings"
grep -q "no session for this member's entry" "$work/warnings" || fail "warnings: $(cat "$work/warnings")"
! grep -q "lictor runs" "$work/warnings" || fail "info counts as a warning"
! grep -qE '^[0-9]{4}-' "$work/warnings" || fail "a time in the line: $(cat "$work/warnings")"

step "the configuration of the package runs a task that curl submits"
put 1 Hello '{"to": "you"}'
until_true "task 1 is done" done_well 1
grep -q '"to": *"you"' <(output 1) || fail "output: $(output 1)"
grep -q '"you"' <(in_it lictor logs 1) || fail "lictor logs shows: $(in_it lictor logs 1 2>&1)"
in_it lictor check >"$work/check.log" 2>&1 || { cat "$work/check.log" >&2; fail "lictor check"; }

step "every command of README.md for a first real queue"
"$source/tests/package/first_queue.sh" "$source/README.md" >"$root/root/first_queue.sh"
in_it bash /root/first_queue.sh >"$work/queue.log" 2>&1 || { tail -n 60 "$work/queue.log" >&2; fail "see above"; }

step "systemctl reload takes over a new executor"
configure() {
  in_it tee /etc/lictor/lictor.json >/dev/null <<JSON
// Edited by the administrator.
{
  "hang_timeout": "0s",  // that none but systemd ends what hangs
  "queues": [{
    "name": "example", "backoff": {"initial": "100ms"}, "drain_timeout": "1s",
    "executors": {
      "Hello": {"exec": ["/bin/cat"]},
      // Its first attempt never ends by itself.
      "Patient": {"exec": ["/bin/sh", "-c", "echo pid \$\$; [ \$LICTOR_ATTEMPT -gt 1 ] || exec sleep 100000"]}
      $1
    }
  }]
}
JSON
}
configure ', "New": {"exec": ["/usr/bin/id", "-un"]}'
in_it systemctl restart lictor.service  # hang_timeout is not for a reload
configure ', "New": {"exec": ["/usr/bin/id", "-un"]}, "Newer": {"exec": ["/usr/bin/id", "-un"]}'
from_here
in_it systemctl reload lictor.service
until_true "the daemon says so" logged "configuration reloaded"
put new Newer
until_true "the task of the new type is done" done_well new
[ "$(output new)" = lictor ] || fail "a job runs as $(output new)"

step "systemctl reload with a change that needs a restart ends well, and takes the rest"
in_it sh -c 'sed "s/\"Newer\"/\"Newest\"/; s/\"backoff\"/\"session_ttl\": \"20s\", \"backoff\"/" -i /etc/lictor/lictor.json'
from_here
in_it systemctl reload lictor.service || fail "systemctl reload fails"
until_true "the daemon says what waits" logged "settings=\"queue example: session_ttl"
put newest Newest
until_true "the rest is taken" done_well newest
configure ', "New": {"exec": ["/usr/bin/id", "-un"]}, "Newer": {"exec": ["/usr/bin/id", "-un"]}'
in_it systemctl reload lictor.service

step "systemctl reload with a broken file fails and says where, and the old configuration stays"
in_it sh -c 'sed -i s/executors/excutors/ /etc/lictor/lictor.json'
from_here
! in_it systemctl reload lictor.service 2>/dev/null || fail "systemctl reload says nothing"
until_true "the journal names file and line" logged '/etc/lictor/lictor.json:6: queues[0].excutors'
expect ActiveState active
in_it systemctl kill --kill-whom=main --signal=HUP lictor.service
until_true "the daemon says that it keeps the old one" logged "configuration not reloaded; keeping the old one"
put old Newer
until_true "a task of the old configuration is done" done_well old

step "a job of another user, by job-user.conf as a drop-in"
configure ', "Other": {"exec": ["/bin/sh", "-c", "id -un; grep CapEff /proc/self/status"], "user": "nobody", "cwd": "/"}'
in_it mkdir -p /etc/systemd/system/lictor.service.d
in_it cp /usr/share/doc/lictor/job-user.conf /etc/systemd/system/lictor.service.d/
in_it systemctl daemon-reload
in_it systemctl restart lictor.service
put other Other
until_true "the task is done" done_well other
[ "$(output other)" = "$(printf 'nobody\nCapEff:\t0000000000000000')" ] || fail "output: $(output other)"
in_it systemctl reload lictor.service || fail "a reload with a user fails"

# started ID: the process of its first attempt, in $job.
started() { job=$(output "$1" | sed -n 's/^pid //p' | head -n 1) && [ -n "$job" ]; }
main_pid() { in_it systemctl show "${1-lictor.service}" --value -p MainPID; }
warden_pid() { in_it sh -c "cat /proc/$1/task/$1/children" | cut -d ' ' -f 1; }
job_ended() { ! alive "$job"; }
# Each of the jobs is in a cgroup of its own, or it could outlive its attempt.
grouped() { grep -q '^0::.*/lictor.service/.' <(in_it cat "/proc/$job/cgroup"); }

step "kill -9 of the daemon: it is started again, its job is ended and its task runs again"
restarts=$(in_it systemctl show lictor.service --value -p NRestarts)
put killed Patient
until_true "the job runs" started killed
grouped || fail "the job has no cgroup of its own: $(in_it cat "/proc/$job/cgroup")"
send KILL "$(main_pid)"
until_true "the task is done, by the next daemon" done_well killed
expect NRestarts "$((restarts + 1))"
! alive "$job" || fail "the job of the dead daemon lives"
until_true "lictor is active" active

step "kill -9 of the warden: the daemon is started again, and its job's task runs again"
put orphaned Patient
until_true "the job runs" started orphaned
before=$(main_pid)
send KILL "$(warden_pid "$before")"
until_true "the task is done, by the next daemon" done_well orphaned
! alive "$before" || fail "the daemon without a warden lives"
! alive "$job" || fail "the job of the dead warden lives"
until_true "lictor is active" active

in_it sh -c 'printf "[Service]\nWatchdogSec=3s\n" >/etc/systemd/system/lictor.service.d/watchdog.conf'
in_it systemctl daemon-reload
in_it systemctl restart lictor.service
for with in "" " and its warden"; do
  step "SIGSTOP of the daemon$with: systemd's watchdog ends it and its job, and the task runs again"
  id=frozen${with:+-both}
  put "$id" Patient
  until_true "the job runs" started "$id"
  from_here
  frozen=$(main_pid)
  [ "$with" = "" ] || send STOP "$(warden_pid "$frozen")"
  send STOP "$frozen"
  until_true "systemd tells of the watchdog" logged "Watchdog timeout"
  until_true "the job has ended" job_ended
  until_true "the task is done, by the next daemon" done_well "$id"
  ! alive "$frozen" || fail "the frozen daemon lives"
  ! logged "timed out" || fail "systemd had to wait for the frozen daemon before it killed it"
  until_true "lictor is active" active
done

step "a job that takes all memory is killed, and is a failed attempt: the daemon goes on"
memory_limited=1
if in_it grep -qw memory /sys/fs/cgroup/cgroup.controllers; then
  in_it sh -c 'printf "[Service]\nMemoryMax=100M\nMemorySwapMax=0\n" >/etc/systemd/system/lictor.service.d/memory.conf'
  in_it systemctl daemon-reload
elif [ -n "${LICTOR_BOOT_MEMORY-}" ]; then
  # By version 1 of cgroups, which systemd leaves alone in there. The numbers of processes are those
  # of the container, hence by a writer in its namespace.
  mkdir "$LICTOR_BOOT_MEMORY/small"
  echo 0 >"$LICTOR_BOOT_MEMORY/small/memory.swappiness"
  echo 100M >"$LICTOR_BOOT_MEMORY/small/memory.limit_in_bytes"
  for process in $(main_pid) $(warden_pid "$(main_pid)"); do
    nsenter --target "$init" --pid sh -c "echo $process >'$LICTOR_BOOT_MEMORY/small/cgroup.procs'"
  done
else
  memory_limited=0
  echo "        not tried: there is no memory controller for it here"
fi
if [ "$memory_limited" = 1 ]; then
  configure ', "Hungry": {"exec": ["/usr/bin/tail", "/dev/zero"], "max_attempts": 1}'
  in_it systemctl reload lictor.service
  before=$(main_pid)
  put hungry Hungry
  is_dead() { ! gone dead/hungry; }
  until_true "the task is a dead letter" is_dead
  grep -q "signal 9" <(in_it lictor dead show hungry) || fail "its error: $(in_it lictor dead show hungry)"
  [ "$(main_pid)" = "$before" ] || fail "the daemon was restarted"
  put fed Hello
  until_true "the next task is done" done_well fed
fi

step "a full /var/lib/lictor: the daemon goes on, and the task runs when there is room"
in_it systemctl stop lictor.service
in_it mount -t tmpfs -o size=1M,mode=750,uid="$(in_it id -u lictor)",gid="$(in_it id -g lictor)" tmpfs /var/lib/lictor
in_it systemctl start lictor.service
in_it sh -c 'cat /dev/zero >/var/lib/lictor/full 2>/dev/null; true'
from_here
put full Hello
until_true "the daemon tells of the full disk" logged "No space left on device"
expect ActiveState active
in_it rm /var/lib/lictor/full
until_true "the task is done" done_well full
expect ActiveState active
in_it systemctl stop lictor.service
in_it umount /var/lib/lictor
in_it systemctl start lictor.service

step "a second daemon, lictor@second"
in_it tee /etc/lictor/second.json >/dev/null <<'JSON'
{"node": "second", "admin": {"listen": []},
 "queues": [{"name": "second", "executors": {"*": {"exec": ["/bin/cat"]}}}]}
JSON
in_it systemctl start lictor@second.service
in_it lictor submit Any --config /etc/lictor/second.json --id 1 --wait --wait-timeout 2m >/dev/null ||
  fail "its task was not done"
in_it sh -c 'ls /var/lib/lictor/second/logs/second/1.*' >/dev/null || fail "its state is elsewhere"

step "an upgrade restarts the daemons and keeps the file that the administrator changed"
(
  cd "$work"
  dpkg-deb -R "debs/$deb" next
  sed -i "s/^Version: .*/Version: $version+next/" next/DEBIAN/control
  sed -i '1s/.*/\/\/ Changed by the next version./' next/usr/share/lictor/lictor.json
  (cd next && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | xargs -0 md5sum >DEBIAN/md5sums)
  dpkg-deb --root-owner-group -Zgzip -b next debs/next.deb >/dev/null
)
before=$(main_pid)
second=$(main_pid lictor@second.service)
in_it apt-get install -q -y /debs/next.deb </dev/null >"$work/upgrade.log" 2>&1 ||
  { cat "$work/upgrade.log" >&2; fail "apt-get install"; }
[ "$(in_it dpkg-query -W -f '${Version}' lictor)" = "$version+next" ] || fail "the version is the old one"
in_it grep -q "Edited by the administrator" /etc/lictor/lictor.json || fail "the file was replaced"
expect ActiveState active
[ "$(main_pid)" != "$before" ] || fail "the old daemon still runs"
! alive "$second" || fail "the old lictor@second still runs"
in_it systemctl -q is-active lictor@second.service || fail "lictor@second does not run"
put upgraded Hello
until_true "a task is done" done_well upgraded

step "a downgrade leaves a service that works"
before=$(main_pid)
in_it apt-get install -q -y --allow-downgrades "/debs/$deb" </dev/null >"$work/downgrade.log" 2>&1 ||
  { cat "$work/downgrade.log" >&2; fail "apt-get install --allow-downgrades"; }
expect ActiveState active
[ "$(main_pid)" != "$before" ] || fail "the old daemon still runs"
in_it grep -q "Edited by the administrator" /etc/lictor/lictor.json || fail "the file was replaced"
put downgraded Hello
until_true "a task is done" done_well downgraded

step "a service that was stopped stays so over an upgrade, and so does one that was disabled"
in_it systemctl stop lictor.service
in_it apt-get install -q -y /debs/next.deb </dev/null >"$work/upgrade.log" 2>&1 ||
  { cat "$work/upgrade.log" >&2; fail "apt-get install"; }
expect ActiveState inactive
in_it systemctl disable -q lictor.service
in_it apt-get install -q -y --allow-downgrades "/debs/$deb" </dev/null >"$work/upgrade.log" 2>&1 ||
  { cat "$work/upgrade.log" >&2; fail "apt-get install"; }
! in_it systemctl -q is-enabled lictor.service || fail "it is enabled"
expect ActiveState inactive
in_it systemctl enable -q --now lictor.service

step "a removal stops the daemon and keeps configuration and state"
put running Patient
until_true "the job runs" started running
daemon=$(main_pid)
second=$(main_pid lictor@second.service)
in_it apt-get remove -q -y lictor >"$work/remove.log" 2>&1 || { cat "$work/remove.log" >&2; fail "apt-get remove"; }
! alive "$daemon" || fail "the daemon lives"
! alive "$job" || fail "its job lives"
! alive "$second" || fail "lictor@second lives"
in_it test -e /etc/lictor/lictor.json -a -d /var/lib/lictor || fail "configuration or state is gone"
! gone tasks/running || fail "the task that ran is lost"

step "a purge leaves nothing but the user, the administrator's own files and what is in Consul"
in_it touch /etc/lictor/own.token
in_it sh -c 'mkdir /var/lib/lictor/mine && touch /var/lib/lictor/mine/data'
in_it ln -s /usr/lib/systemd/system/lictor@.service \
  /etc/systemd/system/multi-user.target.wants/lictor@second.service
in_it apt-get purge -q -y lictor >"$work/purge.log" 2>&1 || { cat "$work/purge.log" >&2; fail "apt-get purge"; }
left=$(in_it find / -xdev -iname '*lictor*' -not -path '/proc/*' -not -path '/debs/*' \
  -not -path '/etc/systemd/system/lictor.service.d' -not -path /etc/lictor -not -path '/var/log/*' \
  -not -path '/var/cache/*' -not -path '/sys/*' -not -path '/run/*' -not -path /var/lib/lictor)
[ -z "$left" ] || fail "left: $left"
[ "$(in_it ls /etc/lictor | tr '\n' ' ')" = "own.token second.json " ] || fail "left in /etc/lictor: $(in_it ls /etc/lictor)"
in_it id -u lictor >/dev/null || fail "the user is gone, and files of jobs elsewhere have none"
[ "$(in_it find /var/lib/lictor -mindepth 1 | tr '\n' ' ')" = \
  "/var/lib/lictor/mine /var/lib/lictor/mine/data " ] || fail "in /var/lib/lictor: $(in_it find /var/lib/lictor)"
in_it test -s /srv/tablespaces/db7.db || fail "what a job made is gone"
! gone tasks/running || fail "the task is gone from Consul"
[ "$(in_it systemctl show lictor.service --value -p LoadState)" = not-found ] || fail "systemd knows the unit"

step "all passed"
halt
