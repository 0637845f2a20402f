#!/usr/bin/env bash
# Installs what is missing on Debian (12, 13 or later) or Ubuntu (24.04 or later).
#
#   tests/install-deps.sh build    what building lictor and trying it takes
#   tests/install-deps.sh test     that, and what its tests and examples use
#
# Asks dpkg first: where nothing is missing it touches neither apt nor the network, and needs no
# rights. Otherwise it takes root, or sudo. Consul is not among the packages: see
# consul/get-consul.sh.
set -euo pipefail

say() { printf 'install-deps: %s\n' "$*" >&2; }

packages=(g++ dpkg-dev file cmake ninja-build pkg-config ca-certificates curl
  nlohmann-json3-dev libfmt-dev libcli11-dev libexpected-dev libcurl4-openssl-dev libsystemd-dev
  libmicrohttpd-dev libsimdjson-dev libmimalloc-dev prometheus-cpp-dev tzdata
  libcmark-gfm-dev libcmark-gfm-extensions-dev)
case "${1-}" in
  build) ;;
  test)
    packages+=(doctest-dev git iproute2 openssl python3 python3-consul python3-croniter clang clang-format clang-tidy libclang-rt-dev systemd prometheus influxdb chromium tmux
      debootstrap systemd-container lintian fish zsh)
    # A Node.js from elsewhere brings its own npm, beside which Debian's cannot be installed.
    type -P node >/dev/null || packages+=(nodejs)
    type -P go >/dev/null || packages+=(golang-go)
    type -P npm >/dev/null || packages+=(npm)
    ;;
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
  *) say "expected \"build\" or \"test\", got \"${1-}\"; see --help"; exit 2 ;;
esac

if ! type -P dpkg-query >/dev/null || ! type -P apt-get >/dev/null; then
  say "this is not Debian or Ubuntu: install the like of these by your own package manager: ${packages[*]}"
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  # "ok installed" and not just "known": a removed package leaves its name behind. The grep serves
  # several architectures, and pkg-config, which pkgconf provides on newer releases.
  dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
    missing+=("$package")
done
# The npm client that a test holds "lictor dev" against; without it that test is skipped.
add_npm_client() {
  local modules=${LICTOR_NODE_MODULES:-${XDG_CACHE_HOME:-$HOME/.cache}/lictor/npm}
  [ "$1" = test ] && [ ! -d "$modules/node_modules/consul" ] || return 0
  npm install --prefix "$modules" --ignore-scripts --no-audit --no-fund consul@2.0.1 >&2 ||
    say "npm could not get the client consul; example.dev_node_client is skipped"
}
if [ "${#missing[@]}" -eq 0 ]; then
  add_npm_client "$1"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! type -P sudo >/dev/null; then
    say "missing: ${missing[*]}; install them as root: apt-get install ${missing[*]}"
    exit 1
  fi
  as_root=(sudo)
fi

# The environment goes through env, since sudo drops it. A lock held by an unattended upgrade is
# waited for.
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
  apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)

say "installing ${missing[*]}"
"${apt[@]}" update >&2 || say "apt-get update failed; trying with the lists at hand"
if ! "${apt[@]}" install --no-install-recommends "${missing[@]}" >&2; then
  say "apt-get could not install ${missing[*]}; see its message above"
  exit 1
fi
add_npm_client "$1"
