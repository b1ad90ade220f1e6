# ./dev array-api

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev array-api FOLDER [PYTEST OPTION]...

Runs the array API's own test suite on the Python package, and says which share of the tests that need no complex numbers or
fft passes. FOLDER is a checkout of data-apis/array-api-tests with its submodule; docs/array-api.md names the commit, and what
is known to fail. --max-examples N: so many inputs a test (100).
TEXT
  local folder
  folder=$(realpath "${1:?a folder with data-apis/array-api-tests; ./dev array-api --help}")
  shift
  [[ -f $folder/array_api_tests/__init__.py && -d $folder/array-api/src ]] ||
    die "$folder is no checkout of data-apis/array-api-tests with its submodule array-api"
  need_build_tools
  need_python
  mkdir -p "$LOGS"
  say "building (build/package)"
  build_package >"$LOGS/build.log" 2>&1 || die "the build failed (whole log: $LOGS/build.log)"
  cd "$folder"
  PYTHONPATH=$ROOT/$BUILD/package/stage:$ROOT/tests/python:$folder PYTHONDONTWRITEBYTECODE=1 \
    ARRAY_API_TESTS_MODULE=hologram.array_api ARRAY_API_TESTS_SKIP_DTYPES=complex64,complex128 \
    "$ROOT/$VENV/bin/python" -m pytest -q -p array_api_suite -p no:cacheprovider -n "$JOBS" --dist worksteal --disable-deadline \
    -rxX -W ignore array_api_tests "$@" --disable-extension fft
}
