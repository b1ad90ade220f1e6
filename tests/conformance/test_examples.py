"""The programs of examples/ that the demo has no picture of, against NumPy bit for bit. Powers and logarithms are the ISA's own, taken from
programs of one instruction; all else is written again here."""

import sys
from pathlib import Path

import numpy as np
import pytest

import hg

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.append(str(EXAMPLES))
from demo import fma, fold_by_halves, strided_sums  # noqa: E402

pytestmark = pytest.mark.engine

f32, u32 = np.float32, np.uint32
SHAPES = [(1, 1), (3, 5), (2, 255), (2, 256), (3, 257), (2, 1000)]   # rows and columns of a matrix


def launch(executor, name, buffers, output, scalars=None, **shape) -> np.ndarray:
    bits = {np.uint32: int, np.float32: lambda v: int(v.view(u32))}
    types = {np.uint32: b"u32", np.float32: b"f32"}
    given = {n: (hg.lib.atlas_type_from_name(types[type(v)]), bits[type(v)](v)) for n, v in (scalars or {}).items()}
    result = executor.run((EXAMPLES / f"{name}.atlas").read_text(encoding="utf-8"), buffers=buffers, scalars=given, **shape)
    assert result.fault is None
    return result.buffers[output]


def same(answer, expected) -> None:
    """In every bit."""
    expected = np.ascontiguousarray(expected, answer.dtype)
    np.testing.assert_array_equal(answer.view(np.uint8), expected.view(np.uint8).reshape(answer.view(np.uint8).shape))


def function(executor, name, x) -> np.ndarray:
    text = f".buffer x f32 inout\nldg.f32 r0, [x + lane]\n{name}.f32 r0, r0\nstg.f32 [x + lane], r0\nexit\n"
    return executor.run(text, lanes=x.size, buffers={"x": x.astype(f32)}).buffers["x"]


def matrix(seed, rows, columns) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(f32)


def sums(x) -> np.ndarray:
    return fold_by_halves(strided_sums(x, lambda s, c: s + c))


@pytest.mark.parametrize("rows, columns", SHAPES)
def test_softmax(executor, rows, columns):
    x = matrix(1, rows, columns) * f32(3)
    powers = function(executor, "exp", x - x.max(1, keepdims=True))
    answer = launch(executor, "softmax", {"x": x, "y": np.zeros_like(x)}, "y", {"columns": u32(columns)}, grid=(rows,))
    same(answer, powers / sums(powers)[:, None])
    wide = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(answer, wide / wide.sum(1, keepdims=True), 1e-5)


@pytest.mark.parametrize("rows, columns", SHAPES)
def test_rms_norm(executor, rows, columns):
    x, weight = matrix(2, rows, columns), matrix(3, 1, columns)[0]
    square = fold_by_halves(strided_sums(x, lambda s, c: fma(c, c, s))) / f32(columns)
    scale = f32(1) / np.sqrt(square + f32(1e-5))
    answer = launch(executor, "rms_norm", {"x": x, "weight": weight, "y": np.zeros_like(x)}, "y",
                    {"columns": u32(columns), "epsilon": f32(1e-5)}, grid=(rows,))
    same(answer, x * scale[:, None] * weight)


@pytest.mark.parametrize("rows, columns", SHAPES)
def test_cross_entropy(executor, rows, columns):
    x = matrix(4, rows, columns) * f32(3)
    t = np.random.default_rng(5).integers(0, columns, rows).astype(u32)
    largest = x.max(1)
    total = function(executor, "log", sums(function(executor, "exp", x - largest[:, None])))
    right = x[np.arange(rows), t]
    buffers = {"x": x, "t": t, "loss": np.zeros(rows, f32)}
    answer = launch(executor, "cross_entropy", buffers, "loss", {"columns": u32(columns)}, grid=(rows,))
    same(answer, total - (right - largest))
    np.testing.assert_allclose(answer, np.log(np.exp(x.astype(np.float64)).sum(1)) - right, 1e-5, 1e-5)


@pytest.mark.parametrize("rows, columns", SHAPES)
def test_row_sum(executor, rows, columns):
    x = matrix(6, rows, columns)
    answer = launch(executor, "row_sum", {"x": x, "sums": np.zeros(rows, f32)}, "sums", {"columns": u32(columns)}, grid=(rows,))
    same(answer, sums(x))


def test_row_sum_of_negative_zeros(executor):
    x = np.full((2, 300), -0.0, f32)
    answer = launch(executor, "row_sum", {"x": x, "sums": np.ones(2, f32)}, "sums", {"columns": u32(300)}, grid=(2,))
    same(answer, np.full(2, -0.0, f32))


@pytest.mark.parametrize("rows, columns", [(4, 1), (4, 300), (64, 257), (1000, 33)])
def test_column_sum(executor, rows, columns):
    x, part = matrix(7, rows, columns), np.full((4, columns), -0.0, f32)
    for row in range(rows):
        part[row % 4] += x[row]
    part = part[:2] + part[2:]
    answer = launch(executor, "column_sum", {"x": x, "sums": np.zeros(columns, f32)}, "sums",
                    {"rows": u32(rows), "columns": u32(columns)}, lanes=columns)
    same(answer, part[0] + part[1])


@pytest.mark.parametrize("rows, columns", SHAPES)
def test_argmax(executor, rows, columns):
    """Values that repeat; rows of -inf, with both zeros, and with NaN, of which NumPy too takes the first."""
    x = np.concatenate([np.rint(matrix(8, rows, columns) * 3), np.full((1, columns), -np.inf, f32), np.zeros((1, columns), f32)])
    x = np.concatenate([x, x])
    x[rows + 1, ::2] = -0.0
    x[-rows - 2:, columns // 2::7] = np.nan
    answer = launch(executor, "argmax", {"x": x, "found": np.full(len(x), 9, u32)}, "found", {"columns": u32(columns)}, grid=(len(x),))
    same(answer, x.argmax(1).astype(u32))


@pytest.mark.parametrize("rows, columns", [*SHAPES, (16, 16), (33, 47)])
def test_transpose(executor, rows, columns):
    x = matrix(9, rows, columns)
    answer = launch(executor, "transpose", {"x": x, "y": np.zeros((columns, rows), f32)}, "y",
                    {"rows": u32(rows), "columns": u32(columns)}, grid=(-(-columns // 16), -(-rows // 16)))
    same(answer, x.T)


@pytest.mark.parametrize("rows, columns", SHAPES)
def test_prefix_sum(executor, rows, columns):
    x = np.random.default_rng(10).integers(0, 1 << 31, (rows, columns)).astype(u32)
    answer = launch(executor, "prefix_sum", {"x": x, "y": np.zeros_like(x)}, "y", {"columns": u32(columns)}, grid=(rows,))
    same(answer, np.cumsum(x, 1, dtype=u32))


def to_bf16(x) -> np.ndarray:
    bits = x.astype(f32).view(u32)
    return ((bits + u32(0x7fff) + (bits >> u32(16) & u32(1))) >> u32(16)).astype(np.uint16)


def product(a, b) -> np.ndarray:
    """One chain of FMA an element."""
    total = np.zeros((len(a), b.shape[1]), f32)
    for k in range(a.shape[1]):
        total = fma(a[:, k:k + 1], b[k], total)
    return total


@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (16, 16, 16), (17, 33, 50), (5, 40, 31), (48, 16, 0)])
def test_matmul(executor, m, n, k):
    a, b = matrix(11, m, k), matrix(12, k, n)
    sizes, grid = {"m": u32(m), "n": u32(n), "k": u32(k)}, (-(-n // 16), -(-m // 16))

    def run(name, a, b, y, sizes=sizes):
        held = [v if v.size else np.zeros(1, v.dtype) for v in (a, b)]  # nothing of it is read
        return launch(executor, name, {"a": held[0], "b": held[1], "y": np.ones((m, n), y)}, "y", sizes, grid=grid)
    same(run("matmul", a, b, f32), product(a, b))
    a16, b16 = to_bf16(a), to_bf16(b)
    wide = [(v.astype(u32) << u32(16)).view(f32).reshape(v.shape) for v in (a16, b16)]
    same(run("matmul_bf16", a16, b16, np.uint16), to_bf16(product(*wide)))
    a8, b8 = (np.random.default_rng(s).integers(-128, 128, shape).astype(np.int8) for s, shape in ((13, (m, 4 * k)), (14, (n, 4 * k))))
    words = {"m": u32(m), "n": u32(n), "words": u32(k)}
    same(run("matmul_int8", a8.view(u32), b8.view(u32), np.int32, words), a8.astype(np.int32) @ b8.astype(np.int32).T)


def contraction(weights, values) -> np.ndarray:
    """Chains of FMA over 256 keys, folded by halves in the aligned tree over their number."""
    chains = [product(weights[:, i:i + 256], values[i:i + 256]) for i in range(0, weights.shape[1], 256)]

    def tree(part):
        if len(part) == 1:
            return part[0]
        half = 1 << (len(part) - 1).bit_length() - 1
        return tree(part[:half]) + tree(part[half:])
    return tree(chains)


@pytest.mark.parametrize("queries, keys, columns", [(1, 1, 1), (2, 100, 64), (2, 256, 8), (3, 257, 64), (2, 1800, 256), (1, 4096, 16)])
def test_attention(executor, queries, keys, columns):
    q, k, v = matrix(15, queries, columns), matrix(16, keys, columns), matrix(17, keys, columns)
    scale = f32(1 / np.sqrt(columns))
    scores = product(q, k.T) * scale
    weights = function(executor, "exp", scores - scores.max(1, keepdims=True))
    answer = launch(executor, "attention", {"q": q, "k": k, "v": v, "y": np.zeros_like(q)}, "y",
                    {"keys": u32(keys), "columns": u32(columns), "scale": scale}, grid=(queries,))
    same(answer, contraction(weights, v) / contraction(weights, np.ones((keys, 1), f32)))
    wide = np.exp((q.astype(np.float64) @ k.T.astype(np.float64)) * float(scale))
    np.testing.assert_allclose(answer, wide @ v / wide.sum(1, keepdims=True), 1e-4, 1e-5)
