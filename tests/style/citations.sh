#!/usr/bin/env bash
# What comments and pages cite is in the repository: sections of src/manual/consul.md, the tests that
# this page names, the manual's pages; and no paper that lies elsewhere.
#
#   citations.sh [ROOT]   ROOT: a checkout (this one); exits 1 and names each citation of nothing
set -euo pipefail
cd -- "${1:-$(dirname -- "${BASH_SOURCE[0]}")/../..}"

bad=0
tell() { echo "$1" >&2; bad=1; }
places=(*.md CMakeLists.txt include src tests consul examples systemd)

while read -r line; do
  tell "$line: cites a paper that is not in the repository"
done < <(grep -rnoE 'CONSUL-[F]ACTS|\b[D]ESIGN(\.md| section)|\b[S]TYLE\.md' "${places[@]}")

page=src/manual/consul.md
while IFS=: read -r file line text; do
  for section in $(grep -oE '[0-9]+(\.[0-9]+)?' <<<"${text#consul.md}"); do
    grep -qE "^###? $section\.? " "$page" || tell "$file:$line: $page has no section $section"
  done
done < <(grep -rnoE 'consul\.md [0-9]+(\.[0-9]+)?((,| to| and) [0-9]+(\.[0-9]+)?)*' "${places[@]}")
for test in $(grep -oE '`(tests/)?(unit|live|sim)/[a-z_/]+(\.cpp)?`' "$page" | tr -d '`' | sort -u); do
  test=tests/${test#tests/}
  [ -f "${test%.cpp}.cpp" ] || tell "$page: there is no ${test%.cpp}.cpp"
done
exit "$bad"
