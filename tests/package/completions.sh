#!/usr/bin/env bash
# The shells complete, and the man page has, every command and every option that --help shows.
#
#   completions.sh BUILD
set -euo pipefail

lictor=$1/src/lictor
made=$1/src/package
scripts=$(dirname -- "$(readlink -f -- "$0")")/../../src/package
PATH=$(readlink -f -- "$1")/src:$PATH  # the scripts ask the program that is completed
bad=0
tell() { echo "$*" >&2; bad=1; }

# --- As bash completes on TAB. ---
# shellcheck disable=SC1091
. "$scripts/lictor.bash"
compopt() { :; }  # works during a completion alone
# completed WORD...: what the last word is completed to.
completed() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
  _lictor
  printf "%s\n" "${COMPREPLY[*]-}"  # echo would take -n
}
# expect WANTED WORD...
expect() {
  local wanted=$1
  shift
  [ "$(completed "$@")" = "$wanted" ] || tell "bash: $*<TAB>: expected \"$wanted\", got \"$(completed "$@")\""
}
expect submit lictor su
expect "list show purge" lictor dead ""
expect purge lictor --queue list dead p
expect --step-down lictor leader --st
expect help lictor he
expect concepts lictor help conc
expect submit lictor help su
expect --token-file lictor list --to
expect "--older-than" lictor dead list --ol
expect "--timezone" lictor schedule add --timez
expect -n lictor schedule next -n
expect --from lictor schedule next --fr
expect "" lictor dead list --type --ol
expect "" lictor list --type = ""
files=$(mktemp -d)
cd -- "$files"
touch tasks.json
expect tasks.json lictor --config ta
expect tasks.json lictor submit --ndjson = ta
cd - >/dev/null
rm -r -- "$files"

# --- All of them, by bash and on the page. ---
page=$(gzip -dc "$made/lictor.1.gz" | sed 's/\\-/-/g')
# Of a --help on standard input, one a line.
options_in() { sed -n 's/^  \(-[^ ]*\).*/\1/p' | tr , '\n'; }
commands_in() { sed -n '/^Commands:/,/^$/s/^  \([a-z]\+\) .*/\1/p'; }

# look COMMAND...: its options, then the commands within it.
look() {
  local path="$*" help option name
  help=$("$lictor" "$@" --help)
  for option in $(options_in <<<"$help"); do
    [[ " $(completed lictor "$@" "$option") " = *" $option "* ]] || tell "bash: lictor $path: no $option"
    [[ $page = *"\\fB$option\\fR"* ]] || tell "man: lictor $path: no $option"
  done
  for name in $(commands_in <<<"$help"); do
    [[ " $(completed lictor "$@" "") " = *" $name "* ]] || tell "bash: lictor $path: no $name"
    grep -qx ".SS lictor $path${path:+ }$name" <<<"$page" || tell "man: no lictor $path $name"
    look "$@" "$name"
  done
}
found=$("$lictor" --help | commands_in | wc -l)
[ "$found" -ge 20 ] || tell "lictor --help: expected at least 20 commands, found $found"
look

# --- By the other shells themselves, where they are installed. ---
if type -P fish >/dev/null; then
  # shellcheck disable=SC2016
  said=$(HOME=/nonexistent fish --no-config -c 'source $argv[1]; complete -C "lictor dead list --ol"; complete -C "lictor su"; complete -C "lictor help conc"' \
    "$scripts/lictor.fish" | cut -f 1 | tr '\n' ' ')
  # Fish 4 also offers what has the letters in this order.
  [[ $said = "--older-than "*"submit "*"concepts "* ]] || tell "fish completes to \"$said\""
  # shellcheck disable=SC2016
  said=$(cd -- "$scripts" && HOME=/nonexistent fish --no-config -c 'source $argv[1]; complete -C "lictor --config man"; complete -C "lictor --config=man"' \
    "$scripts/lictor.fish" | cut -f 1 | tr '\n' ' ')
  [[ $said = *"man.cpp "*"--config=man.cpp "* ]] || tell "fish completes files to \"$said\""
fi
if type -P zsh >/dev/null; then
  # What the script hands to zsh's own functions.
  # shellcheck disable=SC2016
  said=$(zsh -f -c '
    compset() { : }
    _files() { print files }
    _describe() { print -l -- "${(@P)4}" }
    for line in "lictor dead list --ol" "lictor su" "lictor --config ta"; do
      words=(${=line}) CURRENT=$#words
      . $1
    done' zsh "$scripts/_lictor")
  for wanted in "--older-than:Only those that died longer ago than this" "submit:Write a task, or many" files; do
    grep -qxF -- "$wanted" <<<"$said" || tell "zsh: no $wanted in: $said"
  done
fi
exit "$bad"
