#!/usr/bin/env bash
# Prints what a section of README.md tells to run and to write, in its order, as one script: blocks of
# shell and Python, commands in the text, and the file that a block of JSON is for.
#
#   readme_commands.sh README SECTION
set -euo pipefail

awk -v section="$2" '
  /^## / { inside = ($0 == "## " section); next }
  !inside { next }
  /^```/ && !language {
    language = substr($0, 4)
    if (language == "jsonc") print "cat >" file " <<\"END_OF_BLOCK\""
    if (language == "python") print "python3 - <<\"END_OF_BLOCK\""
    next
  }
  $0 == "```" { if (language != "sh") print "END_OF_BLOCK"; language = ""; next }
  language { print; next }
  {
    count = split($0, parts, "`")
    for (i = 2; i <= count; i += 2) {
      if (parts[i] ~ /^(sudo|systemctl|lictor) /) print parts[i]
      if (parts[i] ~ /^\/etc\/.*\.json$/) file = parts[i]
    }
  }' "$1" | grep . || { echo "$1 has no section \"$2\" with commands" >&2; exit 1; }
