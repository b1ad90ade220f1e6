# ./dev bench

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev bench [--json] [--repeat N]
       ./dev bench compile [--json]
       ./dev bench launch [--json]

Times the example programs and prints lanes and instructions a second. This version runs on the reference machine: the scalar
definition of the ISA, made to be right and readable. The numbers say what to expect of it, not of a compiled engine.

compile: how long the compiler takes, and how much memory, on programs of 10 to 100,000 instructions.
launch: what a launch costs besides its program: the runtime, the worker threads, memory's first touch, copies and fills.
TEXT
  case "${1:-}" in
    compile | launch)
      local name=$1
      shift
      { need_build_tools && need_release; } >&2
      "$BUILD/release/bench/bench_$name" "$@"
      return
      ;;
  esac
  { need_build_tools && need_python && need_release; } >&2
  "$VENV/bin/python" examples/demo.py --bench --hologram "$BUILD/release/hologram" --out "$BUILD/bench" "$@"
}
