# ./dev test-gpu

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev test-gpu

Tests that need a GPU. There is no GPU backend in this version yet.
TEXT
  say "There is no GPU backend in this version yet: CUDA and Metal are not built in. Nothing to test."
}
