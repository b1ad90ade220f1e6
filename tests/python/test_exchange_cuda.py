"""Memory of a GPU that is shared with other libraries, on the double of libcuda: addresses, lifetimes, order of streams.

The double does what a stream was given only when somebody waits for it, and blames whoever uses memory that is gone: a
missing wait is a wrong number, or a complaint. "Theirs" is a library with streams and memory of its own in the same
context, by the driver's own calls."""

import double_of_cuda
import pytest

pytestmark = double_of_cuda.needed

BEGIN = """
import ctypes, gc
import hologram as hg
import numpy as np
cuda = ctypes.CDLL("libcuda.so.1")
cuda.fakecuda_violation.restype = ctypes.c_char_p
e = hg.Executor("cuda")
hg.set_default_executor(e)
x = hg.array(np.arange(6, dtype="f4").reshape(2, 3))
context = ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxPushCurrent_v2(context) == 0
P, N = ctypes.c_void_p, ctypes.c_uint64

class Tensor(ctypes.Structure):
    _fields_ = [("data", P), ("type", ctypes.c_int32), ("number", ctypes.c_int32), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", N)]

class Managed(ctypes.Structure):
    pass

Release = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", P), ("release", Release), ("flags", N),
                    ("tensor", Tensor)]
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = P, [ctypes.py_object, ctypes.c_char_p]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [P, ctypes.c_char_p, P]

def stream():
    made = P()
    assert cuda.cuStreamCreate(ctypes.byref(made), 1) == 0
    return made.value

def look(capsule):
    return ctypes.cast(pointer(capsule, b"dltensor_versioned"), ctypes.POINTER(Managed)).contents

def read(address, count, on):  # as another library does: on its stream, which it waits for alone
    out = np.zeros(count, "f4")
    assert cuda.cuMemcpyDtoHAsync_v2(P(out.ctypes.data), N(address), N(4 * count), P(on)) == 0
    assert cuda.cuStreamSynchronize(P(on)) == 0
    return out.tolist()

def write(address, numbers, on):
    data = np.asarray(numbers, "f4")
    assert cuda.cuMemcpyHtoDAsync_v2(N(address), P(data.ctypes.data), N(data.nbytes), P(on)) == 0

class Theirs:
    "A tensor of another library, written on its own stream."
    def __init__(self, numbers, flags=0):
        self.numbers, self.stream, self.asked, self.released, address = numbers, stream(), [], [], N()
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), N(4 * len(numbers))) == 0
        self.address, self.event = address.value, P()
        self.shape, self.strides = (ctypes.c_int64 * 1)(len(numbers)), (ctypes.c_int64 * 1)(1)
        assert cuda.cuEventCreate(ctypes.byref(self.event), 2) == 0
        self.flags = flags
        write(self.address, numbers, self.stream)
    def reuse(self):  # what is let go is somebody else's at once
        write(self.address, [-1] * len(self.numbers), self.stream)
        self.released.append(cuda.cuStreamSynchronize(P(self.stream)))
    def __dlpack_device__(self):
        return (2, 0)
    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append((stream, max_version))
        assert cuda.cuEventRecord(self.event, P(self.stream)) == 0 and cuda.cuStreamWaitEvent(P(stream), self.event, 0) == 0
        self.release = Release(lambda m: self.reuse())
        self.managed = Managed(1, 1, None, self.release, self.flags,
                               Tensor(self.address, 2, 0, 1, 2, 32, 1, self.shape, self.strides, 0))
        return new_capsule(ctypes.addressof(self.managed), b"dltensor_versioned", None)
"""
END = "\nassert cuda.fakecuda_violation() == b'', cuda.fakecuda_violation()\nprint('good')\n"


def run(code):
    printed = double_of_cuda.run(BEGIN + code + END)
    assert printed.endswith("good\n")
    return printed


@pytest.mark.parametrize("wanted", ["None", "1", "stream()"])
def test_pending_work_comes_before_what_the_taker_s_stream_does(wanted):
    run(f"s = {wanted}\ny = x * 2 + 1\nm = look(c := y.__dlpack__(stream=s, max_version=(1, 3)))\nt = m.tensor\n"
        "assert (t.type, t.number, t.rank, m.major, m.flags) == (2, 0, 2, 1, 1) and list(t.shape[:2]) == [2, 3]\n"
        "assert read(t.data + t.offset, 6, s or 1) == [1, 3, 5, 7, 9, 11]\n")


def test_views_are_shared_at_their_address():
    run("y = (x + 0).compute()\nk = [y.__dlpack__(max_version=(1, 1)), y.T[1:, 1:].__dlpack__(max_version=(1, 1))]\n"
        "a, b = (look(c) for c in k)\n"
        "assert a.tensor.data + 16 == b.tensor.data + b.tensor.offset\n"
        "assert list(b.tensor.strides[:2]) == [1, 3] and list(b.tensor.shape[:2]) == [2, 1]\n")


def test_memory_lives_until_the_taker_lets_go():
    run("y = (x + 5).compute()\nm = look(c := y.__dlpack__(max_version=(1, 0)))\naddress = m.tensor.data\ndel y\ngc.collect()\n"
        "z = [(x * i).compute() for i in range(20)]\ne.synchronize()\nassert read(address, 6, 1) == [5, 6, 7, 8, 9, 10]\n"
        "write(address, [1] * 6, 1)\n"
        "ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(c), b'used_dltensor_versioned')\n"
        "m.release(ctypes.byref(m))\ndel c, m\n"  # their write is done before the memory is anybody else's
        "again = [(x * 3).compute() for i in range(20)]\nassert all(a.tolist() == [[0, 3, 6], [9, 12, 15]] for a in again)\n"
        "assert cuda.cuStreamSynchronize(P(1)) == 0\n")


def test_a_copy_is_the_taker_s_own():
    run("k = [x.__dlpack__(copy=True, max_version=(1, 0)), x.__dlpack__(max_version=(1, 0))]\nm, n = (look(c) for c in k)\n"
        "assert m.flags == 2 and n.flags == 1 and m.tensor.data != n.tensor.data\n"
        "write(m.tensor.data, [7] * 6, 1)\nassert cuda.cuStreamSynchronize(P(1)) == 0\nassert x.tolist() == [[0, 1, 2], [3, 4, 5]]\n"
        "c = x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))\nassert (look(c).tensor.type, look(c).flags) == (1, 2)\n"
        "assert np.from_dlpack(x, device='cpu').tolist() == x.tolist()\n")


def test_what_is_refused():
    run("for names in (dict(dl_device=(1, 0), copy=False), dict(dl_device=(2, 1)), dict(dl_device=(8, 0))):\n"
        "    try: x.__dlpack__(**names)\n    except BufferError: pass\n    else: raise SystemExit(names)\n"
        "for names in (dict(stream=0), dict(stream=-2)):\n"
        "    try: x.__dlpack__(**names)\n    except ValueError: pass\n    else: raise SystemExit(names)\n"
        "x.__dlpack__(stream=-1)\n")


def test_theirs_is_shared_behind_what_its_stream_was_given():
    run("t = Theirs([1, 2, 3, 4])\ny = hg.from_dlpack(t)\nassert t.asked == [(1, (1, 3))] and y.device.backend == 'cuda'\n"
        "assert look(c := y.__dlpack__(max_version=(1, 0))).tensor.data == t.address\n"
        "assert ((y + 1) * y).tolist() == [2, 6, 12, 20]\nassert y.tolist() == [1, 2, 3, 4]\n")


def test_theirs_is_let_go_when_work_on_it_is_done():
    run("t = Theirs([1, 2, 3, 4])\ny = hg.from_dlpack(t)\nz = y * 10\ndel y\ngc.collect()\nassert t.released == []\n"
        "z.compute()\ne.synchronize()\nassert t.released == [0]\n"
        "assert z.tolist() == [10, 20, 30, 40]\n")


def test_much_of_theirs_is_waited_for():
    run("big = 80 << 20\nclass Big(Theirs):\n    def reuse(self):\n        self.released.append(0)\n"
        "def given(n):\n    t, address = Big([1.0] * 4), N()\n    assert cuda.cuMemAlloc_v2(ctypes.byref(address), N(4 * n)) == 0\n"
        "    t.address, t.shape = address.value, (ctypes.c_int64 * 1)(n)\n    y = hg.from_dlpack(t)\n"
        "    (y[:4] + 1).compute()\n    return t\n"
        "a = given(big)\nassert a.released == [0]\n"  # 320 MiB: more than is left to itself
        "a = given(4)\ne.trim()\nassert a.released == [0]\n"
        "few = [given(4) for i in range(80)]\nassert few[0].released == [0]\ne.synchronize()\nassert all(t.released == [0] for t in few)\n")


def test_theirs_that_is_read_only_stays_as_it_is():
    run("t = Theirs([1, 2, 3, 4], flags=1)\ny = hg.from_dlpack(t)\nkept = y[1:]\ny[0] = 9\nassert y.tolist() == [9, 2, 3, 4]\n"
        "assert read(t.address, 4, 1) == [1, 2, 3, 4]\n")


def test_two_executors_share():
    run("other = hg.Executor('cuda')\ny = x + 1\nz = hg.from_dlpack(y, device=other)\nassert z.device.backend == 'cuda'\n"
        "assert (z * 2).tolist() == [[2, 4, 6], [8, 10, 12]]\ndel y\ngc.collect()\nassert z.tolist() == [[1, 2, 3], [4, 5, 6]]\n"
        "host = hg.Executor('cpu')\nassert hg.from_dlpack(x, device=host).device.backend == 'cpu'\n"
        "try: hg.from_dlpack(x, device=host, copy=False)\nexcept (ValueError, BufferError): pass\nelse: raise SystemExit('shared')\n"
        "assert hg.from_dlpack(np.ones(3, 'f4')).device.backend == 'cpu' and hg.asarray(np.ones(3, 'f4')).device.backend == 'cuda'\n")


def test_the_interface_of_numba_outwards():
    run("y = (x * 3).compute().T\ni = y.__cuda_array_interface__\n"
        "assert (i['shape'], i['strides'], i['typestr'], i['version'], i['stream'], i['data'][1]) == ((3, 2), (4, 12), '<f4', 3, 1, True)\n"
        "assert read(i['data'][0], 6, i['stream']) == [0, 3, 6, 9, 12, 15]\n"
        "assert not hasattr(y, '__array_interface__') and not hasattr(y.astype('bfloat16'), '__cuda_array_interface__')\n"
        "kept = y[1:]\ny[0, 0] = 50\ndel kept\ngc.collect()\n"  # the array has other memory now, its taker the old one
        "z = [(x + i).compute() for i in range(9)]\nassert y.tolist()[0] == [50, 9]\n"
        "assert read(i['data'][0], 6, 1) == [0, 3, 6, 9, 12, 15]\n"
        "other = hg.asarray(type('Seen', (), {'__cuda_array_interface__': i, 'owner': y})(), device=hg.Executor('cuda'))\n"
        "assert other.tolist() == [[0, 9], [3, 12], [6, 15]]\n")


def test_the_interface_of_numba_inwards():
    run("class Numba:\n    def __init__(self, t, **more): self.t, self.more = t, more\n"
        "    @property\n    def __cuda_array_interface__(self):\n"
        "        return dict(shape=(2,), strides=(8,), typestr='<f4', data=(self.t.address + 4, False), version=3, **self.more)\n"
        "t = Theirs([1, 2, 3, 4])\nn = Numba(t, stream=t.stream)\ny = hg.asarray(n)\n"
        "assert y.tolist() == [2, 4] and y.device.backend == 'cuda'\n"
        "assert y.__cuda_array_interface__['data'][0] == t.address + 4\n"
        "import weakref\ngone = weakref.ref(n)\nz = y + 1\ndel y, n\ngc.collect()\nassert gone() is not None and z.tolist() == [3, 5]\n"
        "del z\ngc.collect()\nassert cuda.cuStreamSynchronize(P(1)) == 0\ne.synchronize()\nassert gone() is None\n"
        "try: hg.asarray(Numba(t, stream=0))\nexcept ValueError: pass\nelse: raise SystemExit('stream 0')\n"
        "try: hg.asarray(Numba(t, mask=1))\nexcept TypeError: pass\nelse: raise SystemExit('mask')\n")


def test_the_table_of_c_functions():
    run("class Api(ctypes.Structure):\n"
        "    _fields_ = [('major', ctypes.c_uint32), ('minor', ctypes.c_uint32), ('older', P)] + [(n, P) for n in 'abcde']\n"
        "api = ctypes.cast(pointer(hg.Array.__dlpack_c_exchange_api__, b'dlpack_exchange_api'), ctypes.POINTER(Api)).contents\n"
        "assert (api.major, api.minor, api.older) == (1, 3, None)\n"
        "out, s = ctypes.POINTER(Managed)(), P()\n"
        "export = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed)))(api.b)\n"
        "assert ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(P))(api.e)(2, 0, "
        "ctypes.byref(s)) == 0 and s.value == 1\n"
        "y = x - 1\nassert export(y, ctypes.byref(out)) == 0\nm = out.contents\n"
        "assert read(m.tensor.data, 6, s.value) == [-1, 0, 1, 2, 3, 4] and m.flags == 1\n"
        "made = P()\nassert ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(P))(api.c)(out, "
        "ctypes.byref(made)) == 0\n"
        "z = ctypes.cast(made, ctypes.py_object).value\nassert z.tolist() == y.tolist() and z.device.backend == 'cuda'\n"
        "t = Tensor()\nassert ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))(api.d)(y, ctypes.byref(t)) == 0\n"
        "assert list(t.shape[:2]) == [2, 3] and list(t.strides[:2]) == [3, 1] and t.data == m.tensor.data\n"
        "new = ctypes.POINTER(Managed)()\n"
        "assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Tensor), ctypes.POINTER(ctypes.POINTER(Managed)), P, P)(api.a)(t, "
        "ctypes.byref(new), None, None) == 0\n"
        "assert new.contents.flags == 0 and new.contents.tensor.type == 2\nnew.contents.release(new)\n"
        "try: export(3, ctypes.byref(out))\nexcept TypeError: pass\nelse: raise SystemExit('an int was exported')\n")


FAMILY = """
from hologram import _core

class Api(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", P)] + [(n, P) for n in "abcde"]

class Lib:
    "Tensors of another library, with its table of C functions: rows of floats, or of numbers of elements."
    current, made, requires_grad = stream(), [], False
    types = {"f4": (2, 32), "i8": (0, 64), "f8": (2, 64)}
    def __init__(self, shape, kind="f4", values=None, strides=None):
        address, self.kind, self.sizes = N(), kind, tuple(shape)
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), N(max(8, 8 * int(np.prod(shape))))) == 0
        self.address = address.value
        self.shape = (ctypes.c_int64 * 4)(*shape)
        self.strides = (ctypes.c_int64 * 4)(*(strides or [int(np.prod(shape[d + 1:])) for d in range(len(shape))]))
        if values is not None:
            data = np.asarray(values, kind)
            assert cuda.cuMemcpyHtoDAsync_v2(N(address.value), P(data.ctypes.data), N(data.nbytes), P(Lib.current)) == 0
            assert cuda.cuStreamSynchronize(P(Lib.current)) == 0
    def new_empty(self, shape, dtype=None):
        Lib.made.append(Lib(shape, dtype or self.kind))
        return Lib.made[-1]
    def tensor(self):
        return Tensor(self.address, 2, 0, len(self.sizes), *Lib.types[self.kind], 1, self.shape, self.strides, 0)
    def read(self):
        return read(self.address, int(np.prod(self.sizes)), Lib.current)

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
def lend(x, out):
    out[0] = x.tensor()
    return 0

released, packages = [], []

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed)))
def own(x, out):
    release = Release(lambda m: released.append(x))
    managed = Managed(1, 3, None, release, 0, x.tensor())
    packages.append((release, managed))  # one tensor may have several
    out[0] = ctypes.pointer(managed)
    return 0

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(P))
def take(m, out):
    x = Lib.__new__(Lib)
    x.taken, t = ctypes.cast(m, ctypes.POINTER(Managed)), m.contents.tensor
    x.address, x.kind, x.sizes = (t.data or 0) + t.offset, "f4", tuple(t.shape[:t.rank])
    x.shape, x.strides = (ctypes.c_int64 * 4)(*x.sizes), (ctypes.c_int64 * 4)(*t.strides[:t.rank])
    Lib.made.append(x)
    out[0] = id(x)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
    return 0

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(P))
def where(kind, number, out):
    assert (kind, number) == (2, 0)
    out[0] = Lib.current
    return 0

api = Api(1, 3, None, None, *(ctypes.cast(f, P).value for f in (own, take, lend, where)))
Lib.__dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(api), b"dlpack_exchange_api", None)

def elsewhere(*values, **named):
    raise SystemExit("a call for elsewhere")

def function(name):
    return _core._on_tensors(name, (Lib,), lambda: False, elsewhere, elsewhere)
"""


def test_a_call_on_tensors_is_work_of_their_stream():
    run(FAMILY + "add, softmax = function('add'), function('softmax')\nx, y = Lib([4], 'f4', [1, 2, 3, 4]), Lib([4], 'f4', [5, 6, 7, 8])\n"
        "for i in range(5):\n"  # found again: the second time nothing is recorded
        "    Lib.made.clear()\n    write(x.address, [i, 2, 3, 4], Lib.current)\n    z = add(x, y)\n"
        "    assert z is Lib.made[0] and len(Lib.made) == 1 and z.read() == [5 + i, 8, 10, 12]\n"
        "Lib.current = stream()\nassert add(x, y).read() == [9, 8, 10, 12]\n"
        "assert np.allclose(sum(softmax(x, -1).read()), 1) and np.allclose(softmax(x, axis=-1).read(), softmax(x).read())\n"
        "wide = Lib([4, 4], 'f4', range(16))\nlast = Lib([4, 4], 'f4', range(16), [1, 4])\n"
        "assert add(wide, last).read() == (np.arange(16).reshape(4, 4) + np.arange(16).reshape(4, 4).T).ravel().tolist()\n"
        "assert add(wide, 1).read()[-1] == 16 and add(wide, 2.5).read()[1] == 3.5 and add(wide, 3.5).read()[1] == 4.5\n"
        "assert add(Lib([0, 3]), Lib([0, 3])).sizes == (0, 3)\n"
        "assert function('permute')(wide, (1, 0)).read() == np.arange(16).reshape(4, 4).T.ravel().tolist()\n")


def test_tensors_that_come_and_go_at_one_address():
    run(FAMILY + "add, kept = function('add'), Lib([4], 'f4', [1, 1, 1, 1])\n"
        "for i in range(300):\n    x = Lib([4], 'f4', [i, 2, 3, 4])\n    assert add(x, kept).read() == [i + 1, 3, 4, 5]\n"
        "    assert cuda.cuMemFree_v2(N(x.address)) == 0\n    assert cuda.cuMemFree_v2(N(Lib.made.pop().address)) == 0\n")


def test_a_wrong_number_is_told_of_by_the_call():
    run(FAMILY + "embedding, table = function('embedding'), Lib([5, 2], 'f4', range(10))\n"
        "assert embedding(table, Lib([2], 'i8', [4, 0])).read() == [8, 9, 0, 1]\n"
        "try: embedding(table, Lib([2], 'i8', [4, 7]))\nexcept hg.IndexFault as e: assert '7' in str(e) and '5' in str(e), e\n"
        "else: raise SystemExit('no fault')\nassert embedding(table, Lib([1], 'i8', [2])).read() == [4, 5]\n")


def test_what_is_for_elsewhere():
    run(FAMILY + "less, other = function('less'), Lib([2], 'f4', [1, 2])\nclass Odd(Lib): pass\n"
        "for call in (lambda: function('add')(other, Odd([2], 'f4', [1, 2])), lambda: less(other, Lib([2], 'i8', [1, 2]))):\n"
        "    try: call()\n    except SystemExit as e: assert str(e) == 'a call for elsewhere', e\n    else: raise AssertionError\n")


def test_arrays_and_tensors_in_order_with_their_stream():
    run(FAMILY + "t = Lib([4], 'f4', [1, 2, 3, 4])\nfor take in (hg.from_dlpack, _core._import_by_table):\n"
        "    write(t.address, [9, 2, 3, 4], Lib.current)\n    y = take(t)\n"  # not waited for
        "    assert y.device.backend == 'cuda' and (y + 1).tolist() == [10, 3, 4, 5]\n    del y\n"
        "e.synchronize()\nassert len(released) == 2\n"
        "z = hg.array(np.arange(4, dtype='f4')) * 2\nmade = _core._export_by_table(z, Lib, False)\n"
        "assert made.read() == [0, 2, 4, 6]\nwrite(made.address, [5] * 4, Lib.current)\n"
        "del z\nmade.taken.contents.release(made.taken)\n"  # what was given to their stream comes before its next owner
        "again = [(hg.array(np.ones(4, 'f4')) * i).compute() for i in range(9)]\n"
        "assert cuda.cuStreamSynchronize(P(Lib.current)) == 0 and all(a.tolist() == [i] * 4 for i, a in enumerate(again))\n"
        "made = _core._run_on_tensors(lambda a, b: (a + b, a * b), (t, t), (Lib,))\n"
        "assert [m.read() for m in made] == [[18, 4, 6, 8], [81, 4, 9, 16]]\n"
        "t.requires_grad = True\n"  # its methods are asked, and it has none
        "try: hg.from_dlpack(t)\nexcept TypeError: pass\nelse: raise SystemExit('shared')\n")


def test_a_gradient_on_tensors():
    run(FAMILY + "class Context: needs_input_grad = (False, False, True, False, True)\n"
        "x, w, g = Lib([2, 2], 'f4', [1, 2, 3, 4]), Lib([2, 2], 'f4', [5, 6, 7, 8]), Lib([2, 2], 'f4', [1, 0, 0, 1])\n"
        "b = Lib([2], 'f4', [10, 20])\nfor i in range(3):\n    c, Lib.current = Context(), stream()\n"
        "    y = _core._tensors_forward(c, function('linear').__self__, ('bias',), x, w, b)\n"
        "    assert y.read() == [27, 43, 49, 73] and c.call[2] == (..., ..., ...)\n    c.saved_tensors = c.to_save\n"
        "    none, nothing, *made = _core._tensors_backward(c, g)\n"
        "    assert (none, nothing, made[1]) == (None, None, None) and made[0].read() == [5, 6, 7, 8] and made[2].read() == [1, 1]\n"
        "c = Context()\nassert _core._tensors_forward(c, function('exp').__self__, None, Lib([1], 'f4', [0])).read() == [1]\n"
        "c.saved_tensors, c.needs_input_grad = c.to_save, (False, False, False)\n"
        "assert _core._tensors_backward(c, g) is None and _core._tensors_backward(c, g, g) is None\n")


def test_results_of_another_type_than_the_tensors():
    run(FAMILY + "x = Lib([3], 'f4', [1, 5, 2])\nint64 = 'i8'\nplace = function('argmax')(x)\n"
        "assert place is Lib.made[-1] and place.kind == 'i8'\nout = (ctypes.c_int64 * 1)()\n"
        "assert cuda.cuMemcpyDtoHAsync_v2(out, N(place.address), N(8), P(Lib.current)) == 0\n"
        "assert cuda.cuStreamSynchronize(P(Lib.current)) == 0 and out[0] == 1\n")


def test_streams_and_arrays_in_turn():
    run(FAMILY + "add, streams = function('add'), [stream() for i in range(11)]\n"  # more than are kept
        "t = Lib([4], 'f4', [0, 0, 0, 0])\nkept = hg.array(np.ones(4, 'f4')).compute()\n"
        "for i in range(120):\n    before, Lib.current = Lib.current, streams[i % 11]\n"
        "    assert cuda.cuStreamSynchronize(P(before)) == 0\n"
        "    a = hg.from_dlpack(add(t, i))\n    b = (a * 2 + kept).compute()\n    c = _core._export_by_table(b, Lib, False)\n    del a, b\n"
        "    assert c.read() == [2 * i + 1] * 4\n    c.taken.contents.release(c.taken)\n")


def test_numpy_copies_any_type_and_nothing_at_all():
    run("""
for dtype in "f4", "f2", "f8", "?", "i8", "u1":
    for shape in (), (1,), (0, 3), (2, 2):
        a = np.ones(shape, dtype)
        x = hg.array(a)
        own = x.numpy()
        assert own.dtype == a.dtype and own.shape == shape and (own == a).all() and x.tolist() == a.tolist(), (dtype, shape)
try: hg.ones((3,)).astype("bfloat16").numpy()
except BufferError as error: assert "cast it to float32" in str(error)
else: assert False
""")
