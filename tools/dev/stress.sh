# ./dev stress

build_tsan() {
  local targets=(meson-test-prereq tests/unit/test_threads) # the unit tests, what they run on, and the links to them
  build tsan clang --buildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false -Dc_args=-gline-tables-only
}

# What to run its programs with, a word a line: ThreadSanitizer's memory layout does not fit kernels that randomise more
# address bits than it knows of.
tsan_wrapper() {
  printf 'int main(void) { return 0; }' | clang -x c -fsanitize=thread -o "$LOGS/.tsan" -
  "$LOGS/.tsan" 2>/dev/null || printf '%s\n' setarch "$(uname -m)" -R
}

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev stress [SECONDS] [--tsan]

Eight threads launch programs on shared executors and on their own, with and without streams, on every CPU engine, for SECONDS (60);
executors end meanwhile and the process forks. Every result is compared bit by bit. --tsan: built with ThreadSanitizer,
and without forks, which its malloc may not survive.
TEXT
  local seconds=60 name=release wrapper word
  for word in "$@"; do
    case "$word" in
      --tsan) name=tsan ;;
      *) seconds=$word ;;
    esac
  done
  need_build_tools
  if [ "$name" = tsan ]; then
    need clang=clang
    mkdir -p "$LOGS"
    build_tsan >"$LOGS/build.log" 2>&1 || die "the build failed: $LOGS/build.log"
    mapfile -t wrapper < <(tsan_wrapper)
    "${wrapper[@]}" "$BUILD/tsan/tests/unit/test_stress" "$seconds"
  else
    need_release
    "$BUILD/release/tests/unit/test_stress" "$seconds"
  fi
}
