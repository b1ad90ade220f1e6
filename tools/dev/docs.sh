# ./dev docs

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev docs [--check]

Writes docs/isa.md from include/hologram/*.def, docs/isa.intro.md and docs/uniformity.md, docs/operations.md from
include/hologram/operations.def and docs/operations.intro.md, docs/measured.md from docs/measured/*.json (runs of the
benchmark) and tests/ops/accuracy.toml, and include/hologram/flat/all.h
from the other headers. --check: writes nothing, fails when one of them is not up to date.
TEXT
  need python3=python3 gcc=gcc
  python3 tools/gen_isa.py "$@"
  python3 tools/gen_operations.py "$@"
  python3 tools/gen_semantics.py "$@"
  python3 tools/gen_measured.py "$@"
  python3 tools/gen_flat.py "$@"
  python3 tools/gen_python.py "$@"
}
