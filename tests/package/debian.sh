# Debians for the tests that need one of their own. To be sourced, as root, with $build set: each is
# made once a build folder, and all of one release from one debootstrap. The network is used for
# this and at no other time.

skip() {
  echo "skipped: $*"
  exit 77
}

# own_release: sets $release to that of this machine, on which what it builds runs.
own_release() {
  release=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
  case $release in
    bookworm | trixie) ;;
    *) skip "what is built on a \"$release\" may not run on Debian 12 or 13" ;;
  esac
}

needs_root_and() {  # needs_root_and TOOL...
  local tool
  [ "$(id -u)" -eq 0 ] || skip "needs root, to make a Debian"
  for tool in debootstrap unshare chroot apt-get "$@"; do
    type -P "$tool" >/dev/null || skip "needs $tool (tests/install-deps.sh test)"
  done
}

# debian_tree RELEASE NAME WANTS SETUP...: sets $tree to a minimal Debian in which SETUP, which is
# given its folder, went well. It is made again when WANTS, which says what SETUP does, changes.
debian_tree() {
  local release=$1 name=$2 wants=$3 base=$build/debian/$1
  shift 3
  tree=$base-$name
  mkdir -p "$build/debian"
  exec 8>"$base.lock"
  flock 8  # The other tests wait, and find what they need.
  if [ "$(cat "$tree.wants" 2>/dev/null)" != "$wants" ]; then
    debian_base "$release" "$base"
    rm -rf -- "$tree" "$tree.wants"
    cp -a -- "$base" "$tree"
    "$@" "$tree" >"$tree.log" 2>&1 || { tail -n 20 "$tree.log" >&2; rm -rf -- "$tree"; return 1; }
    rm -rf -- "$tree"/var/cache/apt/archives/*.deb
    printf '%s\n' "$wants" >"$tree.wants"
  fi
  exec 8>&-
}

debian_base() {  # debian_base RELEASE FOLDER
  local mirror folder
  [ ! -d "$2" ] || return 0
  # An archive of Debian has all releases.
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' \
    'Component: main' "Architecture: $(dpkg --print-architecture)" | head -n 1)
  [ -n "$mirror" ] || skip "apt of this machine knows no mirror of Debian"
  # Not below the build folder: debootstrap takes no path with a space.
  folder=$(mktemp -d /var/tmp/lictor-debian.XXXXXX)
  if ! debootstrap --variant=minbase "$1" "$folder/tree" "$mirror" >"$folder/log" 2>&1; then
    tail -n 5 "$folder/log"
    rm -rf -- "$folder"
    skip "debootstrap could not make a Debian \"$1\", see above"
  fi
  # Nobody minds if a power cut takes it.
  echo force-unsafe-io >"$folder/tree/etc/dpkg/dpkg.cfg.d/unsafe-io"
  rm -rf -- "$2.new"
  mv -- "$folder/tree" "$2.new"
  mv -- "$2.new" "$2"
  rm -rf -- "$folder"
}

# debian_to_build RELEASE: sets $tree to a Debian with what install-deps.sh says that building lictor
# and trying it takes, and no more.
debian_to_build() {
  debian_tree "$1" build "$(md5sum <"$source/tests/install-deps.sh")" install_build_deps
}
install_build_deps() {
  cp -- "$source/tests/install-deps.sh" "$1/root" &&
    chroot "$1" /root/install-deps.sh build
}

# again_in_a_copy: runs this script again with $LICTOR_DEBIAN_ROOT, a copy of $tree with lictor's
# sources in /lictor, and ends with it. That has mounts, processes and a network of its own, which end
# with this process, as the copy does.
again_in_a_copy() {
  local inner=""
  root=$(mktemp -d /var/tmp/lictor-debian.XXXXXX)
  finish() {
    local status=$?
    trap - EXIT
    [ -z "$inner" ] || { kill -KILL "$inner" && wait "$inner" || true; } 2>/dev/null
    rm -rf --one-file-system -- "$root"
    exit "$status"
  }
  trap finish EXIT
  trap 'exit 143' TERM INT HUP
  cp -a -- "$tree/." "$root"
  mkdir -- "$root/lictor"
  tar -C "$source" --exclude=./build --exclude=./.git -c . | tar -C "$root/lictor" -x
  LICTOR_DEBIAN_ROOT=$root setpriv --pdeathsig KILL \
    unshare --mount --pid --net --fork --mount-proc --kill-child=KILL -- "$0" "$build" &
  inner=$!
  wait "$inner" || exit
  exit 0
}

# mount_kernel: what programs expect of it, in $root.
mount_kernel() {
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
}

# in_tree COMMAND...: in $root, without anything of this machine.
in_tree() {
  env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=xterm \
    "$(type -P chroot)" "$root" "$@"
}
