# ./dev test-large - operations on arrays of more than 2^24 and of more than 2^32 elements

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev test-large [PYTEST OPTION]...

Every operation of the table with 2^24 - 1, 2^24 and 2^24 + 1 elements, and one of each kind with 2^31 + 1 and 2^32 + 7, looked at
bit for bit: half an hour on two processors, and 20 GiB of memory. HOLOGRAM_LARGE_BACKEND=cuda: on a GPU. A small part of it, which
needs 2 GiB, is among what ./dev test runs.
TEXT
  need_build_tools
  need_python
  need_package
  HOLOGRAM_LARGE=1 PYTHONPATH=$BUILD/package/stage \
    "$VENV/bin/python" -m pytest -q -rs -p no:cacheprovider --durations=10 "$@" tests/large
}
