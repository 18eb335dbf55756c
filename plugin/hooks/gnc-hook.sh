#!/bin/sh
# Hands the hook's JSON on standard input to gnc. Whatever happens, the session goes on: the exit code is 0.
case "$1" in
  session-start | stop) ;;
  *) echo "gnc-hook.sh: session-start or stop, not '$1'" >&2; exit 0 ;;
esac
gnc=gnc
command -v gnc > /dev/null 2>&1 || gnc="$HOME/.local/bin/gnc" # where pipx and uv put it, which a desktop's PATH may lack
if ! command -v "$gnc" > /dev/null 2>&1; then
  echo "memory: gnc is not installed, so this hook does nothing. Run: pipx install 'git-notes-consolidation[otel]'" >&2
  exit 0
fi
"$gnc" hook "$1"
exit 0
