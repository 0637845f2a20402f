# To be sourced. needs_clang_14 TOOL: ends the test as skipped where the tool is of another version
# than Debian 12's, since each formats a few lines in another way, or knows other checks.
needs_clang_14() {
  "$1" --version | grep -q 'version 14\.' && return
  echo "skipped: the source is held to $1 14 (Debian 12's); here is $("$1" --version | grep version)"
  exit 77
}
