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
# LICTOR_TASK. What an environment cannot hold, 127 KiB or more, is a variable of the function alone.
# Needs bash 4.4, grep, sed and the coreutils.

# The pieces of JSON. A text in them is valid UTF-8, without half a surrogate pair; a number is one that
# a double can hold.
lictor_char=$'[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}'
lictor_char+=$'|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}'
lictor_escape='\\(["\\/bfnrt]|u([0-9A-CE-Fa-ce-f][0-9A-Fa-f]{3}|[Dd][0-7][0-9A-Fa-f]{2}'
lictor_escape+='|[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}))'
lictor_text=$'"([] !#-[^-\x7f]|'"$lictor_char|$lictor_escape)*\""
lictor_number='-?(0|[1-9][0-9]{0,99})(\.[0-9]+)?([eE][-+]?0*[0-9]{1,2})?'

lictor_is_json() { # lictor_is_json TEXT: one JSON value, nested 512 deep at most
  local -x LC_ALL=C
  local left=$1 before scalar=$'[\x01\x02]' depth
  [[ $left != *[$'\x01\x02']* ]] || return 1
  # What stays: \x02 for a text, \x01 for any other value, and what holds them together.
  left=$(sed -E -e "s/$lictor_text/"$'\x02/g' -e "s/$lictor_number|true|false|null/"$'\x01/g' \
    -e $'s/[ \t\r]+//g' <<<"$left")
  for ((depth = 0; depth < 512; depth++)); do
    [[ $left == *[]}]* ]] || break
    before=$left
    left=$(sed -E "s/\\[($scalar(,$scalar)*)?\\]|\\{("$'\x02'":$scalar(,"$'\x02'":$scalar)*)?\\}/"$'\x01/g' <<<"$left")
    [[ $left != "$before" ]] || return 1
  done
  [[ $left == $'\x01' || $left == $'\x02' ]]
}

lictor_utf8() { # lictor_utf8 CODE: the character in $lictor_character
  local bytes
  if (($1 == 0)); then
    lictor_character= && return # a variable cannot hold it
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
  printf -v lictor_character "$bytes"
}

lictor_decode() { # lictor_decode TEXT: a text with its quotes, decoded, in $lictor_decoded
  local part code high=0 i IFS=
  local -a parts
  lictor_decoded=${1:1:${#1}-2}
  [[ $lictor_decoded == *\\* ]] || return 0
  mapfile -t -d '\' parts <<<"$lictor_decoded"
  parts[-1]=${parts[-1]%$'\n'}
  for ((i = 1; i < ${#parts[@]}; i++)); do
    part=${parts[i]}
    case $part in
      '') parts[i]='\' && ((i++)) ;; # and the next part follows as it is
      n*) parts[i]=$'\n'${part:1} ;;
      t*) parts[i]=$'\t'${part:1} ;;
      r*) parts[i]=$'\r'${part:1} ;;
      b*) parts[i]=$'\b'${part:1} ;;
      f*) parts[i]=$'\f'${part:1} ;;
      u*)
        code=$((16#${part:1:4})) parts[i]=${part:5}
        if ((code >= 0xd800 && code < 0xdc00)); then
          high=$code
          continue
        fi
        ((code < 0xdc00 || code > 0xdfff)) || code=$((0x10000 + (high - 0xd800) * 1024 + code - 0xdc00))
        lictor_utf8 "$code"
        parts[i]=$lictor_character${part:5}
        ;;
    esac
  done
  lictor_decoded="${parts[*]}"
}

# lictor_read LINE: of a "run" its members in lictor_run, by name, the record in lictor_run[task]; the
# scalars of taskPara in lictor_para, by the names of their variables. One pass, so that its time grows
# with the line's length and no faster; what lies deeper is skipped. Fails for what is no request.
declare -gA lictor_run lictor_para
lictor_read() {
  local -x LC_ALL=C
  local IFS= token name='' value depth=0 deeper begin is_run=0 i
  local -a tokens
  lictor_run=() lictor_para=()
  mapfile -t tokens < <(grep -oE '"([^"\\]|\\.)*"|[{]|[}]|[[]+|[]]+|[^][{}"]+' <<<"$1")
  ((${#tokens[@]} > 0)) || return 1
  for ((i = 0; i < ${#tokens[@]}; i++)); do
    token=${tokens[i]}
    case $token in
      \"*)
        if [[ -z $name ]]; then
          name=$token && continue
        fi
        lictor_decode "$token"
        lictor_member "$depth" "$name" "$lictor_decoded"
        name=
        ;;
      [{[]*)
        if [[ $depth$name == 0 || $depth$name == '1"run"' || $depth$name == '2"task"' || $depth$name == '3"taskPara"' ]] &&
          [[ $token == '{' ]]; then
          ((++depth != 2)) || is_run=1
          ((depth != 3)) || begin=$i
        else
          for ((deeper = ${#token}; deeper > 0; )); do
            ((++i < ${#tokens[@]})) || return 1
            case ${tokens[i]} in
              [{[]*) ((deeper += ${#tokens[i]})) ;;
              [}\]]*) ((deeper -= ${#tokens[i]})) ;;
            esac
          done
        fi
        name=
        ;;
      '}') ((depth-- != 3)) || lictor_run[task]="${tokens[*]:begin:i-begin+1}" ;;
      *) # ":1," after a name
        value=${token//[[:space:]]/}
        [[ -n $name && $value == :?* ]] || continue
        value=${value#:} value=${value%,}
        [[ $value != null ]] || value=
        lictor_member "$depth" "$name" "$value"
        name=
        ;;
    esac
  done
  ((depth == 0)) && [[ $is_run == 0 || -n ${lictor_run[attempt]-} ]]
}
lictor_member() { # lictor_member DEPTH NAME VALUE
  case $1 in
    2) lictor_run[${2:1:${#2}-2}]=$3 ;;
    4)
      lictor_decode "$2"
      [[ -z $lictor_decoded ]] || lictor_para[LICTOR_PARA_${lictor_decoded//[^A-Za-z0-9_]/_}]=$3
      ;;
  esac
}

lictor_quote() { # lictor_quote TEXT: as JSON in $lictor_quoted; what is no UTF-8 is left out
  local -x LC_ALL=C
  local text=${1//\\/\\\\} code
  text=${text//\"/\\\"} text=${text//$'\n'/\\n} text=${text//$'\t'/\\t} text=${text//$'\r'/\\r}
  if [[ $text == *[$'\x01'-$'\x1f']* ]]; then
    for code in 1 2 3 4 5 6 7 8 11 12 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31; do
      printf -v code "\\\\x%02x" "$code" && printf -v code "$code" && text=${text//"$code"/ }
    done
  fi
  [[ $text != *[$'\x80'-$'\xff']* ]] || text=$(sed -E $'s/([\x01-\x7f]|'"$lictor_char"')|./\1/g' <<<"$text")
  lictor_quoted=\"$text\"
}

lictor_progress() { # lictor_progress DONE TOTAL [TEXT]: two numbers
  [[ $1 =~ ^[0-9]{1,15}(\.[0-9]+)?$ && $2 =~ ^[0-9]{1,15}(\.[0-9]+)?$ ]] ||
    { echo "lictor_progress: expected two numbers, got $1 and $2" >&2 && return 1; }
  lictor_quote "${3:0:1000}"
  # The job does not have the descriptor, and nor has what it starts.
  printf '{"progress": {"attempt": "%s", "done": %s, "total": %s, "text": %s}}\n' "$lictor_attempt" "$1" "$2" \
    "$lictor_quoted" >"/proc/$$/fd/$LICTOR_WORKER_FD"
}

lictor_handed() { # lictor_handed FILE: the JSON value in it, on one line, in $lictor_value; "": it is empty
  lictor_value=
  [[ -s $1 ]] || return 0
  (($(wc -c <"$1") <= 524288)) || return 1
  lictor_value=$(tr '\n\0' '\r\1' <"$1")
  lictor_is_json "$lictor_value" || return 1
  lictor_value=${lictor_value//$'\r'/ }
}

lictor_set() { # lictor_set NAME VALUE: a variable of the job, and of what it starts where that can have it
  declare -g "$1=$2"
  local LC_ALL=C
  if ((${#1} + ${#2} <= 130048)); then export "${1?}"; else declare -g +x "$1"; fi
}

lictor_serve() { # lictor_serve FUNCTION
  # The names are lictor's, since the job sees them.
  local lictor_line lictor_status lictor_name lictor_attempt lictor_members lictor_folder lictor_value
  local - # `set -e` of the caller: a job that fails is no reason to end
  set +e
  lictor_folder=$(mktemp -d) || return
  # shellcheck disable=SC2064
  trap "rm -rf -- '$lictor_folder'" EXIT
  printf '{"ready": {"protocol": 1}}\n' >&"$LICTOR_WORKER_FD"
  while IFS= read -r lictor_line; do
    [[ $lictor_line == *'"run"'* ]] || continue  # a cancel comes too late: the job has the only process
    lictor_read "$lictor_line" || { echo "lictor_worker: cannot read: ${lictor_line:0:200}" >&2 && return 1; }
    lictor_attempt=${lictor_run[attempt]-}
    [[ -n $lictor_attempt ]] || continue
    rm -rf -- "$lictor_folder"/*
    (
      lictor_set LICTOR_TASK "${lictor_run[task]-}"
      export LICTOR_RESULT=$lictor_folder/result LICTOR_COMMIT=$lictor_folder/commit
      export LICTOR_TASK_ID=${lictor_run[id]-} LICTOR_TASK_KEY=${lictor_run[key]-}
      export LICTOR_TASK_TYPE=${lictor_run[type]-} LICTOR_QUEUE=${lictor_run[queue]-}
      export LICTOR_ATTEMPT=${lictor_run[number]-} LICTOR_DEADLINE=${lictor_run[deadline]-}
      export LICTOR_FENCING_TOKEN=${lictor_run[fencingToken]-}
      for lictor_name in "${!lictor_para[@]}"; do
        lictor_set "$lictor_name" "${lictor_para[$lictor_name]}"
      done
      set -e
      eval "exec $LICTOR_WORKER_FD>&-"
      "$1" </dev/null
    )
    lictor_status=$?
    lictor_members="\"attempt\": \"$lictor_attempt\""
    if ((lictor_status != 0)); then
      ((lictor_status != 64 && lictor_status != 65 && lictor_status != 78)) || lictor_members+=', "permanent": true'
      lictor_line="{\"failed\": {$lictor_members, \"error\": \"exit status $lictor_status\"}}"
    elif ! lictor_handed "$lictor_folder/commit"; then
      lictor_line="{\"failed\": {$lictor_members, \"error\": \"its KV writes cannot be made: LICTOR_COMMIT is no JSON, or too large\"}}"
    else
      lictor_line="{\"done\": {$lictor_members${lictor_value:+, \"commit\": $lictor_value}"
      if lictor_handed "$lictor_folder/result" && ((${#lictor_line} + ${#lictor_value} < 1000000)); then
        lictor_line+=${lictor_value:+, \"result\": $lictor_value}
      else
        echo "lictor_worker: the result is left out: LICTOR_RESULT is no JSON, or too large" >&2
      fi
      lictor_line+=}}
    fi
    printf '%s\n' "$lictor_line" >&"$LICTOR_WORKER_FD"
  done
}
