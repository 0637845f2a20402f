#!/usr/bin/env bash
# The completions and the man page know every command and every option that --help shows, and the
# shells complete by them.
#
#   completions.sh BUILD
set -euo pipefail

lictor=$1/src/lictor
made=$1/src/package
bad=0
tell() { echo "$*" >&2; bad=1; }

# --- As bash completes on TAB. ---
# shellcheck disable=SC1091
. "$made/lictor.bash"
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

# --- In each of the files. ---
page=$(gzip -dc "$made/lictor.1.gz" | sed 's/\\-/-/g')
# Of a --help on standard input, one a line.
options_in() { sed -n 's/^  \(-[^ ]*\).*/\1/p' | tr , '\n'; }
commands_in() { sed -n '/^Commands:/,/^$/s/^  \([a-z]\+\) .*/\1/p'; }

# look COMMAND...: its options, then the commands within it.
look() {
  local path="$*" help option name flag zsh fish
  help=$("$lictor" "$@" --help)
  zsh=$(sed -n "/^_lictor${path:+_${path// /_}}()/,/^}/p" "$made/_lictor")
  fish=$(grep -E "^complete -c lictor( -n '__lictor_at \"$path\"')? -[sl] " "$made/lictor.fish")
  for option in $(options_in <<<"$help"); do
    [[ " $(completed lictor "$@" "$option") " = *" $option "* ]] || tell "bash: lictor $path: no $option"
    [[ $zsh =~ [\'{,]"$option"[\'=},] ]] || tell "zsh: lictor $path: no $option"
    flag="-s ${option#-}"
    [ "$option" = "${option#--}" ] || flag="-l ${option#--}"
    [[ $fish = *" $flag "* ]] || tell "fish: lictor $path: no $option"
    [[ $page = *"\\fB$option\\fR"* ]] || tell "man: lictor $path: no $option"
  done
  for name in $(commands_in <<<"$help"); do
    [[ " $(completed lictor "$@" "") " = *" $name "* ]] || tell "bash: lictor $path: no $name"
    grep -q "^ *'$name:" "$made/_lictor" || tell "zsh: lictor $path: no $name"
    grep -q "^complete -c lictor -n '__lictor_at \"$path\"' -a $name " "$made/lictor.fish" ||
      tell "fish: lictor $path: no $name"
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
  said=$(HOME=/nonexistent fish --no-config -c 'source $argv[1]; complete -C "lictor dead list --ol"; complete -C "lictor su"' \
    "$made/lictor.fish" | cut -f 1 | tr '\n' ' ')
  # Fish 4 also offers what has the letters in this order.
  [[ $said = "--older-than "*"submit "* ]] || tell "fish completes to \"$said\""
fi
if type -P zsh >/dev/null; then
  zsh -n "$made/_lictor" || tell "zsh cannot read _lictor"
fi
exit "$bad"
