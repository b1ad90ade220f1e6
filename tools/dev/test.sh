# ./dev test - the stages of continuous integration. Each stage is a function stage_NAME; it says what passed and what failed
# through `check` and `count`, and its whole output goes to build/logs/NAME.log.

source tools/dev/jobs.sh
source tools/dev/lint.sh
source tools/dev/fuzz.sh
source tools/dev/accuracy.sh
source tools/dev/stress.sh
source tools/dev/sweep.sh
source tools/dev/wheel.sh

STAGES=(release shapes python package torch types wheel engines random accuracy demo asan fuzz tsan lint headers abi symbols docs
  install mingw aarch64)
declare -A TITLE=(
  [quick]="what says most in little time"
  [release]="release build (gcc), unit tests"
  [shapes]="counts that decide speed, of the code that operations and programs become"
  [python]="text, binary form, verifier, command line"
  [package]="the Python package: arrays, buffers, gradients, shared memory"
  [torch]="hologram_torch beside PyTorch"
  [types]="types of the Python packages: mypy, pyright, the stubs beside the extension"
  [wheel]="the Python package's wheel, in an empty environment"
  [engines]="conformance and the sweep of memory accesses on every engine"
  [random]="random programs through the compiler, ${HOLOGRAM_RANDOM_PROGRAMS:-8400} of them"
  [accuracy]="functions judged by MPFR, ${HOLOGRAM_ACCURACY_SAMPLES:-50000} inputs each"
  [demo]="demo on photographs, examples in Python, digits: bit for bit"
  [asan]="AddressSanitizer + UBSan build (clang): unit, command-line, Python tests"
  [fuzz]="fuzzers, ${HOLOGRAM_FUZZ_SECONDS:-10} s each"
  [tsan]="ThreadSanitizer build (clang), unit tests"
  [lint]="layout and clang-tidy"
  [headers]="public headers alone, C11 and C++17; their examples"
  [abi]="programs of version 1 on a library whose structs have grown"
  [symbols]="exported symbols"
  [docs]="documentation is up to date"
  [install]="install, pkg-config and CMake"
  [mingw]="Windows cross build (mingw-w64), run by wine: unit and command-line tests"
  [aarch64]="aarch64 under qemu: unit tests, conformance, sweep, ${HOLOGRAM_AARCH64_PROGRAMS:-4500} random programs"
)

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

# unit_jobs FOLDER [OPTION]... [-- WRAPPER...]: a job for each unit test of the build that the options choose (tools/unit_tests.py).
# A new test needs nothing here: its name in tests/unit/meson.build. `unit_jobs_suffix` tells apart what runs several times.
unit_jobs() {
  local lines name command
  if ! lines=$(python3 tools/unit_tests.py "$BUILD/$1" "${@:2}"); then
    say "FAILED: $BUILD/$1 declares no such unit tests"
    count 0 1
    return
  fi
  while IFS=$'\t' read -r name command; do
    eval "job \"\$name\${unit_jobs_suffix:-}\" run_counted $command"
  done <<<"$lines"
}

# pytest's last line ("3 failed, 120 passed, 1 skipped in 4.1s"), added up. An error or an empty run is a failure. What runs
# Python, where something has to, is `pytest_wrapper`.
run_pytest() {
  local folder=$BUILD/$1 output status=0 good bad
  shift
  output=$LOGS/.pytest.$BASHPID
  HOLOGRAM_CLI=$ROOT/$folder/hologram HOLOGRAM_LIB=$ROOT/$folder/libhologram.so PYTHONDONTWRITEBYTECODE=1 \
    timeout 1200 "${pytest_wrapper[@]}" "$VENV/bin/python" -m pytest -q -p no:cacheprovider -n "$JOBS" --dist worksteal \
    --maxfail=40 --tb=short "$@" >"$output" 2>&1 || status=$?
  cat "$output"
  good=$(tail -n 1 "$output" | grep -oE '[0-9]+ passed' | grep -oE '[0-9]+' || echo 0)
  bad=$(tail -n 1 "$output" | grep -oE '[0-9]+ (failed|error)' | awk '{ n += $1 } END { print n + 0 }')
  [ "$status" -ne 0 ] && [ "$bad" -eq 0 ] && bad=1 && say "FAILED: pytest, exit status $status"
  count "$good" "$bad"
  rm -f "$output"
}

stage_release() {
  check "build" build_release || return 0
  unit_jobs release
  run_jobs
}

# --quick: release build, unit tests but the slow ones, some random programs, a little of the conformance tests, counts of
# code, lint of what changed, documentation, symbols.
stage_quick() {
  local conformance=(tests/conformance/test_{verifier,isa_examples,bounds,loops,atomics}.py)
  check "build" build_release || return 0
  job "random programs" run_counted "$BUILD/release/tests/random/test_random" --processes "$JOBS" --seed 100000001 --count 800
  job "conformance" run_pytest release "${conformance[@]}"
  job "counts of code" stage_shapes
  job "layout" check "layout" lint_layout
  job "rooms" check "rooms" lint_rooms
  job "clang-tidy on what changed" check "clang-tidy" lint_tidy --changed
  job "documentation" stage_docs
  job "symbols" stage_symbols
  unit_jobs release --without slow
  run_jobs
}

# Counts of code, not times: the same on every machine.
stage_shapes() { run_counted python3 tests/shapes/shapes.py; }

stage_python() { run_pytest release tests -m "not engine" --ignore=tests/{demo,headers,large,python}; }

# Tests of a GPU's memory run on the release build's double of libcuda, where there is one.
stage_package() {
  check "build" build_package || return 0
  PYTHONPATH=$BUILD/package/stage HOLOGRAM_DOUBLE=$ROOT/$BUILD/release/tests/sim run_pytest package tests/python tests/large
}

stage_torch() {
  if ! install_torch; then
    say "PyTorch cannot be had here, so its tests are left out"
    return 0
  fi
  check "build" build_package || return 0
  PYTHONPATH=$(package_path) HOLOGRAM_DOUBLE=$ROOT/$BUILD/release/tests/sim run_pytest package -m torch tests/python
}

# Of hologram_torch, too, where PyTorch's own types can be had.
stage_types() {
  local folder=$ROOT/$BUILD/types-venv packages=(hologram) place
  make_python "$BUILD/types-venv" tools/requirements-types.txt
  if install_torch; then packages+=(hologram_torch); else say "PyTorch cannot be had here: without hologram_torch"; fi
  check "build" build_package || return 0
  for place in "$folder"/lib/python3*/site-packages; do
    printf '%s\n' "$ROOT/$BUILD/package/stage" "$ROOT/$BUILD/torch" >"$place/packages.pth"
  done
  local -x PATH=$folder/bin:$PATH VIRTUAL_ENV=$folder
  job "mypy" check "mypy" mypy --cache-dir "$BUILD/types-cache" "${packages[@]/#/--package=}"
  # Names of other libraries are in the type of arrays, to say what to write instead, and in no stub.
  sed -nE \
    's/^HGPY_NEAR\(WHERE_(METHOD|EITHER), (\w+),.*/hologram\\._core\\.Array\\.\2/p' python/src/near.def >"$BUILD/near-names.txt"
  job "stubs" check "stubs and extension" python -m mypy.stubtest hologram._core --allowlist tools/stubtest.txt \
    --allowlist "$BUILD/near-names.txt"
  job "pyright" check "pyright" basedpyright "${packages[@]/#/python/}"
  run_jobs
}

stage_wheel() {
  local python
  check "wheel" build_wheel || return 0
  check "name" wheel_is_named || true
  for python in $(pythons); do check "$python" try_wheel "$python" || true; done
}

# Programs run on all engines at once, which costs little more than on one: the model takes the time.
stage_engines() {
  local engines engine unit_jobs_suffix options=()
  mapfile -t engines < <(engines_here)
  say "engines: ${engines[*]}"
  for engine in "${engines[@]}"; do options+=(--engine "$engine"); done
  job "conformance" run_pytest release tests -m engine --ignore=tests/python --ignore=tests/large "${options[@]}"
  for engine in "${engines[@]}"; do
    unit_jobs_suffix=" on $engine"
    unit_jobs release --suite engines -- \
      env HOLOGRAM_CPU_ENGINE="${engine%:*}" HOLOGRAM_CPU_ISA="$([[ $engine == *:* ]] && say "${engine#*:}")"
  done
  run_jobs
}

# Programs that an engine once got wrong.
WRONG_ONCE="40005436 30027160 30098005 30100470 30131663 30180212 30255647 30262152 30340892 30460352 30566770 \
  30568591 30848054 50029307 50033967 50067794 61900297 61950393 62002496 66000556 67044189 67055345 68030401 68038211 \
  69015991 71015526 74041947 3660 8250"

random_wrong_once() {
  local seed
  for seed in $WRONG_ONCE; do
    run_counted "$BUILD/release/tests/random/test_random" --seed "$seed" --count 1 --engines-only
  done
}

# In each order in which threads of a block can run; what the first one compiles the others find. One program in three has more
# shared memory than Apple's GPUs.
random_on_metal() {
  local -x SIMMETAL_THREADGROUP_BYTES=262144
  local order
  for order in forward reverse random; do
    run_counted "${ON_METAL[@]}" SIMMETAL_ORDER=$order "$BUILD/release/tests/random/test_random" --processes "$JOBS" \
      --seed 100000001 --count 1400 --backend metal
  done
}

stage_random() {
  local -x MALLOC_PERTURB_=85 # new memory is no zeros: what was never written shows
  local random=$BUILD/release/tests/random/test_random capability
  local count=${HOLOGRAM_RANDOM_PROGRAMS:-8400}
  job "shapes" run_counted "$random" --shapes --seed 100000001 --count 2000
  job "on the CPU" run_counted "$random" --processes "$JOBS" --seed 100000001 --count $((count * 2 / 3))
  job "of the first generation" run_counted "$random" --processes "$JOBS" --count $((count / 3))
  # the CUDA backend's PTX, run by the double of libcuda
  local on_double=(run_counted "${ON_DOUBLE[@]}")
  job "PTX" "${on_double[@]}" "$random" --processes "$JOBS" --seed 100000001 --count 1500 --backend cuda
  job "PTX of the first generation" "${on_double[@]}" "$random" --processes "$JOBS" --count 800 --backend cuda
  for capability in 75 80; do # other programs than above
    job "PTX for capability $capability" "${on_double[@]}" FAKECUDA_CAPABILITY="$capability" \
      "$random" --processes "$JOBS" --seed "1${capability}000001" --count 600 --backend cuda
  done
  job "wrong once" random_wrong_once
  job "PTX wrong once" "${on_double[@]}" "$random" --seed 330012942 --count 1 --backend cuda
  # the Metal backend, on a simulated Metal that compiles its kernels by clang++ and keeps them
  has_metal && job "MSL" random_on_metal
  run_jobs
}

stage_accuracy() {
  check "build" build_accuracy || return 0
  job "judge" run_counted \
    "$BUILD/accuracy/tests/accuracy/judge" --processes "$JOBS" --samples "${HOLOGRAM_ACCURACY_SAMPLES:-50000}"
  # every input of f16 and bf16 on every engine; of f32 a million, but on the reference machine, which is slow
  local every=(run_counted "$BUILD/accuracy/tests/accuracy/every_input" --processes "$JOBS")
  job "every input of 16 bits" "${every[@]}" --types f16,bf16 --engines "$(engines_here | tr ':\n' '/,')"
  job "inputs of 32 bits" "${every[@]}" --types f32 --step 4093 --engines "$(engines_here | grep -v interp | tr ':\n' '/,')"
  has_metal && job "on Metal" run_counted "${ON_METAL[@]}" "${every[@]:1}" --types f32,f16,bf16 --step 4093 --engines metal
  run_jobs
}

stage_demo() {
  local -x PYTHONPATH
  PYTHONPATH=$(package_path)
  check "build of the package" build_package || return 0
  job "examples in Python" run_pytest release tests/demo
  job "photographs" demo_on_photographs
  run_jobs
}

demo_on_photographs() {
  local demo=("$VENV/bin/python" examples/demo.py --hologram "$BUILD/release/hologram" --quick --out "$BUILD/demo-quick")
  run_counted "${demo[@]}"
  has_metal && run_counted "${ON_METAL[@]}" "${demo[@]}" --backend metal
  check "tensors in C" "$BUILD/release/examples/tensors/tensors" "$BUILD/demo-quick" || true
}

stage_asan() {
  local -x ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
  check "build" build asan clang --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false \
    -Dc_args="-fno-sanitize-recover=all -gline-tables-only" -Dpython=true || return 0
  unit_jobs asan --without release-only --share 1/8
  job "sweep" run_counted "$BUILD/asan/tests/sweep/test_sweep" --brief --seed 4 --one-in 80 --launches 12
  job "Python package" package_on_asan
  job "command line" run_pytest asan tests/cli --one-in 2 --draw 2
  run_jobs
}

# The Python package: the sanitizer's library comes first into a process whose program was not built with it, and Python's own
# allocator gives way to malloc, which the sanitizer watches. What is alive when an interpreter ends is no leak; of growth the tests
# marked `resident` tell, which mean nothing here. PyTorch's are left out: they test what is written in Python.
package_on_asan() {
  check "package" lay_package asan || return 0
  local pytest_wrapper=(env LD_PRELOAD="$(clang -print-file-name="libclang_rt.asan-$(uname -m).so")" PYTHONMALLOC=malloc
    ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" PYTHONPATH="$BUILD/asan/stage" HOLOGRAM_DOUBLE="$ROOT/$BUILD/asan/tests/sim"
    HOLOGRAM_RANDOM_PYTHON=100)
  run_pytest asan tests/python -m "not resident" --ignore=tests/python/test_torch.py --ignore=tests/python/programs \
    --capture=sys --hypothesis-profile=few
}

stage_fuzz() {
  local name
  check "build" build_fuzz || return 0
  for name in $(fuzz_names); do
    job "fuzz_$name" check "fuzz_$name" fuzz_one "$name" "${HOLOGRAM_FUZZ_SECONDS:-10}"
  done
  run_jobs
}

stage_tsan() {
  local wrapper
  check "build" build_tsan || return 0
  mapfile -t wrapper < <(tsan_wrapper)
  unit_jobs tsan --without release-only --without no-tsan --share 3/8 -- "${wrapper[@]}"
  run_jobs
}

stage_lint() {
  job "clang-tidy" check "clang-tidy" lint_tidy
  job "layout" check "layout" lint_layout
  job "rooms" check "rooms" lint_rooms
  run_jobs
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
  printf '#include <%s>\n' stddef.h stdint.h hologram/flat/all.h >"$BUILD/logs/.header"
  check "flat/all.h" gcc -x c -std=c11 -Wall -Wextra -Werror -Wpedantic -Iinclude -fsyntax-only "$BUILD/logs/.header" || true
  check "flat/all.h and the others" python3 tools/gen_flat.py --check || true
  run_pytest release tests/headers
}

stage_abi() { run_counted python3 tests/abi/run.py; }

# The shared library exports what the headers declare and nothing else; no global symbol of the static library can
# collide with a caller's: all of them start with hg_, atlas_, ir_ or ops_.
stage_symbols() {
  check "symbols" python3 tools/check_symbols.py "$BUILD/release/libhologram.so" "$BUILD/release/libhologram.a" || true
  check_floating_point release nm
}

# check_floating_point BUILD NM: no C library computes for us.
check_floating_point() {
  check "no floating point of the C library" python3 tools/check_symbols.py --floating-point "$2" "$BUILD/$1" || true
}

stage_docs() {
  check "docs/isa.md" python3 tools/gen_isa.py --check || true
  check "docs/operations.md" python3 tools/gen_operations.py --check || true
  check "docs/semantics.md" python3 tools/gen_semantics.py --check || true
  check "docs/measured.md" python3 tools/gen_measured.py --check || true
  check "stubs of the Python package" python3 tools/gen_python.py --check || true
}

# What people download: the shared library and the command, stripped, at most 4.2 MB together.
small_enough() {
  local prefix=$1 work=$2 most=4200000 library command
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
  check "meson install" build_as_release install -Dtests=false --prefix="$prefix" --libdir=lib || return 0
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
  check "build" ninja -C "$folder" || return 0
  check_floating_point mingw x86_64-w64-mingw32-nm
  local -x WINEPREFIX=$ROOT/$BUILD/wine WINEDEBUG=-all WINEDLLOVERRIDES="winemenubuilder.exe=d;mscoree,mshtml=" DISPLAY=""
  check "wine" start_wine || return 0
  # what a program there prints ends its lines in two characters
  unit_jobs mingw --share 5/8 -- bash -c 'bash tools/dev/on_wine.sh "$0" 600 "$@" | tr -d "\r"; exit "${PIPESTATUS[0]}"' "${WINE}64"
  run_jobs
  run_command_on_wine mingw
  "${WINE}server64" -k
}

WINE=/usr/lib/wine/wine # Debian's script in the PATH asks for 32-bit Windows, too

# One server for all programs: starting it takes longer than most of them. It ends by itself when a minute goes by unused; one that
# a program starts ends with the last program, and takes with it one that comes just then. It wants its folder to be there.
start_wine() {
  mkdir -p "$WINEPREFIX" && "${WINE}server64" -p60 || return
  [ -f "$WINEPREFIX/system.reg" ] || "${WINE}64" wineboot -i
  "${WINE}64" cmd /c ver
}

# The command's tests with a script in its place: half of them, since starting a program takes most of the time. The hundreds of
# broken files of one of them are enough on one system; and the script keeps the output until the command has ended, so that it is
# not told of a full disk.
run_command_on_wine() {
  local command=$ROOT/$BUILD/$1/hologram
  printf '#!/bin/sh\nexec bash "%s/tools/dev/on_wine.sh" %s64 15 "%s.exe" "$@"\n' "$ROOT" "$WINE" "$command" >"$command"
  chmod +x "$command"
  run_pytest "$1" tests/cli -m "not posix" --one-in 2 --draw 1 --deselect tests/cli/test_npy.py::test_npy_fuzz \
    --deselect tests/cli/test_cli.py::test_full_standard_output
}

# Every instruction of our own assembler, as GNU as writes it.
compare_assemblers() {
  local test=("${@:2}" "$BUILD/$1/tests/unit/test_arm64_asm") work=$BUILD/$1/assembled
  "${test[@]}" --source >"$work.s" && "${test[@]}" --words >"$work.words" &&
    aarch64-linux-gnu-as -o "$work.o" "$work.s" && aarch64-linux-gnu-objcopy -O binary -j .text "$work.o" "$work.bin" &&
    od -An -v -t x4 -w4 "$work.bin" | tr -d ' ' | diff "$work.words" -
}

# A tenth of the conformance tests: this machine runs them and records their launches, which another then repeats: COMMAND.
repeat_conformance() {
  local recorded=$LOGS/recorded-launches
  rm -rf "$recorded"
  HOLOGRAM_TEST_RECORD=$recorded run_pytest release tests/conformance -m engine --one-in 10 --draw 1
  run_counted "$@" --processes "$JOBS" "$recorded"
  rm -rf "$recorded"
}

# qemu is many times slower than the machine: small programs, and few of them with all that concerns the compiler.
stage_aarch64() {
  local folder=$BUILD/aarch64 run=(qemu-aarch64 -L /usr/aarch64-linux-gnu) random
  [ -f "$folder/build.ninja" ] ||
    check "configure" meson setup --cross-file tools/cross/aarch64-linux.ini "$folder" --buildtype=release || return 0
  check "build" ninja -C "$folder" || return 0
  check_floating_point aarch64 aarch64-linux-gnu-nm
  random=(run_counted "${run[@]}" "$folder/tests/random/test_random" --processes "$JOBS")
  job "random programs on the engines" "${random[@]}" \
    --seed 102000001 --engines-only --size 20 --count "${HOLOGRAM_AARCH64_PROGRAMS:-4500}"
  job "random programs" "${random[@]}" --seed 1000001 --count 200
  job "conformance" repeat_conformance "${run[@]}" "$folder/tests/conformance/replay"
  job "sweep" run_counted "${run[@]}" "$folder/tests/sweep/test_sweep" --brief --seed 5 --one-in 60 --launches 16
  unit_jobs aarch64 --without release-only --without no-qemu --share 7/8 -- "${run[@]}"
  job "our assembler and GNU as" check "our assembler and GNU as" compare_assemblers aarch64 "${run[@]}"
  run_jobs
}

need_quick_tools() {
  need_build_tools
  need nm=binutils git=git clang=clang clang-tidy=$LINT_TIDY_PACKAGE
  need_python
}

need_test_tools() {
  need_quick_tools
  need g++=g++ '/usr/include/python3*/Python.h'=python3-dev pkg-config=pkg-config cmake=cmake make=make groff=groff-base \
    x86_64-w64-mingw32-gcc=gcc-mingw-w64-x86-64-win32 aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu \
    /usr/lib/wine/wine64=wine64 /usr/aarch64-linux-gnu/lib/libc.so.6=libc6-dev-arm64-cross qemu-aarch64=qemu-user
  need_fuzz_tools
  need_accuracy_tools
  need_wheel_tools
}

# run_stage NAME NUMBER OF: one line, and the end of the log where something failed.
run_stage() {
  local name=$1 log=$LOGS/$1.log STAGE=$1 start before_passed=$passed before_failed=$failed
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
Usage: ./dev test [--quick | STAGE]...

Runs the stages named, or all of them: ${STAGES[*]}.
--quick, the habit before every commit, is less than three minutes on two processors: the release build, the unit tests but the slow
ones, some random programs, a little of the conformance tests, counts of code, lint of what changed, documentation, symbols.
Each prints a line; its whole output goes to build/logs/STAGE.log. The last line is "N passed, N failed"; exit status 1 if
anything failed. HOLOGRAM_FUZZ_SECONDS sets how long each fuzzer runs (10), HOLOGRAM_ACCURACY_SAMPLES how many inputs each
function is judged on (50000), HOLOGRAM_RANDOM_PROGRAMS how many random programs are compiled (8400; of a thousand one or two
do not verify) and HOLOGRAM_AARCH64_PROGRAMS how many small ones run on the engines of aarch64, under qemu (4500).
TEXT
  local stages=("$@") name start building number=0
  [ ${#stages[@]} -gt 0 ] || stages=("${STAGES[@]}")
  stages=("${stages[@]/#--quick/quick}")
  for name in "${stages[@]}"; do
    [ -n "${TITLE[$name]:-}" ] || die "there is no stage '$name'; they are: ${STAGES[*]}"
  done
  mkdir -p "$LOGS"
  start=$(seconds)
  need_build_tools
  build_release >"$LOGS/build.log" 2>&1 & # meanwhile the rest is installed, which mostly waits
  building=$!
  if [ "${stages[*]}" = quick ]; then need_quick_tools; else need_test_tools; fi
  set +e # a stage counts its failures and goes on
  wait "$building"
  case "$? ${stages[*]} " in
    "0 "* | *" release "* | *" quick "*) ;; # which build again, and count it
    *) die "the release build failed: $LOGS/build.log" ;;
  esac
  for name in "${stages[@]}"; do
    number=$((number + 1))
    run_stage "$name" "$number" "${#stages[@]}"
  done
  say "logs: $LOGS; $(elapsed "$start")"
  say "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
