# ./dev record

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev record [OPTION]... FILE          record this tree's library
       ./dev record --compare FILE FILE [--common]   say what differs; exit status 1 if anything does
       ./dev record --against COMMIT [OPTION]...   record both, compare, and show the first that differ
       ./dev record --show program|graph SEED [--library LIBRARY]   one of them, and what it leaves

Did a change that claims to change no bit and no hash change any? A record has a line of digests for each of 50,000 random programs
(canonical hash; memory, counters and fault after a launch), of 100,000 random graphs of operations (their programs' hashes, plan,
results) and of the conformance tests (what they launch, hashes, results). One commit gives one file. Results are the same on every
machine; plans of graphs and their programs on machines with one engine and one number of processors, and else are not compared.

Only the library is the other commit's; what is run comes from this tree. Of two with other operations the graphs draw from those
that both have. What only one of two files has differs, but with --common. Eight minutes on two processors for each library.

  --programs N, --graphs N    how many (50000, 100000)
  --one-test-in N             every Nth conformance test or so; 0: none (1)
  --seed S                    the first program's and graph's (100000001, 0)
  --code                      digests of each program's code for each target, too
  --engine NAME[:ISA]         on another of the CPU's engines, which have the same bits
  --library LIBRARY           of another build
  --processes P               at a time (one a processor)
TEXT
  need_build_tools
  need_python
  need_release
  if [ "${1:-}" = --against ]; then
    [ -n "${2:-}" ] || die "which commit? ./dev record --against COMMIT"
    build_commit "$2"
    set -- --other "$BUILD/record/$commit/build/libhologram.so" "${@:3}"
  fi
  "$VENV/bin/python" tests/record/record.py "$@"
}

# build_commit COMMIT: its library, in build/record/COMMIT/build; `commit` is its full name.
build_commit() {
  need git=git
  commit=$(git rev-parse --verify --quiet "$1^{commit}") || die "there is no commit '$1'"
  local folder=$BUILD/record/$commit
  mkdir -p "$LOGS" "$folder"
  [ -f "$folder/meson.build" ] || git archive "$commit" | tar -x -C "$folder"
  say "building $1 ($folder)"
  {
    [ -f "$folder/build/build.ninja" ] ||
      CC=gcc CC_FOR_BUILD=gcc meson setup "$folder/build" "$folder" --buildtype=release -Dtests=false
    ninja -C "$folder/build"
  } >"$LOGS/record-build.log" 2>&1 || die "$1 could not be built (whole log: $LOGS/record-build.log)"
}
