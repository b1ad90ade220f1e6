# ./dev bench

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev bench [--json] [--repeat N]

Times the example programs and prints lanes and instructions a second. This version runs on the reference machine: the scalar
definition of the ISA, made to be right and readable. The numbers say what to expect of it, not of a compiled engine.
TEXT
  { need_build_tools && need_python && need_release; } >&2
  "$VENV/bin/python" examples/demo.py --bench --hologram "$BUILD/release/hologram" --out "$BUILD/bench" "$@"
}
