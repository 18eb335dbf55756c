#!/bin/sh
# Hands the hook's JSON on standard input to gnc. Whatever happens, the session goes on: the exit code is 0. What a person
# should know goes into a systemMessage, which the client shows; it shows nothing of standard error.
say() {
  printf '{"continue": true, "systemMessage": "memory: %s"}\n' "$1"
  exit 0
}

case "$1" in
  session-start | stop) ;;
  *) echo "gnc-hook.sh: session-start or stop, not '$1'" >&2; exit 0 ;;
esac

gnc=$(command -v gnc 2> /dev/null) || gnc="$HOME/.local/bin/gnc" # where pipx and uv put it, which a desktop's PATH may lack
if [ ! -x "$gnc" ]; then
  [ "$1" = stop ] || say "gnc is not installed, so sessions have no memory. Run: pipx install git-notes-consolidation"
  exit 0
fi

exec 3<&0
if [ "$1" = stop ]; then # The client waits for nothing here: it ends 1.5 s after its session, whatever a hook still does
  nohup "$gnc" hook stop <&3 > /dev/null 2>&1 &
  exit 0
fi

answer=$(mktemp) || say "no temporary file can be made, so this session begins without the project's memory; look at TMPDIR"
trap 'rm -f "$answer"' EXIT
"$gnc" hook session-start <&3 > "$answer" 2> /dev/null &
asked=$!
(
  sleep 2
  kill -9 "$asked"
) > /dev/null 2>&1 3<&- &
watch=$!
wait "$asked" 2> /dev/null
code=$?
kill "$watch" 2> /dev/null
case "$code $(head -c 1 "$answer")" in
  "0 {") cat "$answer" ;;
  127*) say "gnc is not installed, so sessions have no memory. Run: pipx install git-notes-consolidation" ;;
  137*) say "gnc did not answer within two seconds, so this session begins without the project's memory. See: gnc doctor" ;;
  *) say "gnc is broken (exit code $code), so this session begins without the project's memory. Run: pipx reinstall git-notes-consolidation" ;;
esac
exit 0
