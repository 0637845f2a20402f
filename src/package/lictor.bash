# bash completion for lictor: the program says itself what may come next (lictor __complete WORD...).

_lictor() {
  local cur=${COMP_WORDS[COMP_CWORD]} words=() word found
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [ "$word" = "=" ] || words+=("$word") # "--option=value" comes as three words
  done
  [ "$cur" != "=" ] || cur=""
  found=$("${COMP_WORDS[0]}" __complete "${words[@]}" "$cur" 2>/dev/null)
  case $found in
    :file) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    :folder) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$(cut -f 1 <<<"$found")" -- "$cur") ;;
  esac
}

complete -F _lictor lictor
