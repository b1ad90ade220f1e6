# ./dev wheel - the Python package as one file that installs without a compiler

WHEELS=$BUILD/wheels
WHEEL_VENV=$BUILD/wheel-venv

need_wheel_tools() {
  need_build_tools
  need '/usr/include/python3*/Python.h'=python3-dev
  make_python "$WHEEL_VENV" tools/requirements-wheel.txt
}

# What pip calls (PEP 517), in build/wheel, kept for the next time, by the commands of build/release as far as it goes, and so with
# its objects. Then auditwheel looks at the symbols that the extension asks libraries for, and names the wheel by the oldest systems
# that have them.
build_wheel() {
  local build='import mesonpy, sys; mesonpy.build_wheel(sys.argv[1], {"build-dir": sys.argv[2], "setup-args": sys.argv[3:]})'
  local -x PATH=$ROOT/$WHEEL_VENV/bin:$PATH CC=gcc CC_FOR_BUILD=gcc
  begin_as release wheel
  rm -rf "$WHEELS"
  mkdir -p "$WHEELS/plain"
  python -c "$build" "$WHEELS/plain" "$BUILD/wheel" -Dwerror=true -Db_ndebug=false &&
    wheel tags --python-tag=cp311 --remove "$WHEELS"/plain/*.whl && # whatever Python built it
    auditwheel repair --strip --wheel-dir "$WHEELS" "$WHEELS"/plain/*.whl &&
    auditwheel show "$WHEELS"/*.whl
}

# One wheel for every CPython from 3.11 on, and for every glibc from 2.34 on, in which threads and dlopen became part of libc.so:
# what is linked there asks for that much. Anything newer would be a function that can be done without.
wheel_is_named() {
  local name
  name=$(cd "$WHEELS" && echo *.whl)
  [[ $name =~ ^hologram-[0-9.]+-cp311-abi3-manylinux_2_([0-9]+)_[a-z0-9_]+\.whl$ ]] && [ "${BASH_REMATCH[1]}" -le 34 ] && return
  say "that is not the name of a wheel for CPython 3.11 and glibc 2.34: $name"
  return 1
}

# try_wheel PYTHON: in an empty environment, without a package index, somewhere else than in the sources.
try_wheel() {
  local folder=$ROOT/$WHEELS/empty
  rm -rf "$folder"
  "$1" -m venv "$folder" && "$folder/bin/python" -m pip install --disable-pip-version-check --no-index "$ROOT/$WHEELS"/*.whl &&
    (cd / && env -u PYTHONPATH "$folder/bin/python" "$ROOT/tests/install/package.py")
}

# The Pythons of this machine that the wheel is for, one a version.
pythons() {
  local python version
  local -A seen=()
  for python in python3 python3.{11..19}; do
    version=$("$python" -c 'import ensurepip, sys, venv; print(sys.version); sys.exit(sys.version_info < (3, 11))' 2>/dev/null) ||
      continue
    [ -n "${seen[$version]:-}" ] || say "$python"
    seen[$version]=yes
  done
}

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev wheel

Builds the Python package as a wheel in build/wheels: for CPython 3.11 and every later one, with the library inside and nothing
needed beside it. auditwheel looks at the symbols that it asks of the system and names it by the oldest glibc that has them:
manylinux_2_34 on Debian 12; a system with an older glibc makes an older one. Then it is installed in an empty environment of every
Python that is here, and tried.
TEXT
  local python
  need_release
  need_wheel_tools
  say "building the wheel"
  build_wheel >"$LOGS/wheel-build.log" 2>&1 || {
    tail -n 40 "$LOGS/wheel-build.log" >&2
    die "the wheel could not be built (whole log: $LOGS/wheel-build.log)"
  }
  for python in $(pythons); do
    try_wheel "$python" >"$LOGS/wheel-try.log" 2>&1 || {
      tail -n 40 "$LOGS/wheel-try.log" >&2
      die "the wheel does not work in an empty environment of $python (whole log: $LOGS/wheel-try.log)"
    }
    say "$python: $(tail -n 1 "$LOGS/wheel-try.log")"
  done
  say "$(echo "$WHEELS"/*.whl), $(stat -c %s "$WHEELS"/*.whl) bytes"
}
