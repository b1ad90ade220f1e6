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

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev test-metal [PYTEST OPTION]...

Runs what launches on Metal: the table of messages against the runtime's own, unit tests, HOLOGRAM_METAL_RANDOM_PROGRAMS random
programs (20000), subnormal numbers, and the conformance tests. On a Mac that is Apple's Metal; elsewhere the simulated one, which
takes an hour on two processors and seconds afterwards: it keeps what it has compiled. On a Mac, please send what this prints and
build/logs/metal-*.log.
TEXT
  need_build_tools
  need_python
  need_release
  local failures=0 name release=$BUILD/release
  use_metal
  local -x HOLOGRAM_TEST_BACKEND=metal HOLOGRAM_LIB=$release/libhologram.so HOLOGRAM_CLI=$release/hologram HOLOGRAM_METAL_ROUNDS=80
  "$release/hologram" info | sed -n '/^device/,$p'
  for name in test_metal test_launch test_choices test_nan_bits test_narrow test_faults test_failures test_streams \
    test_stream_failures test_graphs test_groups test_machine_ops test_kernel_info test_length test_local_zeros test_shared \
    test_loops test_indices; do
    metal_test "$name" "$release/tests/unit/$name"
  done
  metal_test "random programs" "$release/tests/random/test_random" --backend metal --seed 100000001 --processes "$JOBS" \
    --count "${HOLOGRAM_METAL_RANDOM_PROGRAMS:-20000}"
  metal_test "conformance" "$VENV/bin/python" -m pytest -q -p no:cacheprovider -n "$JOBS" tests/conformance "$@"
  return $((failures > 0))
}
