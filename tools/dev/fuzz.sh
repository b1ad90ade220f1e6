# ./dev fuzz

# The fuzzers: tests/fuzz/fuzz_NAME.c, each with its seeds in tests/fuzz/corpus/NAME (canon shares those of text).
fuzz_names() {
  find tests/fuzz -maxdepth 1 -name 'fuzz_*.c' -printf '%f\n' | sed 's/^fuzz_//; s/\.c$//' | sort
}

need_fuzz_tools() {
  need_build_tools
  need clang=clang '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a'=libclang-rt-14-dev
}

# What no fuzzer has to see the inside of (row kernels, doubles of drivers) is that of the build with the same sanitizers.
build_fuzz() {
  local begins_as=asan
  build fuzz clang --buildtype=debugoptimized -Dfuzz=true -Dtests=false \
    -Db_sanitize=address,undefined -Db_lundef=false -Dc_args="-fno-sanitize-recover=all -gline-tables-only"
}

# fuzz_one NAME SECONDS: a finding is kept in build/fuzz/findings.
fuzz_one() {
  local corpus=$BUILD/fuzz/corpus/$1 findings=$BUILD/fuzz/findings seeds=tests/fuzz/corpus/${1/canon/text}
  mkdir -p "$corpus" "$findings" "$seeds"
  LD_LIBRARY_PATH=$ROOT/$BUILD/fuzz/tests/sim:$ROOT/$BUILD/fuzz/tests/sim/metal \
    SIMMETAL_CACHE=$ROOT/$BUILD/fuzz/metal-kernels \
    "$BUILD/fuzz/tests/fuzz/fuzz_$1" "$corpus" "$seeds" -dict=tests/fuzz/atlas.dict -max_total_time="$2" \
    -timeout=20 -rss_limit_mb=2048 -artifact_prefix="$findings/$1-" -print_final_stats=1
}

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev fuzz [NAME] [SECONDS]

Builds the fuzzers (clang, AddressSanitizer, UndefinedBehaviorSanitizer) and runs one of them, or all one after the other,
for SECONDS each (600). The corpus grows in build/fuzz/corpus, findings go to build/fuzz/findings; rerun one with
build/fuzz/tests/fuzz/fuzz_NAME FILE.
TEXT
  local names=() time=600 word
  for word in "$@"; do
    case "$word" in
      *[!0-9]*) names+=("$word") ;;
      *) time=$word ;;
    esac
  done
  [ ${#names[@]} -gt 0 ] || mapfile -t names < <(fuzz_names)
  need_fuzz_tools
  build_fuzz
  for word in "${names[@]}"; do
    say "fuzz_$word, $time s"
    fuzz_one "$word" "$time"
  done
}
