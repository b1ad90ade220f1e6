# ./dev demo

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev demo [--quick] [--metal]
       ./dev demo digits [OPTION]...

Builds the project, runs the programs of examples/ on photographs (those that scikit-image carries in its package), compares
every result bit for bit with NumPy and writes PNGs to build/demo. Then trains a network on 1,437 handwritten digits (those that
scikit-learn carries), through ops.h, and lets it read 360 others: examples/digits/digits.c. Then runs the examples of
examples/python, which end with such a network through hologram.nn.

--quick: smaller images, fewer steps. --metal: the programs and the network of ops.h on Metal; where there is none on a simulated
one, with smaller images and a shorter training.
digits: only the network of ops.h. --json prints JSON, --report what became of a training step first; --backend NAME,
  --engine NAME, --hidden N, --batch N, --epochs N.
TEXT
  { need_build_tools && need_python && need_release; } >&2
  local name digits=("$VENV/bin/python" examples/digits/digits.py "$BUILD/release/examples/digits/digits")
  if [ "${1:-}" = digits ]; then
    "${digits[@]}" "${@:2}"
    return
  fi
  if [[ " $* " = *" --metal "* ]]; then
    use_metal
    "$VENV/bin/python" examples/demo.py --hologram "$BUILD/release/hologram" --out "$BUILD/demo" --quick --backend metal
    say
    "${digits[@]}" --backend metal --hidden 24 --batch 256 --epochs 1
    return
  fi
  need_package >&2
  "$VENV/bin/python" examples/demo.py --hologram "$BUILD/release/hologram" --out "$BUILD/demo" "$@"
  say
  "${digits[@]}"
  say
  for name in tour images nbody kmeans logistic; do
    PYTHONPATH=$(package_path) "$VENV/bin/python" "examples/python/$name.py" --out "$BUILD/demo" "$@"
  done
  PYTHONPATH=$(package_path) "$VENV/bin/python" examples/python/digits.py --out "$BUILD/demo"
  say "pictures: $BUILD/demo/python-*.png"
}
