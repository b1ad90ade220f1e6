# ./dev lint

LINT_TIDY_PACKAGE=clang-tidy

lint_layout() { python3 tools/lint.py; }

# clang-tidy over every C file of the release build, two files at a time. Its notes fill pages: one line a finding.
lint_tidy() {
  local files
  mapfile -t files < <(find src tools -name '*.c' ! -name 'os_windows.c' ! -path 'src/cli/*windows*' ! -path 'tools/fit/*' | sort)
  mkdir -p "$LOGS"
  printf '%s\n' "${files[@]}" |
    xargs -P "$JOBS" -n 1 clang-tidy --quiet -p "$BUILD/release" 2>"$LOGS/clang-tidy.err" |
    { grep -E '(error|warning):' || true; } || {
    grep -vE '^[0-9]+ warnings? ' "$LOGS/clang-tidy.err" | tail -n 20
    return 1
  }
}

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev lint

Layout (line length, trailing blanks, tabs, final newline, file comments) and clang-tidy with the checks of .clang-tidy.
TEXT
  need_build_tools
  need clang-tidy=$LINT_TIDY_PACKAGE clang=clang
  need_release
  lint_layout
  lint_tidy
  say "lint: no findings"
}
