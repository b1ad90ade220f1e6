# ./dev lint

LINT_TIDY_PACKAGE=clang-tidy

lint_layout() { python3 tools/lint.py; }

# Which folder uses which, and circles of files; of the release build.
lint_rooms() { python3 tools/rooms.py --library "$BUILD/release/libhologram.a"; }

# clang-tidy over every C file of the release build, two files at a time. Its notes fill pages: one line a finding.
# The build's own commands may hold options that only gcc knows; clang takes them for an error.
lint_tidy() {
  local files
  mapfile -t files < <(find src tools -name '*.c' ! -name 'os_windows.c' ! -path 'src/cli/*windows*' ! -path 'tools/fit/*' | sort)
  mkdir -p "$LOGS" "$BUILD/lint"
  sed 's/ -fvect-cost-model=[a-z-]*//; s/ -falign-[a-z]*=1//g' \
    "$BUILD/release/compile_commands.json" >"$BUILD/lint/compile_commands.json"
  printf '%s\n' "${files[@]}" |
    xargs -P "$JOBS" -n 1 clang-tidy --quiet -p "$BUILD/lint" 2>"$LOGS/clang-tidy.err" |
    { grep -E '(error|warning):' || true; } || {
    grep -vE '^[0-9]+ warnings? ' "$LOGS/clang-tidy.err" | tail -n 20
    return 1
  }
}

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev lint

Layout (line length, trailing blanks, tabs, final newline, file comments), rooms (which folder may use which: tools/rooms.py) and
clang-tidy with the checks of .clang-tidy.
TEXT
  need_build_tools
  need clang-tidy=$LINT_TIDY_PACKAGE clang=clang
  need_release
  lint_layout
  lint_rooms
  lint_tidy
  say "lint: no findings"
}
