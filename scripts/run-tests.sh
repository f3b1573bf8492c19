#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs test programs and checks, several at once, and adds up what they report.
#
#   run-tests.sh COMMAND...        each COMMAND one argument, run by sh: "build/tb/test_fifo", "scripts/lint"
#
# Understands cmocka's output ([  PASSED  ] N test(s).) and lines "ok ..." / "not ok ..."; "# skip" after ok is a skip. A command
# that crashes, runs out of time, exits with an error without naming a failed test, or reports no test at all counts as one
# failure. Exit code 77 means the whole program was skipped. Output of failed commands is shown; all of it is kept in
# $BUILD/test/. The last line is "N passed, N failed".
# Environment: JOBS (2), CT_TIMEOUT (seconds for one command, 1800: the FPGA synthesis takes five minutes of a core, which may be shared), BUILD (build).
set -u
logs=${BUILD:-build}/test

# One command: its output, its counts in $CT_COUNTS/NAME, one line.
run_one() {
  command=$1
  name=$(printf '%s' "$command" | sed 's|[^ ]*/||; s|[^A-Za-z0-9._-]|_|g')
  log=$logs/$name.log
  start=$(date +%s.%N)
  # Stale memory would show as a result that depends on it.
  MALLOC_PERTURB_=${MALLOC_PERTURB_:-165} timeout -k 5 "${CT_TIMEOUT:-1800}" sh -c "$command" >"$log" 2>&1 </dev/null
  code=$?
  end=$(date +%s.%N)
  # What the command has used of the processors: the second line of times, which a subshell would not have.
  times >"$log.times"
  used=$(awk 'NR == 2 { split($1 $2, t, /[ms]/); print t[1] * 60 + t[2] + t[3] * 60 + t[4] }' "$log.times")
  rm -f "$log.times"
  awk -v code="$code" -v name="$name" -v limit="${CT_TIMEOUT:-1800}" -v seconds="$(echo "$start $end" | awk '{ print $2 - $1 }')" -v used="$used" -v count="$CT_COUNTS/$name" '
    /^\[  PASSED  \] [0-9]+ test/  { split($0, w, /[ \]]+/); passed += w[3] }
    /^\[  FAILED  \] [0-9]+ test/  { split($0, w, /[ \]]+/); failed += w[3] }
    /^\[  SKIPPED \] [0-9]+ test/  { split($0, w, /[ \]]+/); skipped += w[3] }
    /^ok .*# skip/                 { skipped++; next }
    /^ok /                         { passed++ }
    /^not ok /                     { failed++ }
    END {
      note = ""
      if (code == 77 && !failed) { if (!skipped) skipped = 1; code = 0 }
      else if (code == 124 || code == 137) { note = "stopped after " limit " s"; failed++ }
      else if (code > 128) { note = "killed by signal " (code - 128); failed++ }
      else if (code && !failed) { note = "exit code " code; failed++ }
      else if (!passed && !failed && !skipped) { note = "reported no test"; failed++ }
      printf "%d %d %d\n", passed, failed, skipped > count
      printf "  %s %-32s %5d passed%s%s  %6.1f s, %6.1f s of CPU%s\n", failed ? "FAIL" : "ok  ", name, passed, \
        failed ? ", " failed " failed" : "", skipped ? ", " skipped " skipped" : "", seconds, used, note ? "  (" note ")" : ""
      exit failed > 0
    }' "$log" && return 0
  # One write, so that the output of two commands does not mix.
  text=$(tail -n "${CT_TAIL:-60}" "$log" | sed 's/^/      | /')
  printf '%s\n' "$text"
  return 0
}

if [ "${1:-}" = --one ]; then
  out=$(run_one "$2")
  printf '%s\n' "$out"
  exit 0
fi

mkdir -p "$logs"
# The counts of this run only: another run may be under way in the same tree.
CT_COUNTS=$(mktemp -d "$logs/counts.XXXXXX")
export CT_COUNTS
trap 'rm -rf "$CT_COUNTS"' EXIT
if [ $# -gt 0 ]; then printf '%s\0' "$@" | xargs -0 -n 1 -P "${JOBS:-2}" "$0" --one; fi
cat "$CT_COUNTS"/* 2>/dev/null | awk -v want=$# '
  { passed += $1; failed += $2; skipped += $3; seen++ }
  END {
    failed += want - seen  # a runner that died left no count
    printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
    exit failed > 0
  }'
