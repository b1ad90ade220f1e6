#!/usr/bin/env bash
# on_wine.sh WINE SECONDS PROGRAM.exe [ARGUMENT]... - runs a program of Windows, with its output and exit status.
#
# Of some 1,500 programs wine itself starts one not at all: it ends with 1, or never, and nothing has been printed, by a program
# that has nothing to do but print its usage just so. A program of ours that fails says why. So what ended with 1 or took longer
# than SECONDS without a word is run again, twice at most; a program that does so each time is reported as it is. So is what Linux's
# loader ended, which no program of Windows knows of: glibc stops wine's process with an assertion when one of its threads loads a
# library while another one ends the process.
wine=$1 seconds=$2
shift 2
out=$(mktemp) || exit
trap 'rm -f "$out" "$out.err"' EXIT
for _ in 1 2 3; do
  status=0
  timeout "$seconds" "$wine" "$@" >"$out" 2>"$out.err" || status=$?
  ! grep -q "^Inconsistency detected by ld.so" "$out.err" || continue
  { [ "$status" -eq 1 ] || [ "$status" -eq 124 ]; } && ! [ -s "$out" ] && ! [ -s "$out.err" ] || break
done
cat "$out"
cat "$out.err" >&2
exit "$status"
