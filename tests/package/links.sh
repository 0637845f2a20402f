#!/usr/bin/env bash
# Each relative link of the installed README and manual leads to an installed file.
#
#   links.sh BUILD
set -euo pipefail

# Below DESTDIR, since lictor.json goes to an absolute path.
root=$(mktemp -d)
trap 'rm -rf -- "$root"' EXIT
DESTDIR=$root cmake --install "$1" --prefix /usr --component lictor >/dev/null

bad=0
count=0
cd "$root/usr/share/doc/lictor"
while IFS=: read -r page link; do
  count=$((count + 1))
  [ -e "$(dirname "$page")/$link" ] ||
    { echo "$page: a link to $link, which is not installed" >&2; bad=1; }
done < <(grep -oE '\]\([^)#: ]+\)' README.md manual/*.md | sed 's/\](\(.*\))$/\1/; s/:]*(*/:/')
[ "$count" -ge 40 ] || { echo "found $count links only" >&2; bad=1; }
exit "$bad"
