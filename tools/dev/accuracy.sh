# ./dev accuracy

need_accuracy_tools() { need_build_tools && need /usr/include/mpfr.h=libmpfr-dev pkg-config=pkg-config; }

build_accuracy() { build_as_release accuracy -Daccuracy=true -Dtests=false; }

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev accuracy [--samples N] [--op NAME] [--type f32|f64] [--processes P] [--markdown]
       ./dev accuracy --every-input [--op NAME] [--types LIST] [--engines LIST] [--by text|first] [--step N]
                                     [--processes P]

Judges every function of the ISA, as the reference machine computes it, by MPFR: prints its largest error in units in the last place
and fails where it is above the function's bound. Without options: four million inputs a function, on all processors; that takes
about half an hour on two. The table in the documentation is --markdown.

With --every-input it judges no error: it runs each unary function of f32, and each conversion from it (--op cvt.i8 to cvt.bool), on
all 2^32 inputs (--step N: every N-th), and those of f16 and bf16 on all 65536 (--types f32,f16,bf16), and compares the bits with
the function's text translated to C. Engines are native, native/avx2, native/avx512, tile, tile/avx2, tile/sse2, interp, cuda, metal
(default: native,tile). It takes two to three hours on two processors; with --engines cuda most is the C: --by first compares the
engines with the first of them instead.
TEXT
  need_accuracy_tools
  mkdir -p "$LOGS"
  build_accuracy >"$LOGS/accuracy-build.log" 2>&1 || {
    tail -n 40 "$LOGS/accuracy-build.log" >&2
    die "the build failed (whole log: $LOGS/accuracy-build.log)"
  }
  if [ "${1:-}" = --every-input ]; then
    shift
    "$BUILD/accuracy/tests/accuracy/every_input" --processes "$JOBS" "$@"
    return
  fi
  [ $# -gt 0 ] || set -- --samples 4000000 --processes "$JOBS"
  "$BUILD/accuracy/tests/accuracy/judge" "$@"
}
