#!/usr/bin/env bash
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/lictor_worker.sh"

job() {
  local text
  case $LICTOR_TASK_TYPE in
    Echo)
      echo "said $LICTOR_TASK_ID"
      /bin/true # runs, whatever the task's size
      lictor_quote "$LICTOR_PARA_text"
      printf '{"text": %s, "number": %s,\n "token": %s}\n' "$lictor_quoted" "$LICTOR_ATTEMPT" "$LICTOR_FENCING_TOKEN" \
        >"$LICTOR_RESULT"
      ;;
    Fail)
      false
      echo "not reached"
      ;;
    Permanent) exit 65 ;;
    Retry) return 75 ;;
    Commit) echo '[{"key": "a", "value": "text"}, {"key": "b", "value": "new", "cas": 0}, {"key": "c", "delete": true}]' \
      >"$LICTOR_COMMIT" ;;
    Progress)
      text=$'half\n"way"'
      lictor_progress 1 2 "$text"
      ;;
    Slow) sleep 0.5 ;;
    Folder) mkdir "$LICTOR_RESULT" ;;
    Odd) echo hello >"$LICTOR_RESULT" ;;
    Huge) echo 1e400 >"$LICTOR_RESULT" ;;
    Large) printf '"%01100000d"' 0 >"$LICTOR_RESULT" ;;
    Broken) printf '"x\xff"' >"$LICTOR_RESULT" ;;
    BrokenProgress) lictor_progress 1 2 $'z\xff' ;;
    *) exit 64 ;;
  esac
}
lictor_serve job
