#!/usr/bin/env bash
# lictor is configured, and its uses of every library compile, on a Debian 13 with the packages of
# tests/install-deps.sh: no version check refuses a newer library.
#
#   debian_13.sh BUILD
#
# Needs root. Exit code 77: skipped, and why.
set -euo pipefail
shopt -s inherit_errexit

build=$(cd -P -- "$1" && pwd)
source=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
. "$source/tests/package/debian.sh"

if [ -z "${LICTOR_DEBIAN_ROOT-}" ]; then
  needs_root_and setpriv
  debian_to_build trixie
  again_in_a_copy
fi

root=$LICTOR_DEBIAN_ROOT
mount_kernel
in_tree bash -c 'cd /lictor && tests/package/compile_third_party.sh'
