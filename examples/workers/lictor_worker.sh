# Jobs of lictor in a bash process that stays (see the manual's page "workers"). To be sourced.
#
#   . /usr/share/lictor/workers/lictor_worker.sh
#   job() {                                   # a task: what it gets and returns is as of a program
#     echo "order $LICTOR_PARA_order"         # output
#     lictor_progress 1 2 "rendered"
#     echo '{"pages": 3}' >"$LICTOR_RESULT"   # a JSON value
#   }                                         # 0 done; 75 again; 64, 65, 78 for good; else: failed
#   lictor_serve job
#
# The function runs in a subshell with `set -e`, without standard input, with the environment of
# programs (see the page "jobs"): LICTOR_TASK_ID, LICTOR_PARA_<name> and the rest; the record is in
# LICTOR_TASK. Needs bash 4.4 and nothing else.

# lictor_json_scalars TEXT: the scalars of a JSON document in the array lictor_value, by path
# ("run.task.taskPara.order"), decoded; of each object and array its text in lictor_text.
declare -gA lictor_value lictor_text
lictor_json_scalars() {
  local LC_ALL=C lictor_rest=$1 lictor_string
  lictor_value=() lictor_text=()
  lictor_json_value ""
}
lictor_json_space() { lictor_rest=${lictor_rest#"${lictor_rest%%[![:space:]]*}"}; }
lictor_utf8() { # lictor_utf8 CODE: appended to $lictor_string
  local bytes
  if (($1 == 0)); then
    return # a variable cannot hold it
  elif (($1 < 0x80)); then
    printf -v bytes '\\x%02x' "$1"
  elif (($1 < 0x800)); then
    printf -v bytes '\\x%02x' $((0xc0 | $1 >> 6)) $((0x80 | $1 & 63))
  elif (($1 < 0x10000)); then
    printf -v bytes '\\x%02x' $((0xe0 | $1 >> 12)) $((0x80 | $1 >> 6 & 63)) $((0x80 | $1 & 63))
  else
    printf -v bytes '\\x%02x' $((0xf0 | $1 >> 18)) $((0x80 | $1 >> 12 & 63)) $((0x80 | $1 >> 6 & 63)) $((0x80 | $1 & 63))
  fi
  # shellcheck disable=SC2059
  printf -v bytes "$bytes" && lictor_string+=$bytes
}
lictor_json_string() { # the string at the start, decoded, in $lictor_string
  local plain code
  [[ $lictor_rest == \"* ]] || return 1
  lictor_rest=${lictor_rest:1} lictor_string=
  while true; do
    plain=${lictor_rest%%[\"\\]*}
    lictor_string+=$plain lictor_rest=${lictor_rest:${#plain}}
    case ${lictor_rest:0:2} in
      \"*) lictor_rest=${lictor_rest:1} && return ;;
      \\n) lictor_string+=$'\n' ;;
      \\t) lictor_string+=$'\t' ;;
      \\r) lictor_string+=$'\r' ;;
      \\b) lictor_string+=$'\b' ;;
      \\f) lictor_string+=$'\f' ;;
      \\u)
        code=$((16#${lictor_rest:2:4})) lictor_rest=${lictor_rest:4}
        if ((code >= 0xd800 && code < 0xdc00)); then
          code=$((0x10000 + (code - 0xd800) * 1024 + 16#${lictor_rest:4:4} - 0xdc00)) lictor_rest=${lictor_rest:6}
        fi
        lictor_utf8 "$code"
        ;;
      \\?) lictor_string+=${lictor_rest:1:1} ;;
      *) return 1 ;;
    esac
    lictor_rest=${lictor_rest:2}
  done
}
lictor_json_value() { # lictor_json_value PATH
  local path=$1 number=0 before name
  lictor_json_space
  before=$lictor_rest
  case $lictor_rest in
    \{*)
      lictor_rest=${lictor_rest:1} && lictor_json_space
      while [[ $lictor_rest != \}* ]]; do
        lictor_json_string || return 1
        name=${lictor_string//./\\.}
        lictor_json_space && lictor_rest=${lictor_rest#:}
        lictor_json_value "${path:+$path.}$name" || return 1
        lictor_json_space && lictor_rest=${lictor_rest#,} && lictor_json_space
      done
      lictor_rest=${lictor_rest:1}
      ;;
    \[*)
      lictor_rest=${lictor_rest:1} && lictor_json_space
      while [[ $lictor_rest != \]* ]]; do
        lictor_json_value "$path.$((number++))" || return 1
        lictor_json_space && lictor_rest=${lictor_rest#,} && lictor_json_space
      done
      lictor_rest=${lictor_rest:1}
      ;;
    \"*)
      lictor_json_string || return 1
      lictor_value[$path]=$lictor_string
      return
      ;;
    *)
      [[ $lictor_rest =~ ^[-+.0-9a-zA-Z]+ ]] || return 1
      lictor_rest=${lictor_rest:${#BASH_REMATCH[0]}}
      [[ ${BASH_REMATCH[0]} == null ]] || lictor_value[$path]=${BASH_REMATCH[0]}
      return
      ;;
  esac
  [[ -z $path ]] || lictor_text[$path]=${before:0:$((${#before} - ${#lictor_rest}))}
}

lictor_quote() { # lictor_quote TEXT: as JSON in $lictor_quoted
  local text=${1//\\/\\\\} code
  text=${text//\"/\\\"} text=${text//$'\n'/\\n} text=${text//$'\t'/\\t} text=${text//$'\r'/\\r}
  for code in 1 2 3 4 5 6 7 8 11 12 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31; do
    printf -v code "\\\\x%02x" "$code" && printf -v code "$code" && text=${text//"$code"/ }
  done
  lictor_quoted=\"$text\"
}

lictor_progress() { # lictor_progress DONE TOTAL [TEXT]: two numbers
  lictor_quote "${3-}"
  # The job does not have the descriptor, and nor has what it starts.
  printf '{"progress": {"attempt": "%s", "done": %s, "total": %s, "text": %s}}\n' "$lictor_attempt" "$1" "$2" \
    "$lictor_quoted" >"/proc/$$/fd/$LICTOR_WORKER_FD"
}

lictor_serve() { # lictor_serve FUNCTION
  # The names are lictor's, since the job sees them.
  local lictor_line lictor_status lictor_name lictor_attempt lictor_members lictor_folder
  local - # `set -e` of the caller: a job that fails is no reason to end
  set +e
  lictor_folder=$(mktemp -d) || return
  # shellcheck disable=SC2064
  trap "rm -rf -- '$lictor_folder'" EXIT
  printf '{"ready": {"protocol": 1}}\n' >&"$LICTOR_WORKER_FD"
  while IFS= read -r lictor_line; do
    [[ $lictor_line == *'"run"'* ]] || continue  # a cancel comes too late: the job has the only process
    lictor_json_scalars "$lictor_line" || { echo "cannot read: ${lictor_line:0:200}" >&2 && return 1; }
    lictor_attempt=${lictor_value[run.attempt]-}
    [[ -n $lictor_attempt ]] || continue
    rm -f -- "$lictor_folder"/*
    (
      export LICTOR_TASK=${lictor_text[run.task]-} LICTOR_RESULT=$lictor_folder/result LICTOR_COMMIT=$lictor_folder/commit
      export LICTOR_TASK_ID=${lictor_value[run.id]-} LICTOR_TASK_KEY=${lictor_value[run.key]-}
      export LICTOR_TASK_TYPE=${lictor_value[run.type]-} LICTOR_QUEUE=${lictor_value[run.queue]-}
      export LICTOR_ATTEMPT=${lictor_value[run.number]-} LICTOR_DEADLINE=${lictor_value[run.deadline]-}
      export LICTOR_FENCING_TOKEN=${lictor_value[run.fencingToken]-}
      for lictor_name in "${!lictor_value[@]}"; do
        [[ $lictor_name == run.task.taskPara.* ]] || continue
        lictor_members=${lictor_name#run.task.taskPara.}
        lictor_members=${lictor_members//\\./_}
        [[ $lictor_members != *.* ]] || continue # of an object within
        export "LICTOR_PARA_${lictor_members//[^A-Za-z0-9_]/_}=${lictor_value[$lictor_name]}"
      done
      set -e
      eval "exec $LICTOR_WORKER_FD>&-"
      "$1" </dev/null
    )
    lictor_status=$?
    lictor_members="\"attempt\": \"$lictor_attempt\""
    if ((lictor_status == 0)); then
      [[ ! -s $lictor_folder/result ]] || lictor_members+=", \"result\": $(tr '\n' ' ' <"$lictor_folder/result")"
      [[ ! -s $lictor_folder/commit ]] || lictor_members+=", \"commit\": $(tr '\n' ' ' <"$lictor_folder/commit")"
      printf '{"done": {%s}}\n' "$lictor_members" >&"$LICTOR_WORKER_FD"
    else
      ((lictor_status != 64 && lictor_status != 65 && lictor_status != 78)) || lictor_members+=', "permanent": true'
      printf '{"failed": {%s, "error": "exit status %s"}}\n' "$lictor_members" "$lictor_status" >&"$LICTOR_WORKER_FD"
    fi
  done
}
