#!/usr/bin/env bash
# Prints the flags that close every port of a Consul agent but http, server and serf_lan, one a line.
#
#   consul agent -http-port=8510 -server-port=8310 -serf-lan-port=8311 $(consul/agent-ports.sh) ...
#   consul/agent-ports.sh CONSUL_BIN     for this binary, and not the one of consul/get-consul.sh
#
# Two agents on one address need this: each opens its other ports at fixed numbers. Since 1.14 one of
# them is 8503, for gRPC with TLS. The flag that closes it is unknown to earlier versions, which
# refuse to start with it, so the binary is asked and not its version.
set -euo pipefail

case "${1-}" in
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
  "") consul=$("$(dirname -- "${BASH_SOURCE[0]}")/get-consul.sh") ;;
  *) consul=$1 ;;
esac

help=$("$consul" agent -help 2>&1) && [[ $help == *-grpc-port* ]] || {
  printf 'agent-ports: %s: expected a consul whose "agent -help" lists its flags, got: %s\n' \
    "$consul" "${help:0:200}" >&2
  exit 1
}
printf '%s\n' -serf-wan-port=-1 -dns-port=-1 -grpc-port=-1
[[ $help != *-grpc-tls-port* ]] || printf '%s\n' -grpc-tls-port=-1
