# common.sh - what several ./dev commands need: packages, the Python environment, builds. Sourced by ./dev in the root.

ROOT=$PWD
BUILD=build
LOGS=$BUILD/logs
VENV=$BUILD/venv
JOBS=$(nproc 2>/dev/null || echo 2)

say() { printf '%s\n' "$*"; }

die() {
  printf 'dev: %s\n' "$*" >&2
  exit 1
}

# Prints the text on stdin and leaves when the command's first argument asks for help.
help_if_asked() {
  local text
  text=$(cat)
  case "${1:-}" in
    -h | --help)
      say "$text"
      exit 0
      ;;
  esac
}

# need PROGRAM=PACKAGE...: makes sure that the programs are there; installs the Debian packages of those that are not.
# An absolute path or a name with '/' is looked for as a file (a pattern is allowed).
need() {
  local missing=() names=() pair program
  for pair in "$@"; do
    program=${pair%%=*}
    case "$program" in
      */*) compgen -G "$program" >/dev/null && continue ;;
      *) command -v "$program" >/dev/null && continue ;;
    esac
    names+=("${program##*/}")
    missing+=("${pair#*=}")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  install_packages "${names[*]}" "${missing[@]}"
}

install_packages() {
  local names=$1 run=()
  shift
  command -v apt-get >/dev/null || die "these are missing: $names. Please install them (Debian's packages: $*)."
  [ -z "${HOLOGRAM_NO_INSTALL:-}" ] || die "these are missing: $names. apt-get install $*"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -v || die "these are missing: $names. As root: apt-get install $*"
    run=(sudo)
  fi
  say "installing $*"
  mkdir -p "$LOGS"
  {
    "${run[@]}" apt-get update -q &&
      "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
  } >"$LOGS/apt.log" 2>&1 || {
    tail -n 20 "$LOGS/apt.log" >&2
    die "apt-get could not install $* (whole log: $LOGS/apt.log)"
  }
}

need_build_tools() {
  need gcc=gcc '/usr/include/*/sys/types.h'=libc6-dev meson=meson ninja=ninja-build python3=python3
}

# make_python FOLDER FILE: the Python environment FOLDER, with what the requirements FILE pins, once per content of that file.
make_python() {
  local folder=$1 file=$2 sum stamp=$1/requirements.sha256
  sum=$(sha256sum "$file")
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ] && return 0
  need python3=python3
  python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages "Python's venv" python3-venv
  say "making the Python environment $folder"
  mkdir -p "$LOGS"
  rm -rf "$folder"
  {
    python3 -m venv "$folder" &&
      "$folder/bin/python" -m pip install --disable-pip-version-check --no-deps -r "$file"
  } >"$LOGS/venv.log" 2>&1 || {
    tail -n 20 "$LOGS/venv.log" >&2
    die "the Python environment could not be made (whole log: $LOGS/venv.log)"
  }
  printf '%s\n' "$sum" >"$stamp"
}

need_python() { make_python "$VENV" tools/requirements.txt; }

# build NAME COMPILER [MESON OPTION]...: configures build/NAME, once for these options, and brings it up to date. It begins with the
# objects of build/$begins_as, where that is set; where only some `targets` are wanted these are all that is made.
build() {
  local folder=$BUILD/$1 compiler=$2 options=$BUILD/$1/options.txt
  begin_as "${begins_as:-}" "$1" || return
  shift 2
  if ! [ -f "$folder/build.ninja" ]; then
    CC=$compiler CC_FOR_BUILD=$compiler meson setup "$folder" "$@" || return
  elif [ "$(cat "$options" 2>/dev/null)" != "$*" ]; then
    meson configure "$folder" "$@" || return
  fi
  printf '%s\n' "$*" >"$options"
  ninja -C "$folder" "${targets[@]}"
}

# begin_as OTHER NAME: build/NAME, not configured yet, begins with the objects of build/OTHER, where that is built. They are a start
# only: ninja makes anew what has other commands or is older than its sources.
begin_as() {
  local other=$BUILD/$1 folder=$BUILD/$2
  if [ -f "$folder/build.ninja" ]; then return; fi
  rm -rf "$folder"
  if [ -f "$other/.ninja_log" ]; then
    mkdir -p "$folder/tests"
    { cp -a "$other"/.ninja_{log,deps} "$other"/{*.p,embed,formulas,*.a,{functions,formulas}_data.c,code_version.h*} "$folder" &&
      cp -a "$other/tests/sim" "$folder/tests"; } || rm -rf "$folder" # that build is not complete: this one begins empty
  fi
}

# build_as_release NAME [MESON OPTION]...
build_as_release() {
  local begins_as=release
  build "$1" gcc --buildtype=release "${@:2}"
}

# The package as pip installs it, from the build of its own that pip makes.
build_package() { build_as_release package -Dtests=false -Dpython=true && lay_package package; }

# lay_package BUILD: the package in BUILD/stage, as it lies when it is installed, with the entry points of pyproject.toml.
lay_package() {
  local stage=$BUILD/$1/stage facts=$BUILD/$1/stage/hologram-0.1.0.dist-info
  rm -rf "$stage"
  mkdir -p "$facts"
  printf 'Metadata-Version: 2.1\nName: hologram\nVersion: 0.1.0\n' >"$facts/METADATA"
  sed -n '/^\[project\.entry-points\./,/^$/{s/^\[project\.entry-points\./[/;s/"//g;p}' pyproject.toml >"$facts/entry_points.txt"
  cp -R python/hologram python/hologram_torch "$stage" && cp "$BUILD/$1/python/_core.abi3.so" "$stage/hologram"
}

build_release() { build release gcc --buildtype=release; }

# PyTorch is large, and not to be had everywhere.
install_torch() {
  [ -d "$BUILD/torch/torch" ] && return 0
  rm -rf "$BUILD/torch.part"
  "$VENV/bin/python" -m pip install --disable-pip-version-check --target "$BUILD/torch.part" torch==2.13.0 &&
    rm -rf "$BUILD/torch" && mv "$BUILD/torch.part" "$BUILD/torch"
}

# The release build for commands that are about something else: quiet unless it fails.
need_release() {
  mkdir -p "$LOGS"
  say "building (build/release)"
  build_release >"$LOGS/build.log" 2>&1 || {
    tail -n 40 "$LOGS/build.log" >&2
    die "the build failed (whole log: $LOGS/build.log)"
  }
}

# What runs on the double of libcuda, with kernels compiled in full each time, and on simulated Metal.
ON_DOUBLE=(env LD_LIBRARY_PATH="$BUILD/release/tests/sim" HOLOGRAM_CACHE=0 HOLOGRAM_QUICK=0)
has_metal() { [[ -e $BUILD/release/tests/sim/metal/libobjc.A.dylib ]]; }
ON_METAL=(env LD_LIBRARY_PATH="$BUILD/release/tests/sim/metal" SIMMETAL_CACHE="$BUILD/metal-kernels" HOLOGRAM_CACHE=0)

# use_metal: what runs from here on finds Apple's Metal, or on Linux the simulated one, and says which.
use_metal() {
  if [[ $(uname) != Darwin ]]; then
    [[ -e $BUILD/release/tests/sim/metal/libobjc.A.dylib ]] ||
      die "there is neither Metal nor a simulated one: that needs clang++ and x86-64 Linux"
    export LD_LIBRARY_PATH=$ROOT/$BUILD/release/tests/sim/metal SIMMETAL_CACHE=$ROOT/$BUILD/metal-kernels
  fi
  "$BUILD/release/hologram" info | sed -n 's/^backends *metal:/Metal:/p'
}

# Where Python finds it, and PyTorch where that was installed (./dev test torch).
package_path() { say "$ROOT/$BUILD/package/stage:$ROOT/$BUILD/torch"; }

# The package for commands that are about something else: quiet unless it fails.
need_package() {
  need '/usr/include/python3*/Python.h'=python3-dev
  say "building the Python package (build/package)"
  build_package >"$LOGS/package.log" 2>&1 || {
    tail -n 40 "$LOGS/package.log" >&2
    die "the build failed (whole log: $LOGS/package.log)"
  }
}

seconds() { date +%s.%N; }
elapsed() { awk -v a="$1" -v b="$(seconds)" 'BEGIN { printf "%.1f s", b - a }'; }
