"""The benchmark's programs of blocks: every text verifies, and gives on every engine what NumPy does in f64; sums fold by halves."""

import sys
from pathlib import Path

import numpy as np
import pytest

import hg

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path += [str(BENCH / "cuda"), str(BENCH)]
import row_programs  # noqa: E402
import tile_programs  # noqa: E402
from block_cases import BLOCKS, row_case  # noqa: E402
from cases import bits_dtype, from_type  # noqa: E402
from test_examples import contraction  # noqa: E402

pytestmark = pytest.mark.engine

f32 = np.float32
SIZES = {"column_sum": 1 << 20, "transpose": 1 << 13, "blur": 1 << 13, "histogram": 1 << 16, "matmul": 1 << 16,
         "matmul_tree": 1 << 16, "matmul_bf16": 1 << 16, "attention": 1 << 12, "matmul_int8": 1 << 16}
SMALL = {}         # label -> case, of the sizes that the reference machine does in a second
for program, variants in BLOCKS.items():
    for variant in variants:
        case = variant.make(SIZES.get(program, 1 << 16))
        SMALL[case.label] = case


def launch(executor, case) -> np.ndarray:
    """The output, after all steps."""
    arrays = {name: np.resize(a.period(), a.count) if a.tile else np.zeros(a.count, bits_dtype(a.kind)) for name, a in case.arrays.items()}
    for step in case.steps:
        given = {parameter: arrays[name] for parameter, name in step.bindings.items()}
        scalars = {name: (hg.lib.atlas_type_from_name(kind.encode()), int(f32(v).view(np.uint32)) if kind == "f32" else v)
                   for name, (kind, v) in step.scalars.items()}
        result = executor.run(step.text, lanes=step.lanes, grid=step.grid, buffers=given, scalars=scalars,
                              any_engine=case.program.startswith("matmul"))  # too many values at a time for the native engine
        assert result.fault is None
        arrays |= {name: result.buffers[parameter] for parameter, name in step.bindings.items()}
    return arrays["y"]


@pytest.mark.parametrize("label", SMALL)
def test_answer(executor, label):
    case = SMALL[label]
    answer = from_type(launch(executor, case), case.arrays["y"].kind).astype(np.float64)
    for first, count in case.windows():
        assert case.difference(answer[first:first + count], first) == ""


def halves(values: np.ndarray) -> np.ndarray:
    """Sums along the last axis, in chunks of 4096 that fold by halves, as do their sums."""
    if values.shape[-1] > 4096:
        return halves(halves(values.reshape(*values.shape[:-1], -1, 4096)))
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = values[..., :half] + values[..., half:]
    return values[..., 0]


def neighbours(values: np.ndarray) -> np.ndarray:
    """The sums of the last axis, whose length is a power of two, folded in pairs of neighbours."""
    while values.shape[-1] > 1:
        values = values[..., ::2] + values[..., 1::2]
    return values[..., 0]


SHAPES = [(1024, [(32, 4), (64, 8), (128, 8), (256, 1)]), (4096, [(64, 4), (256, 4), (512, 8), (1024, 1)]),
          (16384, [(256, 4), (512, 8), (1024, 2)])]


@pytest.mark.parametrize("columns, shapes", SHAPES)
def test_one_answer_for_every_shape(executor, columns, shapes):
    """However many lanes and neighbours a row is split into."""
    answers = {shape: launch(executor, row_case("row_sum", "f32", columns, 2 * columns, shape)) for shape in [None, *shapes]}
    x = row_case("row_sum", "f32", columns, 2 * columns).arrays["x"].period().reshape(2, columns)
    for shape, answer in answers.items():
        np.testing.assert_array_equal(answer.view(np.uint32), halves(x).view(np.uint32), str(shape))
    softmaxes = [launch(executor, row_case("softmax", "f32", columns, 2 * columns, shape)).tobytes() for shape in [None, *shapes]]
    assert len(set(softmaxes)) == 1


def test_column_sums_fold_by_neighbours(executor):
    case = SMALL["column_sum 128"]
    x = np.resize(case.arrays["x"].period(), case.count).reshape(case.arrays["x"].shape)
    np.testing.assert_array_equal(launch(executor, case), neighbours(x.T.copy()))


@pytest.mark.parametrize("rows, wide, groups", [(16, 1, 1), (512, 1, 1), (512, 2, 4), (1024, 4, 8), (128, 4, 8), (256, 1, 16)])
def test_one_sum_for_every_split_of_the_rows(executor, rows, wide, groups):
    columns = 2 * tile_programs.across(wide, groups)
    x = np.random.default_rng(rows).standard_normal((2 * rows, columns)).astype(f32)
    result = executor.run(tile_programs.column_sum(rows, wide, groups), grid=(2, 2), buffers={"x": x, "y": np.zeros((2, columns), f32)},
                          scalars={"columns": (hg.lib.atlas_type_from_name(b"u32"), columns)})
    for part, answer in enumerate(result.buffers["y"]):
        np.testing.assert_array_equal(answer, neighbours(x[part * rows:(part + 1) * rows].T.copy()))


def test_argmax_of_ties_zeros_and_nan(executor):
    """The lowest of several columns; -0 is +0; the first NaN wins."""
    x = np.zeros((6, 1024), f32)
    x[0, [700, 900]] = 1
    x[1, 3], x[1, 1] = 0, -0.0
    x[2, [800, 900]], x[2, 5] = np.nan, np.inf
    x[3] = -np.inf
    x[4, 1023] = np.nan
    x[5] = np.nan
    result = executor.run(row_programs.row_argmax("f32", 1024), grid=(6,), buffers={"x": x, "y": np.zeros(6, np.uint32)})
    assert list(result.buffers["y"]) == [700, 0, 800, 0, 1023, 0]


@pytest.mark.parametrize("k", [16, 256, 272, 768, 1296])
def test_tree_of_products(executor, k):
    """Chains of FMA over 256 of k, the last one shorter, folded in the aligned tree."""
    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((128, k)).astype(f32), rng.standard_normal((k, 128)).astype(f32)
    u32 = hg.lib.atlas_type_from_name(b"u32")
    result = executor.run(tile_programs.matmul(tree=True), grid=(1, 1), buffers={"a": a, "b": b, "y": np.zeros((128, 128), f32)},
                          scalars={"n": (u32, 128), "k": (u32, k)}, any_engine=True)
    np.testing.assert_array_equal(result.buffers["y"].view(np.uint32), contraction(a, b).view(np.uint32))
