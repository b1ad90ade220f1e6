# jobs.sh - tests counted, and several of them at a time. Sourced by test.sh.
#
# A stage counts through `check` and `run_counted`; or it puts jobs down, each of which does that, and has them run together:
#
#   job "test_a on tile" run_counted build/release/tests/unit/test_a
#   job "the assembler" check "words" compare_words "$folder"
#   run_jobs

passed=0
failed=0

# count PASSED FAILED: results of a tool that runs many tests.
count() {
  passed=$((passed + $1))
  failed=$((failed + $2))
}

# check WHAT COMMAND...: one test, whose output stands in the log.
check() {
  local what=$1
  shift
  say "== $what"
  if "$@"; then
    count 1 0
  else
    say "FAILED: $what"
    count 0 1
    return 1
  fi
}

# run_counted COMMAND...: a program that runs many tests and ends in "N passed, N failed".
run_counted() {
  local output=$LOGS/.counted.$BASHPID status=0
  timeout 1200 "$@" >"$output" 2>&1 || status=$?
  cat "$output"
  if [[ $(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$output" | tail -n 1) =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    count "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
    [ "$status" -eq 0 ] || [ "${BASH_REMATCH[2]}" -gt 0 ] || { say "FAILED: $*: exit status $status" && count 0 1; }
  else
    say "FAILED: $* (exit status $status) did not end in 'N passed, N failed'"
    count 0 1
  fi
  rm -f "$output"
}

# ---- several at a time ---------------------------------------------------------------------------------------------------

job_names=()
job_commands=()

# job NAME COMMAND...: puts a job down: a function or a program that counts. The names of one stage differ.
job() {
  job_names+=("$1")
  shift
  job_commands+=("$(printf '%q ' "$@")")
}

# The numbers of the jobs, those that took longest the last time first, in this stage or at least in another. A job that never
# ran stands among the first, in the order they were put down: who knows the slow ones puts them down first.
job_order() {
  local at
  for at in "${!job_names[@]}"; do printf '%s\t%s\n' "$at" "${job_names[at]}"; done |
    awk -F '\t' 'FILENAME != "-" { if (!($2 in took)) took[$2] = $1; next }
      { print ($2 in took ? took[$2] : 9999) "\t" $1 }' "$1" "$LOGS"/times/* - |
    sort -s -k 1,1nr | cut -f 2
}

# Runs in a subshell: the job's command, then what it counted and how long it took.
run_job() {
  local start
  passed=0 failed=0
  start=$(seconds)
  eval "${job_commands[$1]}"
  printf '%s %s %s\n' "$passed" "$failed" "$(elapsed "$start")" >"$2.count"
}

# Waits for one of the jobs in `running` (process: job's number) and adds up what it counted. A job that did not reach its
# end, whatever the reason, has failed.
finish_job() {
  local process='' at good bad took
  wait -n -p process "${!running[@]}"
  [ -n "$process" ] || die "the jobs of a stage were lost"
  at=${running[$process]}
  unset "running[$process]"
  say "== ${job_names[at]}"
  cat "$1/$at.log"
  if read -r good bad took _ 2>/dev/null <"$1/$at.count"; then
    count "$good" "$bad"
    printf '%s\t%s\n' "$took" "${job_names[at]}" >>"$1/times"
  else
    say "FAILED: ${job_names[at]} broke off"
    count 0 1
  fi
}

# run_jobs: all that were put down, as many at a time as there are processors, each in a subshell. Its output comes to the log in
# one piece when it ends. How long each took is kept in build/logs/times for the order of the next run.
run_jobs() {
  local -A running=()
  local folder at times=$LOGS/times/${STAGE:-other}
  folder=$(mktemp -d "$ROOT/$LOGS/jobs.XXXXXX") || return
  mkdir -p "$LOGS/times"
  touch "$folder/times" "$times"
  for at in $(job_order "$times"); do
    [ ${#running[@]} -lt "$JOBS" ] || finish_job "$folder"
    run_job "$at" "$folder/$at" >"$folder/$at.log" 2>&1 </dev/null &
    running[$!]=$at
  done
  while [ ${#running[@]} -gt 0 ]; do finish_job "$folder"; done
  # a job that did not run now keeps its time
  awk -F '\t' '!seen[$2]++' "$folder/times" "$times" >"$folder/merged" && mv "$folder/merged" "$times"
  rm -rf "$folder"
  job_names=() job_commands=()
}
