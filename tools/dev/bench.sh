# ./dev bench

BENCH_VENV=$BUILD/bench-venv

# PyTorch is large, and not to be had everywhere: without it its columns stay empty.
need_torch() {
  local stamp=$BENCH_VENV/torch.sha256 sum
  sum=$(sha256sum bench/cpu/torch.txt)
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ] && return 0
  say "installing PyTorch in $BENCH_VENV"
  if "$BENCH_VENV/bin/python" -m pip install --disable-pip-version-check -r bench/cpu/torch.txt -c bench/cpu/requirements.txt \
    >"$LOGS/torch.log" 2>&1; then
    printf '%s\n' "$sum" >"$stamp"
  else
    say "PyTorch could not be installed, so it is left out (log: $LOGS/torch.log)"
  fi
}

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev bench [--json] [--repeat N]
       ./dev bench compile [--json] [--kernels] [FILE...]
       ./dev bench launch [--json]
       ./dev bench circuit [cpu|cuda|metal]
       ./dev bench eager [--json]
       ./dev bench faults
       ./dev bench ops [--ops NAME,...] [--types NAME,...] [--isas NAME,...] [--interp] [--json]
       ./dev bench exchange [--json] [--most N] [--seconds S]
       ./dev bench cpu [OPTION]...
       ./dev bench cuda [OPTION]...
       ./dev bench python [OPTION]...
       ./dev bench door [OPTION]...
       ./dev bench cases [OPTION]... [NAME]...

Times the example programs and prints lanes and instructions a second.

compile: how long the compiler takes, and how much memory, on programs of 10 to 100,000 instructions;
  and what a kernel of one function, or of each FILE, costs, from the canonical form to machine code (--kernels: only that).
launch: what a launch costs besides its program: the runtime, the worker threads, memory's first touch, copies and fills.
circuit: circuits over the 96 classes: reading 10,000 steps, and 48 swaps beside reading and writing the boundary pool.
eager: what a call of one operation costs on the CPU, beside a launch and a run of the same; and a computation of 1000 operations.
faults: loops in which every access is out of bounds, beside the same in bounds, on the native engine and the tile engine.
ops: nanoseconds a lane of every instruction and type on the tile engine and the native one, on one thread.
exchange: what it costs to bring NumPy's arrays and PyTorch's tensors into the Python package and out again, as JSON, by a copy
  and without one, from 100 floats to 10 million; writes exchange.md and exchange.png to build/bench. Allow five minutes.
cpu: the CPU engines on element-wise programs, programs of blocks and operations, beside compiled C loops, NumPy, numexpr and
  PyTorch; its own --help, and bench/README.md.
cuda: the GPU on element-wise programs, programs of blocks and operations, beside what PyTorch, Triton and CuPy
  HOLOGRAM_BENCH_PYTHON (python3) has; the same.
python: calls of the Python package and of hologram_torch, and steps of training, beside NumPy and PyTorch; the same.
door: work as users call it, from Python and PyTorch, in loops with and without waits, from the first call on, beside PyTorch,
  NumPy, CuPy and JAX; the same.
cases: what each special case of bench/cases/cases.toml is worth: the counts of the shapes whose code moves without it, and
  the library without it, to time; the same.
TEXT
  local -x HOLOGRAM_QUICK=0 # rates are those of code that the driver has compiled in full
  case "${1:-}" in
    circuit | compile | launch | eager | faults | ops)
      local name=$1
      shift
      [ "$name" != ops ] || local -x HOLOGRAM_NUM_THREADS=1
      { need_build_tools && need_release; } >&2
      "$BUILD/release/bench/bench_$name" "$@"
      ;;
    cases)
      shift
      need_build_tools >&2
      python3 bench/cases/weigh.py "$@"
      ;;
    exchange)
      shift
      { need_build_tools && need_python && need_package; } >&2
      PYTHONPATH=$(package_path) "$VENV/bin/python" bench/python/exchange.py "$@"
      ;;
    cpu)
      shift
      { need_build_tools && make_python "$BENCH_VENV" bench/cpu/requirements.txt && need_torch && need_release; } >&2
      "$BENCH_VENV/bin/python" bench/cpu/run.py "$@"
      ;;
    cuda)
      shift
      # A machine with a GPU need not have compilers: what was built elsewhere will do.
      if command -v meson >/dev/null || [ ! -f "$BUILD/release/libhologram.so" ]; then
        { need_build_tools && need_release; } >&2
      fi
      "${HOLOGRAM_BENCH_PYTHON:-python3}" bench/cuda/run.py "$@"
      ;;
    python | door)
      local which=$1
      shift
      local python=${HOLOGRAM_BENCH_PYTHON:-$VENV/bin/python} path=$BUILD/package/stage
      # As above. A Python of the caller's has its own PyTorch.
      if command -v meson >/dev/null || [ ! -d "$BUILD/package/stage" ]; then
        { need_build_tools && need_python && need_release && build_package; } >&2
        [ -n "${HOLOGRAM_BENCH_PYTHON:-}" ] || install_torch >&2 || say "PyTorch cannot be had here, so it is left out" >&2
      fi
      [ -n "${HOLOGRAM_BENCH_PYTHON:-}" ] || path+=:$BUILD/torch
      PYTHONPATH=$path "$python" "bench/$which/run.py" "$@"
      ;;
    *)
      { need_build_tools && need_python && need_release; } >&2
      "$VENV/bin/python" examples/demo.py --bench --hologram "$BUILD/release/hologram" --out "$BUILD/bench" "$@"
      ;;
  esac
}
