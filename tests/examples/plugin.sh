#!/usr/bin/env bash
# Installs lictor from BUILD, builds examples/plugin by one g++ line against its headers, without
# its library, and has the installed command load it and run tasks from a real Consul.
#
#   plugin.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

install_lictor
lictor=$dir/prefix/bin/lictor
"${CXX:-g++}" -std=c++20 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden -I "$dir/prefix/include" \
  -o "$dir/libresize.so" examples/plugin/resize.cpp
chmod 755 "$dir/libresize.so"
sed "s|/opt/jobs/libresize.so|$dir/libresize.so|" examples/plugin/lictor.json >"$dir/lictor.json"

start_consul
start daemon.log "$lictor" run --config "$dir/lictor.json"

{ printf 'P6\n4 2\n255\n'; printf 'aaabbbcccdddeeefffggghhh'; } >"$dir/a.ppm"
"$lictor" submit Resize --para from="$dir/a.ppm" --para to="$dir/small.ppm" --para width=2 \
  --wait --wait-timeout 60s
cmp "$dir/small.ppm" <(printf 'P6\n2 1\n255\naaaccc')
expect_dead "$lictor" submit Resize --wait --wait-timeout 60s
grep -q "taskPara: " "$dir/dead.log"

# Another plug-in ABI: refused at the start, with what to do.
sed "s/kPluginAbi = 1;/kPluginAbi = 2;/" "$dir/prefix/include/lictor/plugin.h" >"$dir/plugin.h"
mkdir -p "$dir/other/lictor"
cp "$dir"/prefix/include/lictor/*.h "$dir/other/lictor"
mv "$dir/plugin.h" "$dir/other/lictor"
"${CXX:-g++}" -std=c++20 -fPIC -shared -I "$dir/other" -o "$dir/other.so" examples/plugin/resize.cpp
chmod 755 "$dir/other.so"
sed "s|libresize.so|other.so|" "$dir/lictor.json" >"$dir/other.json"
code=0
LICTOR_STATE_DIR=$dir/other-state "$lictor" run --config "$dir/other.json" >"$dir/other.log" 2>&1 || code=$?
[ "$code" -eq 2 ]
grep -q 'executors.Resize.plugin: plug-in ".*other.so": .*plug-in ABI 2, .*plug-in ABI 1, .*; rebuild' "$dir/other.log"
