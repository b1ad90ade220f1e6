"""hg.numerics(): what is recorded inside is marked, wherever it is computed; without the vendor's library the bits are the canonical
ones, and the report says why."""

import asyncio
import contextvars
import os
import sys
import threading

import numpy as np
import pytest

import double_of_cuda
import hologram as hg

A, B = (np.random.default_rng(i).standard_normal(shape).astype("f4") for i, shape in enumerate([(40, 300), (300, 24)]))


def is_marked(x):
    """Of what is pending: all of its contractions, or none."""
    notes = [launch["note"] for launch in hg.explain(x, json=True)["launches"] if launch["kind"] == "contract"]
    marks = {"fast numerics were asked for" in note for note in notes}
    assert len(marks) == 1
    return marks.pop()


def product():
    return hg.asarray(A) @ hg.asarray(B)


def test_inside_and_outside():
    with hg.numerics("fast"):
        inside = product()
        with hg.numerics("canonical"):
            within = product()
        again = product()
    outside = product()
    assert [is_marked(x) for x in (inside, within, again, outside)] == [True, False, True, False]
    assert inside.tolist() == outside.tolist()


def test_the_bits_of_the_cpu_are_the_same_ones_and_the_report_says_why():
    def step(x, w, b):
        return hg.grad(lambda w, b: hg.sum(hg.gelu_tanh(hg.linear(x, w, b)) ** 2), argnums=(0, 1))(w, b)

    given = [hg.asarray(v) for v in (A, np.ascontiguousarray(B.T), B[0])]
    exact = step(*given)
    with hg.numerics("fast", tf32=True):
        fast = step(*given)
        report = hg.explain(product(), json=True)
    assert all(own.numpy().tobytes() == wanted.numpy().tobytes() for own, wanted in zip(fast, exact))
    assert report["numerics"] == "canonical"
    assert report["launches"][0]["note"] == "bit-exact: fast numerics were asked for, but this backend has canonical kernels alone"


def test_gradients_are_of_what_was_recorded():
    """Whatever holds where a gradient is asked for: its products are those of the function's."""
    def of(forward, backward):
        def loss(w):
            with hg.numerics(forward):
                return hg.sum((hg.asarray(A) @ w) ** 2)

        with hg.numerics(backward):
            return hg.grad(loss)(hg.asarray(B))

    assert is_marked(of("fast", "canonical")) and not is_marked(of("canonical", "fast"))


def test_jit_takes_each_call_as_it_is_made():
    @hg.jit
    def f(a, b):
        made.append(is_marked(a @ b))
        return a @ b

    made = []
    for mode in ("canonical", "fast", "canonical", "fast"):
        with hg.numerics(mode):
            f(hg.asarray(A), hg.asarray(B))
    assert made == [False, True, False, True]


def test_views_and_functions_of_products():
    x = hg.asarray(A.reshape(5, 8, 300))
    with hg.numerics("fast"):
        for made in (x @ hg.asarray(B), hg.linear(x, hg.asarray(B.T.copy())), hg.gemm(hg.asarray(A), hg.asarray(B)),
                     hg.matvec(hg.asarray(A), hg.asarray(B[:, 0])), (product() + 1)[3:, ::2].T):
            assert is_marked(made)


def test_it_is_a_threads_and_a_tasks_own():
    seen = {}

    def other():
        seen["thread"] = is_marked(product())
        with hg.numerics("fast"):
            inside.set()
            done.wait(10)
            seen["its own"] = is_marked(product())

    inside, done = threading.Event(), threading.Event()
    with hg.numerics("fast"):
        copied = contextvars.copy_context()
        thread = threading.Thread(target=other, context=contextvars.Context()) if sys.version_info >= (3, 14) else \
            threading.Thread(target=other)
        thread.start()
        assert inside.wait(10)
    assert not is_marked(product())  # whatever the other one is in
    done.set()
    thread.join()
    assert seen == {"thread": False, "its own": True} and copied.run(lambda: is_marked(product()))

    async def task(mode, gate):
        with hg.numerics(mode):
            await gate.wait()
            return is_marked(product())

    async def tasks():
        gate = asyncio.Event()
        made = [asyncio.create_task(task(mode, gate)) for mode in ("fast", "canonical", "fast")]
        await asyncio.sleep(0)
        gate.set()
        return await asyncio.gather(*made)

    assert asyncio.run(tasks()) == [True, False, True] and not is_marked(product())


def test_what_is_recorded_keeps_it_in_other_threads():
    with hg.numerics("fast"):
        pending = product()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(is_marked(pending)))
    thread.start()
    thread.join()
    assert seen == [True]


def test_it_ends_with_an_error_and_lasts_without_a_block():
    with pytest.raises(ZeroDivisionError), hg.numerics("fast"):
        1 / 0
    assert not is_marked(product())

    def alone():
        hg.numerics("fast")
        first = is_marked(product())
        hg.numerics("canonical")
        return first, is_marked(product())

    assert contextvars.Context().run(alone) == (True, False)


def test_one_that_was_made_before_its_blocks():
    def blocks():
        exact, fast = hg.numerics("canonical"), hg.numerics("fast")
        hg.numerics("canonical")
        seen = []
        for _ in range(2):
            with fast:
                with exact:
                    with fast, fast:
                        seen.append(is_marked(product()))
                    seen.append(is_marked(product()))
                seen.append(is_marked(product()))
            seen.append(is_marked(product()))
        with hg.numerics("fast"):
            late = hg.numerics("canonical")
        with late:
            pass
        return [*seen, is_marked(product())]

    assert contextvars.Context().run(blocks) == [True, False, True, False] * 2 + [False]


def test_what_it_takes():
    for wrong in ("quick", "tf32", None, 1):
        with pytest.raises(ValueError, match=r"numerics is 'canonical' or 'fast', not"):
            hg.numerics(wrong)
    with pytest.raises(ValueError, match=r"hg\.numerics\('fast', tf32=True\)"):
        hg.numerics("canonical", tf32=True)
    assert not is_marked(product())


def test_strict_refuses_what_cannot_be_fast():
    with hg.strict(), hg.numerics("fast"):
        assert hg.exp(hg.ones(3)).tolist() and is_marked(product())
        with pytest.raises(hg.StrictError, match="fast numerics were asked for, but this backend has canonical kernels alone"):
            product().compute()
    product().compute()


def run(code, **environment):
    code = ("import hologram as hg, numpy as np\ne = hg.Executor('cuda')\n"
            "a, b = (hg.array(np.random.default_rng(i).standard_normal(s), dtype='float32', device=e)"
            " for i, s in enumerate([(40, 300), (300, 24)]))\nhg.compute(a, b)\n"
            "def notes(x): return [launch['note'] for launch in hg.explain(x, json=True)['launches']]\n") + code
    return double_of_cuda.run(code, **environment).splitlines()


@double_of_cuda.needed
def test_on_a_gpu_with_the_library():
    """Others than the canonical bits inside, the same ones before and behind; bias and function go along."""
    code = ("exact = (a @ b).tolist()\n"
            "with hg.numerics('fast'):\n"
            "    fast = (a @ b).tolist()\n"
            "    print(notes(hg.gelu_tanh(hg.linear(a, b.T, b[0]))))\n"
            "    hg.strict()\n    (a @ b).compute()\n    hg.strict(False)\n"
            "with hg.numerics('fast', tf32=True): rough = (a @ b).tolist()\n"
            "off = lambda x: np.abs(np.asarray(x) - exact).max()\n"
            "print((a @ b).tolist() == exact, 0 < off(fast) < 1e-4, 1e-3 < off(rough) < 0.2)\n")
    notes, bits = run(code)
    assert notes == "['by the vendor's library with the bias and gelu_tanh, not bit-exact: fast numerics were asked for']".replace(
        "['", '["').replace("']", '"]')
    assert bits == "True True True"


@double_of_cuda.needed
@pytest.mark.parametrize("why, words", [("none", "cuBLASLt was not found"), ("refuse", "cuBLASLt takes no operands that lie so")])
def test_on_a_gpu_without_it(why, words):
    code = ("exact = (a @ b).tolist()\n"
            "with hg.numerics('fast'):\n    print(notes(a @ b)[0])\n    print((a @ b).tolist() == exact)\n"
            "    hg.strict()\n    try: (a @ b).compute()\n    except hg.StrictError as error: print(error)\n")
    note, bits, error = run(code, FAKECUBLASLT=why)
    assert note.startswith(f"bit-exact: fast numerics were asked for, but {words}") and bits == "True"
    assert error.startswith(f"fast numerics were asked for, but {words}")


@double_of_cuda.needed
def test_the_library_in_a_package_of_pip(tmp_path):
    """Where the loader does not find it by itself. It is looked for again as long as it was not found."""
    driver, site = tmp_path / "driver", tmp_path / "site"
    packages = site / "nvidia/cublas/lib"
    driver.mkdir()
    packages.mkdir(parents=True)
    (driver / "libcuda.so.1").symlink_to(os.path.join(double_of_cuda.DOUBLE, "libcuda.so.1"))
    code = ("def note():\n    with hg.numerics('fast'): return notes(a @ b)[0][:24]\n"
            "with hg.numerics('fast'): print(notes(a @ b + 1)[0][45:])\n"
            "import sys; from hologram import _vendor\n"
            f"sys.path.append({str(site)!r}); _vendor.load(); print(note())\n")
    missing, still = run(code, LD_LIBRARY_PATH=str(driver))
    assert missing == "cuBLASLt was not found: a libcublasLt of CUDA 11, 12 or 13 that works with this driver"
    assert still == "bit-exact: fast numerics"
    (packages / "libcublasLt.so.13").symlink_to(os.path.join(double_of_cuda.DOUBLE, "libcublasLt.so.13"))
    assert run(code, LD_LIBRARY_PATH=str(driver)) == [missing, "by the vendor's library,"]
    at_first = f"import sys; sys.path.append({str(site)!r})\nwith hg.numerics('fast'): print(notes(a @ b)[0][:24])\n"
    assert run(at_first, LD_LIBRARY_PATH=str(driver)) == ["by the vendor's library,"]
