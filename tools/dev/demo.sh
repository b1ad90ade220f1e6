# ./dev demo

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev demo [--quick] [--metal]
       ./dev demo digits [OPTION]...

Builds the project, runs the programs of examples/ on photographs (those that scikit-image carries in its package), compares
every result bit for bit with NumPy and writes PNGs to build/demo. Then trains a network on 1,437 handwritten digits (those that
scikit-learn carries), through ops.h, and lets it read 360 others: examples/digits/digits.c.

--quick: smaller images. --metal: on Metal; where there is none on a simulated one, with smaller images and a shorter training.
digits: only that. --json prints JSON, --report what became of a training step first; --backend NAME, --engine NAME, --hidden N,
  --batch N, --epochs N.
TEXT
  { need_build_tools && need_python && need_release; } >&2
  if [ "${1:-}" = digits ]; then
    shift
  elif [[ " $* " = *" --metal "* ]]; then
    use_metal
    "$VENV/bin/python" examples/demo.py --hologram "$BUILD/release/hologram" --out "$BUILD/demo" --quick --backend metal
    set -- --backend metal --hidden 24 --batch 256 --epochs 1
    say
  else
    "$VENV/bin/python" examples/demo.py --hologram "$BUILD/release/hologram" --out "$BUILD/demo" "$@"
    set --
    say
  fi
  "$VENV/bin/python" examples/digits/digits.py "$BUILD/release/examples/digits/digits" "$@"
}
