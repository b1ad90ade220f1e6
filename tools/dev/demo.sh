# ./dev demo

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev demo [--quick]

Builds the project, runs the programs of examples/ on photographs (those that scikit-image carries in its package), compares
every result bit for bit with NumPy and writes PNGs to build/demo. --quick: smaller images.
TEXT
  need_build_tools
  need_python
  need_release
  "$VENV/bin/python" examples/demo.py --hologram "$BUILD/release/hologram" --out "$BUILD/demo" "$@"
}
