#!/usr/bin/env bash
# Prints the path of a consul binary that runs, on standard output; all else goes to standard error.
#
#   CONSUL_BIN="$(consul/get-consul.sh)" && "$CONSUL_BIN" agent -dev
#
# In this order:
#   1. $CONSUL_BIN, if set
#   2. consul on the PATH
#   3. what an earlier run of this script has unpacked
#   4. the package "consul" of this machine's own apt sources
#   5. the package "consul" of Debian 11, from the mirror that this machine's apt sources name
#
# 4 and 5 install nothing: the package is unpacked into ${XDG_CACHE_HOME:-~/.cache}/lictor/consul
# (LICTOR_CACHE names another place for ~/.cache/lictor). 5 gives apt a root of its own, so that the
# signatures are verified while the system's lists and dpkg's state stay as they are. Works as root
# and as an ordinary user; several runs at once wait for one another.
#
# Exit codes: 0 found; 1 not found; 2 bad usage, or CONSUL_BIN names nothing that runs.
set -euo pipefail

say() { printf 'get-consul: %s\n' "$*" >&2; }

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }

runs() { # runs FILE: is FILE a consul that works here?
  local version
  [ -f "$1" ] && [ -x "$1" ] && version="$("$1" version 2>/dev/null </dev/null)" &&
    [[ $version == Consul\ v* ]]
}

give_up() {
  say "$*"
  cat >&2 <<'END'
No consul binary was found, and none could be fetched. Ways out:
  - install Consul as its makers describe: https://developer.hashicorp.com/consul/install
  - or set CONSUL_BIN to the path of a consul binary (1.8 or newer)
END
  exit 1
}

case "${1-}" in
  -h | --help) usage; exit 0 ;;
  "") ;;
  *) say "unexpected argument \"$1\"; see --help"; exit 2 ;;
esac

# --- 1. named --------------------------------------------------------------------------------
if [ -n "${CONSUL_BIN-}" ]; then
  path="$(type -P -- "$CONSUL_BIN")" || path="$CONSUL_BIN"
  if ! runs "$path"; then
    say "CONSUL_BIN=\"$CONSUL_BIN\": expected an executable for which \"consul version\" works;" \
      "correct it, or unset it to let this script look for one"
    exit 2
  fi
  printf '%s\n' "$(realpath -s -- "$path")"
  exit 0
fi

# --- 2. on the PATH --------------------------------------------------------------------------
if path="$(type -P consul)"; then
  if runs "$path"; then
    printf '%s\n' "$(realpath -s -- "$path")"
    exit 0
  fi
  say "$path does not run here; looking further"
fi

# --- 3. fetched earlier ----------------------------------------------------------------------
if [ -n "${LICTOR_CACHE-}" ]; then
  cache="$LICTOR_CACHE"
elif [ -n "${XDG_CACHE_HOME-}" ]; then
  cache="$XDG_CACHE_HOME/lictor"
elif [ -n "${HOME-}" ]; then
  cache="$HOME/.cache/lictor"
else
  give_up "neither LICTOR_CACHE, XDG_CACHE_HOME nor HOME is set: nowhere to keep a download"
fi
case "$cache" in /*) ;; *) cache="$PWD/$cache" ;; esac
cache="$cache/consul"
cached="$cache/package/usr/bin/consul"

if runs "$cached"; then
  printf '%s\n' "$cached"
  exit 0
fi

# --- 4 and 5: fetch --------------------------------------------------------------------------
for tool in apt-get apt-cache apt-config dpkg-deb flock; do
  type -P "$tool" >/dev/null || give_up "\"$tool\" is missing: only Debian and its kin can be served"
done

if ! mkdir -p -- "$cache" 2>/dev/null || ! [ -w "$cache" ]; then
  give_up "cannot write to $cache; set LICTOR_CACHE to a folder that you may write to"
fi

exec 9>"$cache/.lock"
flock -n 9 || { say "another run is fetching consul; waiting for it"; flock 9; }
if runs "$cached"; then
  printf '%s\n' "$cached"
  exit 0
fi

# A kill -9 leaves its folder behind; we hold the lock, so nobody uses what is there.
rm -rf -- "$cache"/tmp.* "$cache"/package.broken.*
tmp="$(mktemp -d -- "$cache/tmp.XXXXXXXX")"
trap 'rm -rf -- "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# As root apt downloads as the user _apt, who as a rule may not write in a home directory. The
# packages' signatures are checked either way.
as_root=()
[ "$(id -u)" -ne 0 ] || as_root=(-o APT::Sandbox::User=root)

unpack() { # unpack FOLDER: the only .deb in it becomes the cached package, if its consul runs
  local debs=("$1"/consul_*.deb)
  [ -f "${debs[0]}" ] || return 1
  dpkg-deb -x "${debs[0]}" "$tmp/package" >&2 || return 1
  if ! runs "$tmp/package/usr/bin/consul"; then
    say "the consul of ${debs[0]##*/} does not run on this machine:"
    ldd "$tmp/package/usr/bin/consul" 2>&1 | grep -i -E 'not found|not a dynamic' >&2 || true
    rm -rf -- "$tmp/package"
    return 1
  fi
  # Unpacked aside and renamed: whoever looks without the lock sees a whole package or none.
  [ ! -e "$cache/package" ] || mv -T -- "$cache/package" "$cache/package.broken.$$"
  mv -T -- "$tmp/package" "$cache/package"
  rm -rf -- "$cache"/package.broken.*
}

from_own_sources() {
  local candidate
  candidate="$(LC_ALL=C apt-cache policy consul 2>/dev/null | sed -n 's/^  Candidate: //p')"
  [ -n "$candidate" ] && [ "$candidate" != "(none)" ] || return 1
  say "fetching consul $candidate from this machine's apt sources"
  mkdir -p "$tmp/own"
  (cd "$tmp/own" && apt-get -q "${as_root[@]}" download consul) >&2 || return 1
  unpack "$tmp/own"
}

# The archives that the machine's own sources name under a suite of Debian with a component main,
# those of bookworm first: of all, they are the nearest to bullseye. What apt would fetch tells it in
# every format of sources, for every user, and also before the first "apt-get update".
debian_mirrors() {
  LC_ALL=C apt-get update --print-uris 2>/dev/null |
    sed -n "s|^'\([^']*\)/dists/\([^/]*\)/main/binary-.*|\2 \1|p" | awk '
      $1 == "bookworm" || $1 == "bullseye" { print 1, $2 }
      $1 ~ /^(trixie|forky|sid|testing|unstable|(old)*stable)$/ { print 2, $2 }' |
    LC_ALL=C sort -s -k1,1n | awk '!seen[$2]++ { print $2 }'
}

from_bullseye() {
  local mirror mirrors
  mapfile -t mirrors < <(debian_mirrors)
  [ "${#mirrors[@]}" -gt 0 ] || { say "this machine's apt sources name no Debian mirror"; return 1; }
  for mirror in "${mirrors[@]}"; do
    ! from_bullseye_of "$mirror" || return 0
  done
  return 1
}

from_bullseye_of() { # from_bullseye_of MIRROR
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg mirror="$1" root="$tmp/apt"
  [ -r "$keyring" ] || { say "$keyring is missing (package debian-archive-keyring)"; return 1; }
  say "fetching Debian 11's consul from the mirror of this machine's apt sources"

  rm -rf -- "$root" "$tmp/bullseye"
  mkdir -p "$root/state/lists/partial" "$root/cache/archives/partial" "$root/parts" "$tmp/bullseye"
  : >"$root/status"
  printf 'deb [signed-by=%s] %s bullseye main\n' "$keyring" "$mirror" >"$root/sources.list"

  # The machine's way to the network (proxies, certificates, retries: Acquire::*) is kept; its hooks
  # are not, since some of them clean up the system's own cache after an update.
  {
    apt-config dump | grep -E '^(Acquire::|APT::Architecture)' |
      grep -v -E '^Acquire::(IndexTargets|Languages|AllowInsecure|AllowWeak|AllowDowngrade)' || true
    cat <<END
Dir::State "$root/state";
Dir::State::lists "lists";
Dir::State::status "$root/status";
Dir::State::extended_states "$root/extended_states";
Dir::Cache "$root/cache";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "$root/parts";
Dir::Etc::sourcelist "$root/sources.list";
Dir::Etc::sourceparts "$root/parts";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$root/parts";
Dir::Log "$root";
Acquire::Languages "none";
Acquire::PDiffs "false";
Acquire::Retries "3";
APT::Get::List-Cleanup "false";
END
  } >"$root/apt.conf"

  APT_CONFIG="$root/apt.conf" apt-get -q "${as_root[@]}" --error-on=any update >&2 || return 1
  (cd "$tmp/bullseye" &&
    APT_CONFIG="$root/apt.conf" apt-get -q "${as_root[@]}" download consul) >&2 || return 1
  unpack "$tmp/bullseye"
}

from_own_sources || from_bullseye || give_up "the package \"consul\" could not be fetched with apt"

say "unpacked into $cache/package: $("$cached" version </dev/null | head -n 1)"
printf '%s\n' "$cached"
