"""Processes that end, fork, or have many threads, with the library in any state; and memory that does not grow."""

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from test_programs import SAXPY

import double_of_cuda
import hologram as hg

ENDLESS = ".program endless\n.buffer x f32 inout\nagain:\n  ldg.f32 r0, [x + lane]\n  stg.f32 [x + lane], r0\n  bra again\n"


def run(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


# ---- memory ------------------------------------------------------------------------------------------------------------


def resident():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def computed():
    """Recorded, and one in fifty computed."""
    x, count = hg.asarray(np.ones(16, "f4")), iter(range(1 << 30))

    def make():
        y = x + float((i := next(count)) % 3)
        if i % 50 == 0:
            y.compute()

    return make


def buffers():
    executor = hg.Executor("cpu")
    return lambda: executor.allocate(16)


def freed_buffers():
    executor = hg.Executor("cpu")
    return lambda: executor.allocate(16).free()


def borrowed():
    source = np.ones(16, "f4")
    return lambda: hg.asarray(source)


def lent():
    x = hg.ones(16).compute()
    return lambda: memoryview(x)


def by_dlpack():
    x = hg.ones(16).compute()
    return lambda: x.__dlpack__(max_version=(1, 3))


MAKERS = [(computed, 10**6), (buffers, 10**6), (freed_buffers, 10**6), (borrowed, 10**6), (lent, 10**6), (by_dlpack, 10**6),
          (lambda: lambda: hg.Program(SAXPY), 10**4), (lambda: lambda: hg.Executor("cpu").close(), 2000),
          (lambda: lambda: hg.grad(lambda x: (x * x).sum())(hg.ones(3)).compute(), 10**4),
          (lambda: lambda: hg.jit(lambda x: x + 1)(hg.ones(3)), 10**4)]  # fmt: skip


@pytest.mark.resident
@pytest.mark.parametrize("maker, count", MAKERS, ids="computed buffers freed borrowed lent dlpack programs executors grad jit".split())
def test_what_is_made_and_dropped_leaves_nothing(maker, count):
    make = maker()

    def work(times):
        for _ in range(times):
            make()

    work(count // 20)
    before = resident()
    work(count)
    assert resident() - before < 4 << 20


# ---- threads -----------------------------------------------------------------------------------------------------------


def test_eight_threads_that_do_different_things():
    """On the executor, memory and compiled functions of all of them, and on their own."""
    source = np.arange(5000, dtype="f4")
    shared, program, step = hg.asarray(source), hg.Program(SAXPY), hg.jit(lambda x, a: hg.exp(x * 0.001) * a)
    expected, wrong = step(shared, 2.0).numpy(), []

    def arrays(i):
        return (shared * float(i) + shared).tolist() == (source * np.float32(i) + source).tolist()

    def gradients(i):
        return hg.grad(lambda x: (x * x * float(i)).sum())(shared).tolist() == (2 * float(i) * source).tolist()

    def programs(i):
        y = np.ones(5000, "f4")
        program.run(hg.default_executor(), 5000, x=shared, y=y, a=float(i))
        return (y == source * np.float32(i) + 1).all()

    def own_executors(i):
        with hg.Executor("cpu") as executor:
            a, b = executor.allocate(100), executor.allocate(100)
            a.fill(i)
            hg.ops.vector_add(executor, a, a, b)
            return b.to_list() == [2.0 * i] * 100

    def compiled(i):
        return np.array_equal(step(shared, 2.0).numpy(), expected)

    def lent(i):
        view = memoryview((shared + i).compute())
        return view[7] == 7 + i

    def collected(i):
        cycle = [hg.ones(100) + i]
        cycle.append(cycle)
        return i % 10 or gc.collect() >= 0

    def wrongly(i):
        try:
            hg.take(shared, hg.asarray([5000 + i])).compute()
        except hg.Fault:
            return True

    def repeat(work):
        for i in range(100):
            if not work(i):
                wrong.append((work.__name__, i))

    kinds = [arrays, gradients, programs, own_executors, compiled, lent, collected, wrongly]
    threads = [threading.Thread(target=repeat, args=(kind,)) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---- the end of a process ------------------------------------------------------------------------------------------------

ENDS = {
    "pending arrays": "x = hg.ones(4) + 1; y = x * 2",
    "computed arrays": "x = (hg.ones(4) + 1).compute(); big = (hg.ones(1 << 20) + 1).compute()",
    "borrowed memory": "a = bytearray(64); x = hg.asarray(a); y = x + 1",
    "lent memory": "v = memoryview((hg.ones(4) + 1).compute()); c = hg.ones(3).compute().__dlpack__()",
    "closed executors": "e = hg.Executor('cpu'); b = e.allocate(10); v = memoryview(b); p = hg.Program(SAXPY); e.close()",
    "compiled functions": "f = hg.jit(lambda x: x * 2); y = f(hg.ones(3)); g = hg.grad(lambda x: (x * x).sum()); z = g(y)",
    "cycles": "class C: pass\nc = C(); c.me = c; c.x = hg.ones(4) + 1; c.f = hg.jit(lambda x: x + c.x); c.y = c.f(c.x)",
    "finalisers that compute": "class Late:\n    def __init__(self): self.x = hg.ones(4) + 1; self.b = hg.default_executor().allocate(4)\n"
    "    def __del__(self): self.b.fill(1.0); (self.x * 2).compute()\n"
    "hg.late = Late(); late = Late(); sys.late = Late(); import builtins; builtins.late = Late()",
    "functions at exit": "import atexit; x = hg.ones(4) + 1; atexit.register(lambda: print((x * 2).tolist()))",
    "no modules": "x = hg.ones(4) + 1\nfor name in [n for n in sys.modules if n.startswith('hologram')]: del sys.modules[name]\ndel hg",
    "an exception": "x = hg.ones(4) + 1\ntry: hg.ones(3) + hg.ones(4)\nexcept hg.Error as error: kept = error",
    "a fault": "x = hg.take(hg.ones(3), hg.asarray([9]))\ntry: x.compute()\nexcept hg.Fault as error: kept = error",
    "threads that wait": "threading.Thread(target=lambda: (time.sleep(0.2), (hg.ones(9) + 1).compute())).start()",
    "threads that compute": "def work():\n    while True: (hg.ones(50000) + 1).compute()\n"
    "for _ in range(3): threading.Thread(target=work, daemon=True).start()\ntime.sleep(0.2)",
    "threads in large work": "def work():\n    while True: y = hg.ones((700, 700)); (y @ y).compute()\n"
    "for _ in range(3): threading.Thread(target=work, daemon=True).start()\ntime.sleep(0.2)",
    "a thread in a program": "x = memoryview(bytearray(4000)).cast('f')\n"
    "run = lambda: hg.Program(ENDLESS).run(hg.default_executor(), 1000, x=x)\n"
    "threading.Thread(target=run, daemon=True).start()\ntime.sleep(0.2)",
}


@pytest.mark.parametrize("what", ENDS)
def test_a_process_ends_with(what):
    done = run(f"import hologram as hg, sys, threading, time\nSAXPY, ENDLESS = {SAXPY!r}, {ENDLESS!r}\n{ENDS[what]}\nprint('end')")
    assert done.returncode == 0 and done.stdout.startswith("end\n") and done.stderr == "", done.stdout + done.stderr


def test_a_process_ends_at_once():
    done = run("import hologram as hg, os, threading\nx = hg.ones(4) + 1\n"
               "threading.Thread(target=lambda: ((hg.ones(1 << 20) + 1).compute(), os._exit(7))).start()")
    assert done.returncode == 7 and done.stderr == ""


# ---- forks ---------------------------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
CHILD = ("import os, hologram as hg, threading\n{before}\nif (pid := os.fork()) == 0:\n{child}\n    os._exit(0)\n"
         "print(os.waitpid(pid, 0)[1])")


@needs_fork
@pytest.mark.parametrize("before", ["pass", "hg.default_executor()", "x = hg.ones(4) + 1; kept = x.compute()",
                                    "e = hg.Executor('cpu'); big = (hg.ones(1 << 20) + 1).compute()"])  # fmt: skip
def test_a_forked_process_computes(before):
    child = ("    assert (hg.ones(3) + 1).tolist() == [2, 2, 2] and float((hg.ones(1 << 20) * 2).sum()) == 2 << 20\n"
             "    b = hg.Executor('cpu').allocate(4); b.fill(3.0); assert b.to_list() == [3] * 4\n"
             "    t = threading.Thread(target=lambda: (hg.ones(1 << 20) * 2).compute()); t.start(); t.join()")
    done = run(CHILD.format(before=before, child=child))
    assert done.stdout == "0\n" and done.stderr == ""


@needs_fork
def test_forks_while_threads_compute():
    code = ("import os, sys, threading, hologram as hg\nstop = []\ndef work(n):\n"
            "    while not stop: (hg.ones(n) + 1).compute(); hg.Executor('cpu').close()\n"
            "threads = [threading.Thread(target=work, args=(n,)) for n in (10, 1000, 200000, 1 << 20)]\n"
            "for t in threads: t.start()\nbad = 0\n"
            "for i in range(40):\n    if (pid := os.fork()) == 0: os._exit(float((hg.ones(300000) + i).sum()) != 300000.0 * (1 + i))\n"
            "    bad += os.waitpid(pid, 0)[1] != 0\n"
            "stop.append(1)\nfor t in threads: t.join()\nprint(bad)")
    done = run("import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n" + code)
    assert done.stdout == "0\n" and done.stderr == ""


@needs_fork
def test_a_fork_does_not_wait_for_ever():
    """A thread is in a program that never ends, on the default executor. The child makes another."""
    before = (f"x = memoryview(bytearray(4000)).cast('f'); import time; program = hg.Program({ENDLESS!r})\n"
              "threading.Thread(target=lambda: program.run(hg.default_executor(), 1000, x=x), daemon=True).start(); time.sleep(0.2)")
    child = "    assert (hg.ones(3) + 1).tolist() == [2, 2, 2]"
    done = run(CHILD.format(before=before, child=child))
    assert done.stdout == "0\n" and done.stderr == ""


@needs_fork
@double_of_cuda.needed
def test_a_forked_process_has_no_gpu():
    """It says so, whatever is asked of what the parent made; the CPU goes on, and so does the parent."""
    code = ("import os, sys, hologram as hg\ne = hg.Executor('cuda'); hg.set_default_executor(e)\n"
            "x = hg.asarray([1.0, 2.0], device=e); y = x + 1; b = e.allocate(4); z = (x * 3).compute()\n"
            "asks = {'reading': lambda: z.tolist(), 'computing': lambda: y.tolist(), 'new arrays': lambda: (hg.ones(3) + 1).tolist(),\n"
            "        'writing': lambda: b.fill(2.0), 'memory': lambda: e.allocate(4), 'waiting': lambda: e.synchronize(),\n"
            "        'operations': lambda: hg.ops.vector_add(e, b, b, b)}\n"
            "if (pid := os.fork()) == 0:\n    bad = []\n    for name, ask in asks.items():\n"
            "        try: bad.append(f'{name}: {ask()}')\n        except hg.Error as error:\n"
            "            if 'fork' not in str(error): bad.append(f'{name}: {error}')\n"
            "    try: hg.Executor('cuda'); bad.append('an executor')\n    except hg.Error as error: print(error)\n"
            "    cpu = hg.Executor('cpu'); hg.set_default_executor(cpu)\n"
            "    if (hg.ones(3) + 1).tolist() != [2, 2, 2]: bad.append('the CPU')\n"
            "    del x, y, z, b; e.close()\n"
            "    print('\\n'.join(bad)); sys.stdout.flush(); os._exit(len(bad))\n"
            "status = os.waitpid(pid, 0)[1]; print(status, y.tolist(), z.tolist(), b.to_list())")
    done = run(code, LD_LIBRARY_PATH=double_of_cuda.DOUBLE, HOLOGRAM_CACHE="0")
    assert done.stdout.endswith("0 [2.0, 3.0] [3.0, 6.0] [0.0, 0.0, 0.0, 0.0]\n"), done.stdout + done.stderr


# ---- stack -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer's frames are several times as large")
@pytest.mark.parametrize("step", ["(y + y) * 0.5 if i % 2 else y * y", "hg.sin(y[::-1])", "hg.softmax(y @ w, -1)",
                                  "hg.concatenate((y[2:], hg.exp(-y[:2])))", "hg.take(y, index) + w", "y.T.reshape(4, 4) * w"])
def test_a_gradient_in_a_thread_with_little_stack(step):
    """Of 1,000 steps, in 128 KiB: in a process of its own, which it would end."""
    done = run("import threading\nimport numpy as np\nimport hologram as hg\n"
               "w, index = hg.asarray(np.full((4, 4), 0.5, 'f4')), hg.asarray(np.array([3, 1, 2, 0]))\n"
               "def f(y):\n"
               f"  for i in range(1000): y = {step}\n"
               "  return y.sum()\n"
               "threading.stack_size(128 * 1024)\n"
               "t = threading.Thread(target=lambda: print(hg.grad(f)(w).tolist()))\nt.start(); t.join()\n")
    assert done.returncode == 0 and done.stdout.startswith("[["), done.stderr


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer's frames are several times as large")
@pytest.mark.parametrize("graph", ["x = hg.asarray(one); z = np.ones(4)\n"
                                   "  for i in range(20000): c = i * 1e-5; x = x * c if i % 2 else x + c; z = z * c if i % 2 else z + c\n"
                                   "  assert np.allclose(x.numpy(), z); del x",
                                   "x = hg.asarray(one)\n"
                                   "  for i in range(30000): x = x * 0.5\n"
                                   "  del x",
                                   "x = hg.asarray(one); y = [x + i for i in range(2000)]; hg.compute(*y)\n"
                                   "  assert [a.tolist()[0] for a in y] == list(range(1, 2001))",
                                   "x, w = hg.asarray(one), hg.asarray(one * 0.25)\n"
                                   "  def steps(x, w):\n"
                                   "    for i in range(4000): x = x + hg.tanh(x * w) * 1e-3\n"
                                   "    return x.sum()\n"
                                   "  assert all(np.isfinite(g.numpy()).all() for g in hg.grad(steps, (0, 1))(x, w))"])
def test_a_large_graph_in_a_thread_with_little_stack(graph):
    done = run("import threading\nimport numpy as np\nimport hologram as hg\none = np.ones(4)\n"
               f"def work():\n  {graph}\n  print('over')\n"
               "threading.stack_size(128 * 1024)\nt = threading.Thread(target=work)\nt.start(); t.join()\n")
    assert done.returncode == 0 and done.stdout == "over\n", done.stderr
