#!/usr/bin/env bash
# Makes tablespaces by examples/create-tablespace, which has to be copied beside this file, without a
# process of lictor's for each task.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
. "$here/lictor_worker.sh"

folder=$1
create() { "$here/create-tablespace" "$folder"; }
lictor_serve create
