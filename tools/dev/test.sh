# ./dev test - the stages of continuous integration. Each stage is a function stage_NAME; it says what passed and what failed
# through `check` and `count`, and its whole output goes to build/logs/NAME.log.

source tools/dev/lint.sh
source tools/dev/fuzz.sh
source tools/dev/accuracy.sh
source tools/dev/stress.sh

STAGES=(release python engines random accuracy demo asan fuzz tsan lint headers symbols docs install mingw aarch64)
declare -A TITLE=(
  [release]="release build (gcc), unit tests"
  [python]="text, binary form, verifier, command line"
  [engines]="conformance on every engine and instruction set of this machine"
  [random]="random programs through the compiler, ${HOLOGRAM_RANDOM_PROGRAMS:-10100} of them"
  [accuracy]="functions judged by MPFR, ${HOLOGRAM_ACCURACY_SAMPLES:-50000} inputs each"
  [demo]="demo on photographs, bit for bit"
  [asan]="AddressSanitizer + UBSan build (clang), unit and command-line tests"
  [fuzz]="fuzzers, ${HOLOGRAM_FUZZ_SECONDS:-10} s each"
  [tsan]="ThreadSanitizer build (clang), unit tests"
  [lint]="layout and clang-tidy"
  [headers]="public headers alone, C11 and C++17"
  [symbols]="exported symbols"
  [docs]="documentation is up to date"
  [install]="install, pkg-config and CMake"
  [mingw]="Windows cross build (mingw-w64)"
  [aarch64]="aarch64 under qemu: unit tests, ${HOLOGRAM_AARCH64_PROGRAMS:-10000} random programs"
)

passed=0
failed=0

# count PASSED FAILED: results of a tool that runs many tests.
count() {
  passed=$((passed + $1))
  failed=$((failed + $2))
}

# check WHAT COMMAND...: one test, whose output stands in the log.
check() {
  local what=$1
  shift
  say "== $what"
  if "$@"; then
    count 1 0
  else
    say "FAILED: $what"
    count 0 1
    return 1
  fi
}

# run_counted COMMAND...: a program that runs many tests and ends in "N passed, N failed".
run_counted() {
  local output=$BUILD/logs/.counted status=0 what=${*: -1}
  timeout 1200 "$@" >"$output" 2>&1 || status=$?
  cat "$output"
  if [[ $(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$output" | tail -n 1) =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    count "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
    [ "$status" -eq 0 ] || [ "${BASH_REMATCH[2]}" -gt 0 ] || { say "FAILED: $what: exit status $status" && count 0 1; }
  else
    say "FAILED: $what (exit status $status) did not end in 'N passed, N failed'"
    count 0 1
  fi
}

# The engines that the build has and the machine can run, as tests/engines.py names them: an engine that is asked for says
# its name, or that there is none.
engines_here() {
  local engine isa
  say interp
  for engine in tile native; do
    for isa in avx512 avx2 sse2 neon; do
      HOLOGRAM_CPU_ENGINE=$engine HOLOGRAM_CPU_ISA=$isa "$BUILD/release/hologram" info --json 2>/dev/null |
        grep -qF "\"engine\":\"$engine $isa\"" && say "$engine:$isa"
    done
  done
}

# These run on the double of libcuda only.
ON_THE_DOUBLE_ONLY=" test_cuda test_cuda_cache test_cuda_calls test_cuda_foreign test_cuda_memory test_devices test_nvtx \
  test_packs "

# run_unit_tests BUILD [WRAPPER...]
run_unit_tests() {
  local folder=$BUILD/$1 source name
  shift
  for source in tests/unit/test_*.c; do
    name=$(basename "$source" .c)
    [[ "${SKIPPED_UNIT_TESTS:-}" != *" $name "* ]] || { say "skipped: $name" && continue; }
    say "== $name"
    if [[ $ON_THE_DOUBLE_ONLY == *" $name "* ]]; then
      run_on_double "$folder" "$@" "$folder/tests/unit/$name"
    else
      run_counted "$@" "$folder/tests/unit/$name"
    fi
  done
  for name in test_choices test_failures test_faults test_graphs test_groups test_launch test_nan_bits test_narrow test_runtime \
    test_stream_failures test_streams test_tabulated; do
    say "== $name on the double of libcuda"
    run_on_double "$folder" "$@" "$folder/tests/unit/$name"
  done
}

# run_on_double FOLDER COMMAND...: with the double of libcuda in the driver's place, and kernels compiled anew.
run_on_double() {
  local -x LD_LIBRARY_PATH=$ROOT/$1/tests/sim HOLOGRAM_TEST_BACKEND=cuda HOLOGRAM_CACHE_DIR=/dev/null/none
  shift
  run_counted "$@"
}

# pytest's last line ("3 failed, 120 passed, 1 skipped in 4.1s"), added up. An error or an empty run is a failure.
run_pytest() {
  local folder=$BUILD/$1 output status=0 good bad
  shift
  output=$BUILD/logs/.pytest
  HOLOGRAM_CLI=$ROOT/$folder/hologram HOLOGRAM_LIB=$ROOT/$folder/libhologram.so \
    PYTHONDONTWRITEBYTECODE=1 timeout 1200 "$VENV/bin/python" -m pytest -q -p no:cacheprovider -n "$JOBS" --maxfail=40 \
    --tb=short "$@" >"$output" 2>&1 || status=$?
  cat "$output"
  good=$(tail -n 1 "$output" | grep -oE '[0-9]+ passed' | grep -oE '[0-9]+' || echo 0)
  bad=$(tail -n 1 "$output" | grep -oE '[0-9]+ (failed|error)' | awk '{ n += $1 } END { print n + 0 }')
  [ "$status" -ne 0 ] && [ "$bad" -eq 0 ] && bad=1 && say "FAILED: pytest, exit status $status"
  count "$good" "$bad"
}

stage_release() {
  check "build" build_release || return 0
  run_unit_tests release
  local name
  for name in test_extremes test_reductions; do # not under sanitizers: they take long there
    say "== $name on the double of libcuda"
    run_on_double build/release "$BUILD/release/tests/unit/$name"
  done
  run_on_older_gpus
}

# Older GPUs get other instructions than the double's own capability, 9.0.
run_on_older_gpus() {
  local name
  local -x FAKECUDA_CAPABILITY
  for FAKECUDA_CAPABILITY in 75 80; do
    for name in test_choices test_extremes test_nan_bits test_narrow test_packs test_tabulated; do
      say "== $name on the double of libcuda, capability $FAKECUDA_CAPABILITY"
      run_on_double build/release "$BUILD/release/tests/unit/$name"
    done
  done
}

stage_python() { run_pytest release tests -m "not engine"; }

# Programs run on all engines at once, which costs little more than on one: the model takes the time.
stage_engines() {
  local engines engine name options=()
  mapfile -t engines < <(engines_here)
  say "engines: ${engines[*]}"
  for engine in "${engines[@]}"; do
    options+=(--engine "$engine")
    for name in test_launch test_narrow test_runtime test_faults test_streams test_graphs; do
      say "== $name on $engine"
      HOLOGRAM_CPU_ENGINE=${engine%:*} HOLOGRAM_CPU_ISA=$([[ $engine == *:* ]] && say "${engine#*:}") \
        run_counted "$BUILD/release/tests/unit/$name"
    done
  done
  run_pytest release tests -m engine "${options[@]}"
}

stage_random() {
  local -x MALLOC_PERTURB_=85 # new memory is no zeros: what was never written shows
  run_counted "$BUILD/release/tests/random/test_random" --processes "$JOBS" --count "${HOLOGRAM_RANDOM_PROGRAMS:-10100}"
  # programs that an engine once got wrong
  local seed
  for seed in 40005436 30027160 30098005 30100470 30131663 30180212 30255647 30262152 30340892 30460352 30566770 \
    30568591 30848054 50029307 50033967 50067794 61900297 61950393 62002496 66000556 67044189 67055345 68030401 68038211 \
    69015991 71015526 74041947; do
    run_counted "$BUILD/release/tests/random/test_random" --seed "$seed" --count 1 --engines-only
  done
  # the CUDA backend's PTX, run by the double of libcuda
  run_counted env LD_LIBRARY_PATH="$BUILD/release/tests/sim" HOLOGRAM_CACHE=0 \
    "$BUILD/release/tests/random/test_random" --processes 4 --count 2000 --backend cuda
  local capability
  for capability in 75 80; do # other programs than above
    run_counted env LD_LIBRARY_PATH="$BUILD/release/tests/sim" HOLOGRAM_CACHE=0 FAKECUDA_CAPABILITY="$capability" \
      "$BUILD/release/tests/random/test_random" --processes 4 --seed "${capability}000001" --count 1000 --backend cuda
  done
}

stage_accuracy() {
  check "build" build_accuracy || return 0
  run_counted "$BUILD/accuracy/tests/accuracy/judge" --processes "$JOBS" --samples "${HOLOGRAM_ACCURACY_SAMPLES:-50000}"
  # every input of f16 and bf16 on every engine; of f32 a million, but on the reference machine, which is slow
  local every=("$BUILD/accuracy/tests/accuracy/every_input" --processes "$JOBS")
  run_counted "${every[@]}" --types f16,bf16 --engines "$(engines_here | tr ':\n' '/,')"
  run_counted "${every[@]}" --types f32 --step 4093 --engines "$(engines_here | grep -v interp | tr ':\n' '/,')"
}

stage_demo() {
  run_counted "$VENV/bin/python" examples/demo.py --hologram "$BUILD/release/hologram" --quick --out "$BUILD/demo-quick"
}

stage_asan() {
  local -x ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
  check "build" build asan clang --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false \
    -Dc_args=-fno-sanitize-recover=all || return 0
  run_unit_tests asan
  run_pytest asan tests/cli
}

stage_fuzz() {
  local name
  check "build" build_fuzz || return 0
  for name in $(fuzz_names); do
    check "fuzz_$name" fuzz_one "$name" "${HOLOGRAM_FUZZ_SECONDS:-10}" || true
  done
}

# One thread does all the work of these.
NOT_UNDER_TSAN=" test_barriers test_reductions test_vector_kernels test_simplify test_number test_text test_binary "

stage_tsan() {
  local -x SKIPPED_UNIT_TESTS=$NOT_UNDER_TSAN
  local wrapper
  check "build" build_tsan || return 0
  mapfile -t wrapper < <(tsan_wrapper)
  run_unit_tests tsan "${wrapper[@]}"
}

stage_lint() {
  check "layout" lint_layout || true
  check "rooms" lint_rooms || true
  check "clang-tidy" lint_tidy || true
}

# Every public header alone: nothing else included before it, as C11 and C++17, by both compilers, without a warning.
stage_headers() {
  local header compiler
  for header in include/hologram/*.h; do
    for compiler in "gcc -x c -std=c11" "clang -x c -std=c11" "g++ -x c++ -std=c++17" "clang++ -x c++ -std=c++17"; do
      printf '#include "hologram/%s"\n' "${header##*/}" >"$BUILD/logs/.header"
      # shellcheck disable=SC2086
      check "$compiler ${header##*/}" \
        $compiler -Wall -Wextra -Werror -Wpedantic -Iinclude -fsyntax-only "$BUILD/logs/.header" || true
    done
  done
}

# The shared library exports what the headers declare and nothing else; no global symbol of the static library can
# collide with a caller's: all of them start with hg_, atlas_ or ir_.
stage_symbols() {
  check "symbols" python3 tools/check_symbols.py "$BUILD/release/libhologram.so" "$BUILD/release/libhologram.a" || true
}

stage_docs() { check "docs/isa.md" python3 tools/gen_isa.py --check || true; }

# What people download: the shared library and the command, stripped, at most 3 MB together.
small_enough() {
  local prefix=$1 work=$2 most=3000000 library command
  strip -o "$work/library" "$prefix/lib/libhologram.so" && strip -o "$work/command" "$prefix/bin/hologram" || return 1
  library=$(stat -c %s "$work/library") command=$(stat -c %s "$work/command")
  say "stripped: library $library bytes, command $command bytes; at most $most together"
  [ $((library + command)) -le $most ]
}

# The command runs wherever it lies with the library in one folder.
command_moves() {
  mkdir -p "$2" && cp "$1/bin/hologram" "$1/lib/libhologram.so.0" "$2" && (cd / && "$2/hologram" info)
}

# Every command has a manual page, which groff takes without a word and which says what --help does.
manual_pages_hold() {
  local prefix=$1 command page name
  local -a commands
  mapfile -t commands < <("$prefix/bin/hologram" --help | sed -n '/^COMMANDS/,/^$/s/^    \([a-z]*\) .*/\1/p' | grep -vx help)
  [ "$(find "$prefix/share/man/man1" -name 'hologram*.1' | wc -l)" -eq $((1 + ${#commands[@]})) ] || return 1
  for command in "" "${commands[@]}"; do
    name=hologram${command:+-$command}
    page=$(groff -man -Tascii -P-cbou -ww "$prefix/share/man/man1/$name.1" 2>"$2/groff.log") && [ ! -s "$2/groff.log" ] ||
      { cat "$2/groff.log"; return 1; }
    grep -q "^ *$name - " <<<"$page" || { say "$name.1 has no NAME"; return 1; }
    diff <("$prefix/bin/hologram" $command --help | sed -n '/^SYNOPSIS/,$p' | tr -s ' \n' '\n') \
      <(sed -n '/^SYNOPSIS/,/^SEE ALSO/p' <<<"$page" | sed '$d' | tr -s ' \n' '\n') ||
      { say "$name.1 and --help differ"; return 1; }
  done
}

# A scratch install, then a program built against it the three ways people do that.
stage_install() {
  local prefix=$ROOT/$BUILD/installed work=$ROOT/$BUILD/installed/work
  rm -rf "$BUILD/install" "$BUILD/installed"
  mkdir -p "$work"
  check "meson install" build install gcc --buildtype=release -Dtests=false --prefix="$prefix" --libdir=lib || return 0
  check "files" ninja -C "$BUILD/install" install || return 0
  check "command" "$prefix/bin/hologram" info || true
  check "command beside the library" command_moves "$prefix" "$work/moved" || true
  check "manual pages" manual_pages_hold "$prefix" "$work" || true
  check "size" small_enough "$prefix" "$work" || true
  local -x PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
  # shellcheck disable=SC2046
  check "pkg-config" gcc tests/install/saxpy.c -o "$work/shared" $(pkg-config --cflags --libs hologram) &&
    check "shared program" "$work/shared" || true
  # shellcheck disable=SC2046
  check "pkg-config --static" gcc -static tests/install/saxpy.c -o "$work/static" $(pkg-config --static --cflags --libs hologram) &&
    check "static program" env -u LD_LIBRARY_PATH "$work/static" || true
  check "CMake" cmake -S tests/install -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" &&
    check "CMake build" cmake --build "$work/cmake" &&
    check "CMake shared program" "$work/cmake/saxpy" && check "CMake static program" "$work/cmake/saxpy_static" || true
}

stage_mingw() {
  local folder=$BUILD/mingw
  [ -f "$folder/build.ninja" ] ||
    check "configure" meson setup --cross-file tools/cross/mingw-w64.ini "$folder" --buildtype=release || return 0
  check "build" ninja -C "$folder" || true
}

# Every instruction of our own assembler, as GNU as writes it.
compare_assemblers() {
  local test=("${@:2}" "$BUILD/$1/tests/unit/test_arm64_asm") work=$BUILD/$1/assembled
  "${test[@]}" --source >"$work.s" && "${test[@]}" --words >"$work.words" &&
    aarch64-linux-gnu-as -o "$work.o" "$work.s" && aarch64-linux-gnu-objcopy -O binary -j .text "$work.o" "$work.bin" &&
    od -An -v -t x4 -w4 "$work.bin" | tr -d ' ' | diff "$work.words" -
}

# Not under qemu: it can start no thread in a process that was forked while there were several, nor spare address space
# of its own; and what has nothing to do with the processor and takes long.
NOT_UNDER_QEMU=" test_threads test_cpu_memory test_failures test_simplify test_streams test_stress test_cuda test_cuda_calls "

# qemu is many times slower than the machine: small programs, and few of them with all that concerns the compiler.
stage_aarch64() {
  local folder=$BUILD/aarch64 run=(qemu-aarch64 -L /usr/aarch64-linux-gnu) random
  local -x SKIPPED_UNIT_TESTS=$NOT_UNDER_QEMU
  [ -f "$folder/build.ninja" ] ||
    check "configure" meson setup --cross-file tools/cross/aarch64-linux.ini "$folder" --buildtype=release || return 0
  check "build" ninja -C "$folder" || return 0
  run_unit_tests aarch64 "${run[@]}"
  check "our assembler and GNU as" compare_assemblers aarch64 "${run[@]}" || true
  random=("${run[@]}" "$folder/tests/random/test_random" --processes "$JOBS")
  run_counted "${random[@]}" --seed 1000001 --count 200
  run_counted "${random[@]}" --seed 2000001 --engines-only --size 20 --count "${HOLOGRAM_AARCH64_PROGRAMS:-10000}"
}

need_test_tools() {
  need_build_tools
  need g++=g++ pkg-config=pkg-config cmake=cmake make=make nm=binutils git=git groff=groff-base clang=clang \
    clang-tidy=$LINT_TIDY_PACKAGE \
    x86_64-w64-mingw32-gcc=gcc-mingw-w64-x86-64-win32 aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu \
    /usr/aarch64-linux-gnu/lib/libc.so.6=libc6-dev-arm64-cross qemu-aarch64=qemu-user
  need_fuzz_tools
  need_accuracy_tools
  need_python
}

# run_stage NAME NUMBER OF: one line, and the end of the log where something failed.
run_stage() {
  local name=$1 log=$LOGS/$1.log start before_passed=$passed before_failed=$failed
  start=$(seconds)
  printf '[%2d/%d] %-70s ' "$2" "$3" "${TITLE[$name]}"
  "stage_$name" >"$log" 2>&1
  printf '%6d passed, %d failed  %8s\n' $((passed - before_passed)) $((failed - before_failed)) "$(elapsed "$start")"
  [ "$failed" -eq "$before_failed" ] && return
  grep -nE '^FAILED|error:|ERROR:|^E  |: runtime error' "$log" | awk '{ what = $0; sub(/^[0-9]+:/, "", what) } !seen[what]++' |
    head -n 20 | sed 's/^/      | /'
  say "      the end of $log:"
  tail -n 30 "$log" | sed 's/^/      | /'
}

main() {
  help_if_asked "${1:-}" <<TEXT
Usage: ./dev test [STAGE]...

Runs the stages named, or all of them: ${STAGES[*]}.
Each prints a line; its whole output goes to build/logs/STAGE.log. The last line is "N passed, N failed"; exit status 1 if
anything failed. HOLOGRAM_FUZZ_SECONDS sets how long each fuzzer runs (10), HOLOGRAM_ACCURACY_SAMPLES how many inputs each
function is judged on (50000), HOLOGRAM_RANDOM_PROGRAMS how many random programs are compiled (10100; of a thousand one or two
do not verify) and HOLOGRAM_AARCH64_PROGRAMS how many small ones run on the engines of aarch64, under qemu (10000).
TEXT
  local stages=("$@") name start number=0
  [ ${#stages[@]} -gt 0 ] || stages=("${STAGES[@]}")
  for name in "${stages[@]}"; do
    [ -n "${TITLE[$name]:-}" ] || die "there is no stage '$name'; they are: ${STAGES[*]}"
  done
  need_test_tools
  mkdir -p "$LOGS"
  start=$(seconds)
  set +e # a stage counts its failures and goes on
  case " ${stages[*]} " in
    *" release "*) ;;
    *) build_release >"$LOGS/build.log" 2>&1 || die "the release build failed: $LOGS/build.log" ;;
  esac
  for name in "${stages[@]}"; do
    number=$((number + 1))
    run_stage "$name" "$number" "${#stages[@]}"
  done
  say "logs: $LOGS; $(elapsed "$start")"
  say "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
