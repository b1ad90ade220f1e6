# ./dev random

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev random [FIRST LAST]
       ./dev random [--count N] [--seed S] [--size K] [--processes P] [--verbose]
                    [--compiler-only | --engines-only | --backend cpu|cuda] [--shapes]

Makes random programs that verify and compares the reference machine with every form that the compiler gives them, bit by bit; looks
whether equal programs have one hash and different ones have not. A failure is shrunk to a small program and printed.

With the seeds FIRST to LAST, or without options (a million programs from seed 100000001, about 40 minutes on two processors), a
long run: it says after every 10000 programs how far it is, goes on behind failures, and ends with what failed. To resume it,
start at the seed where it stopped.

--compiler-only leaves the CPU engines out, --engines-only the compiler's identities; --backend launches the programs on that
backend in place of the engines. --shapes says how many of the programs hold each shape of tests/random/shapes.def.
TEXT
  need_build_tools
  need_release
  local program=$BUILD/release/tests/random/test_random
  case "${1:-}" in
    -*) "$program" "$@" ;;
    *) long_run "$program" "${1:-100000001}" "${2:-101000000}" ;;
  esac
}

# long_run PROGRAM FIRST LAST: in pieces, so that a run that is broken off has shown something.
long_run() {
  local program=$1 seed=$2 last=$3 count found failed=() log=$BUILD/logs/random-failures.log
  mkdir -p "$BUILD/logs"
  : >"$log"
  for (( ; seed <= last; seed += count)); do
    count=$((last - seed + 1 < 10000 ? last - seed + 1 : 10000))
    if ! found=$("$program" --seed "$seed" --count "$count" --processes "$JOBS" 2>&1); then
      printf '%s\n' "$found" | tee -a "$log"
      failed+=("$seed")
    fi
    printf 'seeds %s to %s: %s\n' "$seed" "$((seed + count - 1))" "${found##*$'\n'}"
  done
  [ ${#failed[@]} -eq 0 ] && return
  printf 'failures among the programs from seeds %s; all in %s\n' "${failed[*]}" "$log"
  return 1
}
