#!/usr/bin/env bash
# Writes a schedule that backs a folder up, by curl alone.
#
#   add.sh NAME RULE FOLDER TO
#
# RULE: when, as members of the record: '"cron": "30 2 * * *", "timezone": "Europe/Rome"'. Exit code
# 1: there is a schedule of that name; it was left as it is.
set -euo pipefail

name=$1 rule=$2 folder=$3 to=$4
consul=${CONSUL_HTTP_ADDR:-127.0.0.1:8500}
case "$consul" in http://* | https://*) ;; *) consul=http://$consul ;; esac
token=()
if [ -n "${CONSUL_HTTP_TOKEN-}" ]; then token=(-H "X-Consul-Token: $CONSUL_HTTP_TOKEN"); fi

# "cas=0": only if there is none. A leader reads the record within a moment; "lictor check" and
# "lictor schedule list" say what is wrong with one that it cannot read.
written=$(curl -sS --fail-with-body "${token[@]}" -X PUT \
  "$consul/v1/kv/lictor/default/schedules/$name?cas=0" -d "{
  $rule,
  \"missed\": \"once\", \"overlap\": \"skip\", \"jitter\": \"0s\",
  \"task\": {\"taskType\": \"Backup\",
    \"taskPara\": {\"folder\": \"$folder\", \"to\": \"$to\", \"tick\": \"{tick}\"}}}") || {
  echo "$written" >&2
  exit 2
}
[ "$written" = true ] || { echo "there is a schedule $name already" >&2; exit 1; }
echo "wrote lictor/default/schedules/$name"
