#!/usr/bin/env bash
# Each page of src/manual is printed by "lictor help TOPIC", served by the admin API and a man page
# without warnings of groff. The build refuses a configuration page that lacks a key or has one too
# many.
#
#   topics.sh BUILD CMAKE
. "$(dirname -- "${BASH_SOURCE[0]}")/../examples/common.sh"

lictor=$build/src/lictor
made=$build/src/manual
bad=0
tell() { echo "$*" >&2; bad=1; }

start_dev
page=$(sed -n 's/^  page    //p' "$dir/dev.log")
overview=$("$lictor" help)
curl -fs "$page/manual/" >"$dir/index.html"

topics=0
for file in src/manual/*.md; do
  topic=$(basename "$file" .md)
  topics=$((topics + 1))

  text=$("$lictor" help "$topic") || tell "lictor help $topic: exit code $?"
  [ "$text" = "$(<"$file")" ] || tell "lictor help $topic: not the page, begins with \"${text%%$'\n'*}\""
  [[ $overview = *"  $topic "*"$(sed -n 3p "$file")"* ]] || tell "lictor help: no $topic"

  curl -fs -D "$dir/headers" "$page/manual/$topic" >"$dir/page.html" || tell "/manual/$topic: not served"
  grep -qi "^Content-Security-Policy: default-src 'none'" "$dir/headers" || tell "/manual/$topic: no policy"
  ! grep -qE '<style|<script>| style=| on[a-z]+=' "$dir/page.html" || tell "/manual/$topic: inline style or script"
  twice=$(grep -o ' id="[^"]*"' "$dir/page.html" | sort | uniq -d)
  [ -z "$twice" ] || tell "/manual/$topic: twice:$twice"
  grep -q "href=\"$topic\"" "$dir/index.html" || tell "/manual/: no $topic"
  for link in $(grep -o 'href="[^"]*"' "$dir/page.html" | sed 's/^href="//;s/"$//;s/#.*//'); do
    case $link in
      http*) ;;
      ../*) curl -fs -o /dev/null "$page/${link#../}" || tell "/manual/$topic: $link leads nowhere" ;;
      *) curl -fs -o /dev/null "$page/manual/$link" || tell "/manual/$topic: $link leads nowhere" ;;
    esac
  done

  man=$made/lictor-$topic.7
  [ "$topic" != configuration ] || man=$made/lictor.json.5
  if type -P groff >/dev/null; then
    said=$(LC_ALL=C.UTF-8 groff -man -K utf8 -Tutf8 -rLL=78n -ww -z "$man" 2>&1 || true)
    [ -z "$said" ] || tell "$man: $said"
  fi
  grep -q '^\.SH NAME$' "$man" || tell "$man: no name"
done
[ "$topics" -ge 11 ] || tell "expected 11 pages or more, found $topics"

# A command is explained by its own help; a word that is neither gets an error.
[ "$("$lictor" help submit)" = "$("$lictor" submit --help)" ] || tell "lictor help submit is not submit --help"
code=0
said=$("$lictor" help concept 2>&1) || code=$?
expect "the exit code of an unknown topic" "$code" 2
[[ $said = *'did you mean concepts?; commands: run, '*'; topics: concepts, '* ]] || tell "lictor help concept: $said"

# refused TEXT EDIT: the page with this sed expression is refused, and TEXT says why.
refused() {
  mkdir -p "$dir/edited"
  sed "$2" src/manual/configuration.md >"$dir/edited/configuration.md"
  if said=$("$build/src/package/lictor_reference" "$dir/edited" src/package/page.html.in "$dir/edited/configuration.md" 2>&1); then
    tell "a configuration page edited by \"$2\" is taken"
  elif [[ $said != *"$1"* ]]; then
    tell "a configuration page edited by \"$2\": expected \"$1\", got \"$said\""
  fi
}
refused "no heading for state_dir" '/^### state_dir$/d'
refused "there is no key tasks_limit" 's/^### concurrency$/&\n\n### tasks_limit/'
refused "no heading for limits.core" 's/ limits.core,//'
refused 'below "### hang_timeout" expected, between blank lines:' 's/^Form: a duration from 0s to 1h/Form: a duration from 1s to 1h/'
exit "$bad"
