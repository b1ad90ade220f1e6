# ./dev lint

LINT_TIDY_PACKAGE=clang-tidy

lint_layout() { python3 tools/lint.py; }

# Which folder uses which, circles of files, and what nobody uses; of the release build.
lint_rooms() { python3 tools/rooms.py --library "$BUILD/release/libhologram.a"; }

# clang-tidy over every C file of the release build, and of the Python package (tools/tidy.py), that the cache does not know to be
# clean. --changed, --deep: as below.
lint_tidy() {
  need_package && python3 tools/tidy.py "$BUILD/release" "$BUILD/package" "$BUILD/tidy-cache" --jobs "$JOBS" "$@"
}

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev lint [--changed] [--deep]

Layout (line length, trailing blanks, tabs, final newline, file comments), rooms (which folder may use which: tools/rooms.py) and
clang-tidy with the checks of .clang-tidy, over the files that it did not find clean before as they are now (build/tidy-cache).
--changed: only over those that differ, committed or not, from the last commit in common with the upstream branch or main; on that
branch itself, from the commit before the last. --deep: on twelve times as many paths through a function.
TEXT
  need_build_tools
  need clang-tidy=$LINT_TIDY_PACKAGE clang=clang
  need_release
  lint_layout
  lint_rooms
  lint_tidy "$@"
  say "lint: no findings"
}
