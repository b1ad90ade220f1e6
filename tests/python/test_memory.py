"""The memory of executors: counts, what is kept, and loops that make a result at every call, on the CPU and on the double of
libcuda, which counts what the driver is asked for."""

import gc

import numpy as np
import pytest

import double_of_cuda
import hologram as hg


def test_counts_what_is_used_and_kept():
    with hg.Executor("cpu") as e:
        start = e.memory
        assert set(start) == {"in_use", "most_in_use", "kept", "kept_most", "device_free", "device_bytes"}
        x = hg.asarray(np.ones(1 << 21, "f4"), device=e)  # NumPy's memory
        assert e.memory["in_use"] == start["in_use"]
        y = (x + 1).compute()
        assert e.memory["in_use"] == start["in_use"] + y.nbytes
        del y
        gc.collect()
        after = e.memory
        assert after["in_use"] == start["in_use"] and after["most_in_use"] >= start["in_use"] + (8 << 20)
        assert 8 << 20 <= after["kept"] <= after["kept_most"] <= after["device_bytes"]
        e.trim()
        assert e.memory["kept"] == 0
        e.keep(1 << 20)
        assert e.memory["kept_most"] == 1 << 20
        (x + 1).compute()
        gc.collect()
        assert e.memory["kept"] <= 1 << 20
        for wrong, error in ((-1, OverflowError), (1 << 64, OverflowError), (1.5, TypeError), ("1", TypeError)):
            with pytest.raises(error):
                e.keep(wrong)


def test_small_memory_that_is_kept_is_not_in_use():
    with hg.Executor("cpu") as e:
        x = hg.asarray(np.ones(1000, "f4"), device=e)
        (x + 1).compute()
        used = e.memory
        assert used["in_use"] == 0 and used["kept"] >= 4000
        e.trim()
        assert e.memory["kept"] == 0


def test_a_closed_executor_has_no_memory():
    e = hg.Executor("cpu")
    e.close()
    for call in (lambda: e.memory, e.trim, lambda: e.keep(1)):
        with pytest.raises(ValueError, match="closed"):
            call()


@pytest.mark.parametrize("held", [0, 1, 4])
@pytest.mark.parametrize("count, calls", [(8, 20000), (1 << 20, 60)])
def test_loops_do_not_grow(held, count, calls):
    with hg.Executor("cpu") as e:
        x, results = hg.asarray(np.arange(count, dtype="f4"), device=e), [None] * max(held, 1)
        for i in range(calls):
            y = hg.abs(x).compute()
            if held:
                results[i % held] = y
        del y
        used = e.memory
        assert used["in_use"] == 4 * count * held and used["most_in_use"] <= 4 * count * (held + 2) + (1 << 20)
        assert used["kept"] <= 4 * count * 2 + (1 << 20)
        assert all(float(r[-1]) == count - 1 for r in results if r is not None)


BEGIN = """
import ctypes, gc
import hologram as hg
import numpy as np
cuda = ctypes.CDLL("libcuda.so.1")
cuda.fakecuda_violation.restype = ctypes.c_char_p
cuda.fakecuda_mapped.restype = ctypes.c_uint64
e = hg.Executor("cuda")
hg.set_default_executor(e)
def calls(*names): return [cuda.fakecuda_calls(n.encode()) for n in names]
"""
END = "\nassert cuda.fakecuda_violation() == b'', cuda.fakecuda_violation()\nprint('good')\n"


def run(code, **more):
    assert double_of_cuda.run(BEGIN + code + END, **more).endswith("good\n")


LOOP = """
x = hg.array(np.arange(3000, dtype="f4"))
hg.abs(x).compute(), e.synchronize()
held, results = {held}, [None] * 4
names = "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuEventRecord", "cuStreamWaitEvent", "cuStreamSynchronize"
before, mapped = calls(*names), cuda.fakecuda_mapped()
for i in range(20):
    y = hg.abs(x).compute()
    if held: results[i % held] = y
    else: del y
after = calls(*names)
assert [a - b for a, b in zip(after, before)] == [20, 20 - max(held, 0), 0, 0, 0], (before, after)
assert cuda.fakecuda_mapped() - mapped == 12000 * {mapped}, cuda.fakecuda_mapped() - mapped
for r in results[:held]: assert r.tolist() == list(range(3000))
"""


@double_of_cuda.needed
@pytest.mark.parametrize("held, mapped", [(0, 0), (1, 1), (4, 4)])
def test_a_loop_on_a_gpu_takes_what_it_freed(held, mapped):
    run(LOOP.format(held=held, mapped=mapped))


@double_of_cuda.needed
def test_memory_of_a_gpu_that_other_executors_keep_is_given_back():
    run("a = hg.array(np.zeros(1 << 20, 'f4'))\n"
        "others = [hg.Executor('cuda') for _ in range(2)]\n"
        "for o in others:\n    b = o.allocate(1 << 20)\n    b.free()\n    del b\n    o.synchronize()\n"
        "gc.collect()\nassert others[0].memory['kept'] >= 4 << 20\n"
        "b = (a + 1).compute()\nc = (a + 2).compute()\n"
        "assert others[0].memory['kept'] == 0 and float(b.sum()) == 1 << 20 and e.memory['in_use'] >= 12 << 20\n"
        "try: e.allocate(1 << 24)\nexcept hg.OutOfMemory as error: assert 'does not fit' in str(error)\nelse: assert False\n",
        FAKECUDA_MEMORY=str(20 << 20))


@double_of_cuda.needed
def test_uploads_do_not_wait_for_the_stream():
    run("x = hg.array(np.arange(600, dtype='f4'))\ny = (x + 1).compute()\nbefore = calls('cuStreamSynchronize')\n"
        "z = hg.array(np.arange(600, dtype='f4'))\nassert calls('cuStreamSynchronize') == before\n"
        "assert (y - z).tolist() == [1] * 600\n")


def test_an_executor_is_closed_while_others_use_it():
    import threading

    def use(executor):
        try:
            while True:
                executor.trim()
                executor.synchronize()
        except ValueError as error:
            seen.append(str(error))

    seen = []
    for _ in range(20):
        executor = hg.Executor("cpu")
        threads = [threading.Thread(target=use, args=(executor,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        hg.asarray(np.ones(1 << 12, "f4"), device=executor).sum().compute()
        executor.close()
        for thread in threads:
            thread.join()
    assert seen == ["the executor is closed"] * 40
