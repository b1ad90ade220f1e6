# ./dev test-gpu

# gpu_test WHAT COMMAND...: one line for a program that ends in "N passed, N failed" or in pytest's summary.
gpu_test() {
  local what=$1 log=$LOGS/gpu-${1// /-}.log
  shift
  if "$@" >"$log" 2>&1; then
    say "$what: $(tail -n 1 "$log")"
  else
    say "$what: FAILED, $(tail -n 1 "$log") (whole log: $log)"
    failures=$((failures + 1))
  fi
}

# side_by_side TEST...: unit tests, each with its options, four at a time: most of their time is the driver's compiler's. What they
# say comes in order.
side_by_side() {
  local name pids=() at=0
  for name in "$@"; do
    while [ "$(jobs -rp | wc -l)" -ge 4 ]; do wait -n || true; done
    {
      failures=0
      # shellcheck disable=SC2086
      gpu_test "$name" $BUILD/release/tests/unit/$name
      exit "$failures"
    } >"$LOGS/gpu-${name// /-}.said" &
    pids+=($!)
  done
  for name in "$@"; do
    wait "${pids[at++]}" || failures=$((failures + 1))
    cat "$LOGS/gpu-${name// /-}.said"
    rm "$LOGS/gpu-${name// /-}.said"
  done
}

# sanitized TOOL FOLDER: the launches of the conformance tests under a tool of compute-sanitizer, in a few processes: more wait
# for one another.
sanitized() {
  local tool=$1 folder=$2 processes=4 part pids=() status=0
  for ((part = 0; part < processes; part++)); do
    compute-sanitizer --tool "$tool" --error-exitcode 1 \
      "$BUILD/release/tests/conformance/replay" "$folder" "$part" "$processes" >"$folder/$tool-$part.log" 2>&1 &
    pids+=($!)
  done
  for part in "${pids[@]}"; do wait "$part" || status=1; done
  cat "$folder/$tool"-*.log
  say "$(awk '/ passed, / { good += $1; bad += $3 } END { print good + 0 " passed, " bad + 0 " failed" }' "$folder/$tool"-*.log);" \
    "errors and hazards: $(awk '/SUMMARY:/ { n += $4 } END { print n + 0 }' "$folder/$tool"-*.log)"
  return $status
}

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev test-gpu [PYTEST OPTION]...

Runs the tests of launches, HOLOGRAM_GPU_RANDOM_PROGRAMS random programs (5000), a tenth of the sweep of memory accesses, the
conformance tests and those of operations (each result beside the reference machine's) on the NVIDIA GPU of this machine, each with
kernels compiled anew; where compute-sanitizer is installed, the tests of launches and the conformance tests again under its
memcheck and racecheck; where CUPTI is, what profilers hear. Without a GPU it says why there is none and fails.
TEXT
  need_build_tools
  need_python
  need_release
  local failures=0 name release=$BUILD/release
  "$release/hologram" info | grep -q "cuda: .*compute capability" ||
    die "there is no GPU to test: $("$release/hologram" info | grep 'cuda:' | head -n 1)"
  "$release/hologram" info | sed -n '/^device/,$p'
  local -x HOLOGRAM_TEST_BACKEND=cuda HOLOGRAM_CACHE_DIR=/dev/null/none HOLOGRAM_LIB=$release/libhologram.so
  local -x HOLOGRAM_CLI=$release/hologram HOLOGRAM_QUICK=0 # kernels are compiled in full
  side_by_side 'test_reductions --all' test_launch test_launch_shapes test_choices test_nan_bits test_narrow test_faults \
    test_runtime \
    test_failures test_devices test_streams test_tabulated test_stream_failures test_graphs test_groups test_packs \
    test_extremes test_machine_ops \
    test_compiling test_kernel_info test_lanes_left test_length test_local_zeros test_shared test_shared_work test_block_groups \
    test_loops test_indices test_eager test_executables
  gpu_test test_memory "$release/tests/unit/test_memory" # it looks at what the device has left
  gpu_test "random programs" "$release/tests/random/test_random" --backend cuda --seed 100000001 --processes "$JOBS" \
    --count "${HOLOGRAM_GPU_RANDOM_PROGRAMS:-5000}"
  gpu_test "sweep of memory accesses" "$release/tests/sweep/test_sweep" --backend cuda --one-in 10 --launches 16 \
    --processes "$JOBS"
  rm -rf "$LOGS/gpu-launches"
  HOLOGRAM_TEST_RECORD=$LOGS/gpu-launches \
    gpu_test "conformance" "$VENV/bin/python" -m pytest -q -p no:cacheprovider -n "$JOBS" tests/conformance "$@"
  gpu_test "operations" "$VENV/bin/python" -m pytest -q -p no:cacheprovider -n "$JOBS" tests/ops "$@"
  [ ! -d "$BUILD/package/stage" ] ||
    PYTHONPATH=$BUILD/package/stage gpu_test "circuits" "$VENV/bin/python" -m pytest -q -p no:cacheprovider \
      tests/python/test_circuits.py "$@"
  if command -v compute-sanitizer >/dev/null; then
    for name in memcheck racecheck; do
      gpu_test "test_launch under $name" compute-sanitizer --tool "$name" --error-exitcode 1 "$release/tests/unit/test_launch"
      gpu_test "test_memory under $name" compute-sanitizer --tool "$name" --error-exitcode 1 "$release/tests/unit/test_memory"
      gpu_test "conformance under $name" sanitized "$name" "$LOGS/gpu-launches"
    done
  fi
  gpu_test "profilers" "$VENV/bin/python" -m pytest -q -rs -p no:cacheprovider tests/gpu
  [ "$failures" -eq 0 ]
}
