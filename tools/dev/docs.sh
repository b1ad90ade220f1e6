# ./dev docs

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev docs [--check]

Writes docs/isa.md from include/hologram/*.def, docs/isa.intro.md and docs/uniformity.md. --check: writes nothing, fails when
docs/isa.md is not up to date.
TEXT
  need python3=python3
  python3 tools/gen_isa.py "$@"
}
