# ./dev random

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev random [--count N] [--seed S] [--size K] [--processes P] [--verbose]

Makes random programs that verify and compares the reference machine with every form that the compiler gives them, bit by bit; looks
whether equal programs have one hash and different ones have not. A failure is shrunk to a small program and printed.
Without options: a million programs on all processors, which takes about an hour on two.
TEXT
  need_build_tools
  need_release
  [ $# -gt 0 ] || set -- --count 1000000 --processes "$JOBS"
  "$BUILD/release/tests/random/test_random" "$@"
}
