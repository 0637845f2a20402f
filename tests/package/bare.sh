#!/usr/bin/env bash
# README.md's "Try it" and "A first real queue", command by command, on a Debian with what
# "tests/install-deps.sh build" installs and nothing else, beside a Consul agent on its usual ports.
#
#   bare.sh BUILD    a build folder of lictor, built: its program stands for the one that README builds
#
# Needs root. The Debian is of this machine's release, for which the program is built, and has no
# network but a loopback of its own, so that ports and paths are those of README. Exit code 77:
# skipped, and why.
set -euo pipefail
shopt -s inherit_errexit

build=$(cd -P -- "$1" && pwd)
source=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
. "$source/tests/package/debian.sh"

if [ -z "${LICTOR_DEBIAN_ROOT-}" ]; then
  own_release
  needs_root_and setpriv ip cmake
  debian_to_build "$release"
  CONSUL_BIN=${CONSUL_BIN:-$("$source/consul/get-consul.sh")}
  export CONSUL_BIN
  again_in_a_copy
fi

root=$LICTOR_DEBIAN_ROOT
mount_kernel
ip link set lo up
cp -- "$build/src/lictor" "$root/root"
cp -L -- "$CONSUL_BIN" "$root/usr/local/bin/consul"
commands() { "$source/tests/package/readme_commands.sh" "$source/README.md" "$1"; }

# --- Try it. --------------------------------------------------------------------------------------
# Read by the shell before README's commands. What README has in another terminal goes to the
# background; of the two commands that take long, one is done before and the other is us.
cat >"$root/root/try.sh" <<'END'
set -euxo pipefail
cd /lictor
until_true() { for _ in $(seq 1800); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; false; }
cmake() {
  [ "$1" = --build ] || { command cmake "$@"; return; }
  mkdir -p build/release/src
  mv /root/lictor build/release/src
}
lictor() {
  [ "$*" = dev ] || { command lictor "$@"; return; }
  command lictor dev >/root/dev.log 2>&1 &
  dev=$!
  until_true curl -fs http://127.0.0.1:8500/v1/status/leader
}
beside_consul() {
  kill "$dev"
  wait "$dev" || true
  setsid consul agent -dev >/root/consul.log 2>&1 &
  until_true curl -fs -X PUT http://127.0.0.1:8500/v1/kv/up
  LICTOR_BIN=$PWD/build/release/src/lictor "$@"
}
END
commands "Try it" | sed 's|^\./examples/quickstart.sh|beside_consul &|; s|^\./tests/run.sh.*||' >>"$root/root/try.sh"
echo "echo tried it" >>"$root/root/try.sh"
grep -q '^beside_consul' "$root/root/try.sh"
in_tree bash /root/try.sh >"$root/root/try.log" 2>&1 || true
grep -qx "tried it" "$root/root/try.log" || {
  tail -n 60 "$root/root/try.log" >&2
  exit 1
}
grep -q "Hello" "$root/root/dev.log" || { cat "$root/root/dev.log" >&2; exit 1; }
echo "Try it: every command runs"

# --- A first real queue. --------------------------------------------------------------------------
DESTDIR=$root cmake --install "$build" --prefix /usr --component lictor >/dev/null
echo "lictor:x:900:900::/var/lib/lictor:/usr/sbin/nologin" >>"$root/etc/passwd"
echo "lictor:x:900:" >>"$root/etc/group"
mkdir -p "$root/etc/lictor"
install -d -o 900 -g 900 "$root/var/lib/lictor"
# As the service, but for what systemd adds.
cat >"$root/usr/local/bin/systemctl" <<'END'
#!/bin/sh
[ "$*" = "restart lictor" ] || exit 1
cd /
setsid setpriv --reuid=lictor --regid=lictor --init-groups lictor run >/root/service.log 2>&1 &
END
chmod +x "$root/usr/local/bin/systemctl"
"$source/tests/package/first_queue.sh" "$source/README.md" >"$root/root/queue.sh"
in_tree bash /root/queue.sh >"$root/root/queue.log" 2>&1 || true
grep -qx "worked it" "$root/root/queue.log" || {
  tail -n 60 "$root/root/queue.log" "$root/root/service.log" >&2
  exit 1
}
echo "A first real queue: every command runs"
