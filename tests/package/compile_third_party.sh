#!/bin/bash
# In a Debian that may be newer than any lictor was built on: configures lictor in the folder that it
# is started in, and compiles enough of its files to include every header of other projects.
set -euo pipefail

# What the compiler accepts is asked here, and not how fast it gets.
cmake --preset release -DLICTOR_UNITY=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS="-O0 -g0" >/tmp/configure.log 2>&1 || { cat /tmp/configure.log >&2; exit 1; }

# Of a header that lictor includes: its file, if it comes neither from the C library nor the kernel.
third_party() {
  local file
  for file in "/usr/include/$1" "/usr/include/$(gcc -print-multiarch)/$1"; do
    [ -e "$file" ] || continue
    grep -qE '^(libc6-dev|linux-libc-dev)' <(dpkg -S "$file") || echo "$file"
    return 0
  done
  echo "no package that install-deps.sh names has <$1>" >&2
  return 1
}

# user_of INCLUDED: the largest source file that includes it, which uses most of it, or that includes a header that does.
user_of() {
  local included=$1 users
  for _ in 1 2 3; do
    users=$(grep -rlF --include='*.cpp' "#include $included" src) && break
    included=$(grep -rlF --include='*.h' "#include $included" src include | sort | head -n 1)
    included="\"$(sed 's,^[a-z]*/,,' <<<"$included")\""
  done
  ls -S -- $users | head -n 1
}

headers=()
files=()
for header in $(grep -rhoP '^#include <\K[^>]+(\.h|\.hpp)(?=>)' src include | grep -v '^lictor/' | sort -u); do
  file=$(third_party "$header")
  [ -n "$file" ] || continue
  headers+=("$file")
  user=$(user_of "<$header>")
  files+=("$user")
done
[ "${#headers[@]}" -ge 15 ] || { echo "found only ${headers[*]}" >&2; exit 1; }

mapfile -t objects <<<"$(printf "$PWD/%s^\n" "${files[@]}" | sort -u)"
ninja -C build/release "${objects[@]}" >/tmp/build.log 2>&1 || { tail -n 60 /tmp/build.log >&2; exit 1; }
ninja -C build/release -t deps >/tmp/deps.log
for header in "${headers[@]}"; do
  grep -qF " $header" /tmp/deps.log || { echo "nothing that was compiled includes $header" >&2; exit 1; }
done
echo "${#headers[@]} headers in ${#objects[@]} files"
