"""The operations of Hologram SDK 0.1: each takes an executor, its inputs and its output, then sizes or constants.

    hg.ops.vector_add(executor, a, b, c)        # c = a + b
    hg.ops.vector_add(executor, a, b, c, n)     # the first n elements

Buffers are of one type and executor; ValueError and TypeError say which is not. The operations themselves are those of
hologram: these are short names for them on buffers."""

from __future__ import annotations


from hologram import _core
from hologram._core import Array, Buffer, Executor
from hologram._core import _ops

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

vector_add = _ops.vector_add
vector_sub = _ops.vector_sub
vector_mul = _ops.vector_mul
vector_div = _ops.vector_div
vector_min = _ops.vector_min
vector_max = _ops.vector_max
vector_abs = _ops.vector_abs
vector_neg = _ops.vector_neg
vector_relu = _ops.vector_relu
vector_sqrt = _ops.vector_sqrt
vector_exp = _ops.vector_exp
vector_log = _ops.vector_log
relu = _ops.relu
sigmoid = _ops.sigmoid
tanh = _ops.tanh
gelu = _ops.gelu
mad = _ops.mad


def _of(executor: Executor, buffer: Buffer, n: int | None = None) -> Array:
    """The first n elements of a buffer, as an array of the same memory."""
    if not isinstance(buffer, Buffer):
        raise TypeError(f"a Buffer is expected, not {type(buffer).__name__}")
    array = buffer.array()
    if n is None:
        return array
    if not 0 <= n <= len(buffer):
        raise ValueError(f"{n} elements are asked for; the buffer has {len(buffer)}")
    return array[:n]


def scalar_add(executor: Executor, a: Buffer, c: Buffer, value: float, n: int | None = None, /) -> None:
    """c = a + value."""
    c.assign(_of(executor, a, n) + value, *_count(n))


def scalar_mul(executor: Executor, a: Buffer, c: Buffer, value: float, n: int | None = None, /) -> None:
    """c = a * value."""
    c.assign(_of(executor, a, n) * value, *_count(n))


def vector_clip(executor: Executor, a: Buffer, c: Buffer, low: float, high: float, n: int | None = None, /) -> None:
    """c = a between low and high."""
    c.assign(_core.clip(_of(executor, a, n), low, high), *_count(n))


def softmax(executor: Executor, x: Buffer, y: Buffer, n: int | None = None, /) -> None:
    """y = the shares of e^x among the first n elements."""
    y.assign(_core.softmax(_of(executor, x, n)), *_count(n))


def reduce_sum(executor: Executor, x: Buffer, y: Buffer, n: int | None = None, /) -> None:
    """y[0] = the sum of x."""
    y.assign(_core.sum(_of(executor, x, n)), 1)


def reduce_min(executor: Executor, x: Buffer, y: Buffer, n: int | None = None, /) -> None:
    """y[0] = the smallest element of x."""
    y.assign(_core.min(_of(executor, x, n)), 1)


def reduce_max(executor: Executor, x: Buffer, y: Buffer, n: int | None = None, /) -> None:
    """y[0] = the largest element of x."""
    y.assign(_core.max(_of(executor, x, n)), 1)


def mse_loss(executor: Executor, x: Buffer, target: Buffer, loss: Buffer, n: int | None = None, /) -> None:
    """loss[0] = the mean of (x - target)^2."""
    loss.assign(_core.mse(_of(executor, x, n), _of(executor, target, n)), 1)


def cross_entropy_loss(executor: Executor, x: Buffer, target: Buffer, loss: Buffer, rows: int = 1,
                       classes: int | None = None, /) -> None:
    """loss[0] = the mean cross entropy of logits [rows, classes] with class numbers, or with probabilities."""
    classes = len(x) // rows if classes is None else classes
    logits = _of(executor, x, rows * classes).reshape(rows, classes)
    if target.dtype.kind == "float":
        wanted = _of(executor, target, rows * classes).reshape(rows, classes)
    else:
        wanted = _of(executor, target, rows)
    loss.assign(_core.cross_entropy(logits, wanted), 1)


def binary_cross_entropy_loss(executor: Executor, x: Buffer, target: Buffer, loss: Buffer, n: int | None = None, /) -> None:
    """loss[0] = the mean binary cross entropy of probabilities."""
    loss.assign(_core.bce(_of(executor, x, n), _of(executor, target, n)), 1)


def gemm(executor: Executor, a: Buffer, b: Buffer, c: Buffer, m: int, n: int, k: int, alpha: float = 1.0,
         beta: float = 0.0, /) -> None:
    """c [m, n] = alpha * a [m, k] b [k, n] + beta * c."""
    left = _of(executor, a, m * k).reshape(m, k)
    right = _of(executor, b, k * n).reshape(k, n)
    before: Any = _of(executor, c, m * n).reshape(m, n) if beta != 0 else None
    c.assign(_core.gemm(left, right, before, alpha=alpha, beta=beta).reshape(m * n), m * n)


def matvec(executor: Executor, a: Buffer, x: Buffer, y: Buffer, m: int, n: int, /) -> None:
    """y [m] = a [m, n] x [n]."""
    y.assign(_core.matvec(_of(executor, a, m * n).reshape(m, n), _of(executor, x, n)), m)


def memcpy(executor: Executor, source: Buffer, destination: Buffer, n: int | None = None, /) -> None:
    """The first n elements of one buffer into another."""
    if n is None:
        destination.copy_from(source)
    else:
        destination.assign(_of(executor, source, n), n)


def fill(executor: Executor, buffer: Buffer, value: float, n: int | None = None, /) -> None:
    """Makes the first n elements a number."""
    if n is None:
        buffer.fill(value)
    else:
        buffer.assign(_core._scalar(value, buffer.dtype).broadcast_to((n,)), n)


def _count(n: int | None) -> tuple[int, ...]:
    return () if n is None else (n,)
