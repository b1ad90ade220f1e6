# ./dev test-metal

# metal_test WHAT COMMAND...: one line for a program that ends in "N passed, N failed" or in pytest's summary.
metal_test() {
  local what=$1 log=$LOGS/metal-${1// /-}.log
  shift
  if "$@" >"$log" 2>&1; then
    say "$what: $(tail -n 1 "$log")"
  else
    say "$what: FAILED, $(tail -n 1 "$log") (whole log: $log)"
    failures=$((failures + 1))
  fi
}

# Whatever it prints is the report.
report() {
  local failures=0 name release=$BUILD/release python=("$VENV/bin/python" -m pytest -q -p no:cacheprovider -n "$JOBS")
  local demo=("$VENV/bin/python" examples/demo.py --hologram "$release/hologram" --out "$BUILD/demo" --backend metal)
  [[ $(uname) == Darwin ]] || demo+=(--quick) # the simulated one is slow
  uname -srm
  "$release/hologram" info
  metal_test "messages" "$release/tests/unit/test_metal_messages"
  for name in test_metal test_launch test_launch_shapes test_choices test_nan_bits test_narrow test_faults test_failures \
    test_runtime test_streams test_stream_failures test_graphs test_groups test_machine_ops test_kernel_info test_lanes_left \
    test_length test_local_zeros test_shared test_loops test_indices test_eager test_executables test_reductions; do
    metal_test "$name" "$release/tests/unit/$name"
  done
  metal_test "random programs" env SIMMETAL_THREADGROUP_BYTES=262144 "$release/tests/random/test_random" \
    --backend metal --seed 100000001 --processes "$JOBS" --count "${HOLOGRAM_METAL_RANDOM_PROGRAMS:-20000}"
  metal_test "sweep of memory accesses" "$release/tests/sweep/test_sweep" --backend metal --one-in 10 --launches 16 \
    --processes "$JOBS"
  metal_test "conformance" "${python[@]}" tests/conformance "$@"
  metal_test "operations" "${python[@]}" tests/ops "$@"
  metal_test "demo" "${demo[@]}"
  "${demo[@]}" --bench || failures=$((failures + 1))
  say "$failures failed"
  [ "$failures" -eq 0 ]
}

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev test-metal [PYTEST OPTION]...

Runs what launches on Metal: the table of messages against the runtime's own, unit tests, subnormal numbers and functions,
HOLOGRAM_METAL_RANDOM_PROGRAMS random programs (20000), the conformance tests and those of operations, the demo, and what its
programs take. On a Mac that is Apple's Metal; elsewhere the simulated one, which takes some hours on two processors and minutes
afterwards: it keeps what it has compiled. On a Mac, please send build/logs/metal-report.txt and, of what failed, metal-*.log there.
TEXT
  need_build_tools
  need_python
  need_release
  use_metal
  local -x HOLOGRAM_TEST_BACKEND=metal HOLOGRAM_LIB=$BUILD/release/libhologram.so HOLOGRAM_CLI=$BUILD/release/hologram
  local -x HOLOGRAM_METAL_ROUNDS=${HOLOGRAM_METAL_ROUNDS:-80} HOLOGRAM_CACHE_DIR=/dev/null/none
  [[ $(uname) != Darwin ]] || HOLOGRAM_LIB=$BUILD/release/libhologram.dylib
  report "$@" | tee "$LOGS/metal-report.txt"
}
