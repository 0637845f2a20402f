#!/usr/bin/env bash
# The alert rules fire as they say, and every metric that alerts and dashboard use is there.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../examples/monitoring"
if ! type -P promtool >/dev/null; then
  echo "skipped: no promtool (Debian's package prometheus)"
  exit 77
fi
promtool check config prometheus.yml
promtool check config prometheus-influxdb.yml
promtool check rules alerts.yml
promtool test rules alerts_test.yml
rc=0
for name in $(grep -ohE '\blictor_[a-z_]+' alerts.yml dashboard.json | sort -u); do
  base=${name%_bucket} base=${base%_count} base=${base%_sum}
  grep -qE "\"($name|$base)\"" ../../src/admin/metrics.cpp ../../src/admin/gauges.cpp ||
    { echo "$name: no such metric in src/admin" >&2; rc=1; }
done
exit "$rc"
