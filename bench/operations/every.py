"""Every operation of the table that does work, on each of the types that it takes: what share of a copy's rate it has. No peers.

The inputs are made of the table's row; for one that this does not fit, say more in special() or arguments_of()."""

import math

from .cases import SIZES, Input, Operation, op

FLOATS = ("f32", "bf16", "f64")
COLUMNS = 4096
POSITIVE = "log log2 log10 log1p sqrt rsqrt pow asin acos bce bce_of kl_div clip_norm".split()  # from 0 to 1
ARGUMENTS = {"one_hot": {"classes": 64}, "take_where": {"size": 1 << 19}, "pad": {"low": [1, 1], "high": [1, 1]}, "cast": {"type": "i32"},
             "bitcast": {"type": "u32"}}
MATRICES = ("lower_solve upper_solve triangular_solve cholesky_lower cholesky lu lu_solve solve lu_sign det log_abs_det "
            "inv forward_solve forward_blocks cholesky_blocks lu_blocks "
            "qr_packed qr_complete qr eigh_packed eigh svd_rotated svd_packed svd pinv qr_reflections qr_factors qr_blocks "
            "qr_complete_blocks tridiagonal tridiagonal_eigh eigh_joined eigh_reduced eigh_blocks matrix_scale reflected "
            "orthonormal bidiagonal svd_reduced").split()  # of 64 x 64
RANDOM = "random_bits uniform normal integers uniform_open exponential gumbel laplace truncated_normal".split()
WINDOWS = "window_places hann hamming blackman bartlett kaiser".split()
INSIDE = "logit ndtri erfinv lgamma digamma trigamma tetragamma polygamma entr".split()  # from 0 to 0.9
SCATTERS = "scatter scatter_add scatter_multiply scatter_mean scatter_min scatter_max scatter_reduce".split()
LISTS = {"concatenate": 2, "stack": 2, "global_norm": 2}   # inputs of an operation of any number


def side(x: Input) -> int:
    """Of square matrices: what takes a GPU, or a processor, milliseconds."""
    size = next(n for n, least in ((4096, 1 << 25), (1024, 1 << 16), (64, 0)) if x.bytes >= 4 * least)
    return size // 2 if x.kind == "f64" else size


def special(name: str, kind: str, x: Input) -> list[Input] | None:
    """Inputs that are not all of one shape and type; None: they are."""
    rows, columns = x.shape
    number, classes = Input((), kind, "ones"), Input((rows,), "i64", "below", columns)
    key, inner = Input((), "u32", "below", 1 << 30), Input(x.shape, kind, "uniform", 0.9)
    if name in ("dot", "matvec", "matmul", "gemm", "linear"):
        matrix, vector = Input((side(x), side(x)), kind), Input((side(x),), kind)
        return {"dot": [Input((x.count,), kind)] * 2, "matvec": [matrix, vector]}.get(name, [matrix, matrix])
    if name.startswith("conv"):  # images of 64 channels
        image, weight = Input((max(1, x.count >> 16), 64, 32, 32), kind), Input((64, 64, 3, 3), kind, "normal", 0.1)
        return [image, image if name == "convolution_weights" else weight]
    if name in MATRICES:
        fill = ("eye", 64) if name.startswith("cholesky") else ("normal", 0.1)  # positive definite; a determinant that f32 holds
        square = Input((max(1, x.count // 4096), 64, 64), kind, *fill)
        more = {"lu_solve": [Input((*square.shape[:-1], 65), kind, "ones")], "lu_sign": [Input((*square.shape[:-1], 65), kind, "ones")]}
        right = [square] if name.endswith("solve") else [number] if name == "pinv" else []
        more["forward_blocks"] = [square, square, Input((*square.shape[:-2], 32, 64), kind)]
        joined, batch = Input((*square.shape[:-2], 33, 32), kind), square.shape[:-2]
        more["eigh_joined"] = [joined, joined, Input((*batch, 1, 1), kind, "ones")]
        more["reflected"] = [square, Input((*batch, 1, 64), kind, "uniform"), square]
        return [*more.get(name, [square]), *right]
    if name.startswith("secular"):
        ones, weights = Input((rows, 1), kind, "ones"), Input((1, columns), kind, "uniform")
        return [Input((rows, 1), "i64" if kind == "f64" else "i32", "below", 100), x, weights, ones]
    return {"take": [x, Input((rows,), "i64", "below", rows)], "take_along": [x, Input(x.shape, "i64", "below", columns)],
            **dict.fromkeys(SCATTERS, [x, Input(x.shape, "i64", "below", columns), x]),
            **dict.fromkeys(("index_add", "index_copy", "index_reduce"), [x, Input((rows,), "i64", "below", rows), x]),
            "index_fill": [x, Input((rows,), "i64", "below", rows), number],
            "embedding_bag": [x, Input((rows,), "i64", "below", rows), Input((1,), "i64", "zeros")],
            "segmented_scan": [x, Input(x.shape, "i64", "below", 100)],
            "take_where": [x, Input(x.shape, "bool", "below", 2)], "mask_ends": [Input(x.shape, "bool", "below", 2)],
            "embedding": [x, Input((rows,), "i64", "below", rows)],
            "bincount": [Input(x.shape, "i64", "below", columns)],
            **dict.fromkeys([f"segment_{of}" for of in ("sum", "prod", "max", "min", "mean")], [x, Input((rows,), "i64", "below", 4)]),
            "confusion_matrix": [Input(x.shape, "i64", "below", 64)] * 2,
            **dict.fromkeys(("even_bins", "uneven_bins"), [x, Input((101,), kind, "uniform")]),
            "logit_nll": [x, Input((rows, 1), "i64", "below", columns)],
            "quantile": [x, Input((2,), kind, "uniform", 0.9)], "bucketize": [x, Input((columns,), kind)],
            "nll": [x, classes], "cross_entropy": [x, classes], "cross_entropy_of_classes": [x, classes],
            **dict.fromkeys(INSIDE, [inner]), "xlogy": [inner, inner], "xlog1py": [inner, inner],
            "ndtri_of": [inner, inner], "ndtr_tail": [Input(x.shape, kind, "ones")],
            "cdist_slope": [x, x, Input((rows, rows), kind, "ones"), Input((rows, rows), kind)], "multi_margin": [x, classes],
            "prelu": [x, Input((columns,), kind)], "cosine_embedding": [x, x, Input((rows,), kind, "ones")],
            "dropout": [x, key], **dict.fromkeys(RANDOM, [key]),
            "one_hot": [Input((x.count // 64,), "i64", "below", 64)], "clip_norm": [x, number], "sgd": [x, x, number],
            "outer": [Input((rows,), kind), Input((columns,), kind)], "cross": [Input((x.count // 3, 3), kind)] * 2,
            "acosh": [Input(x.shape, kind, "ones")], "atanh": [Input(x.shape, kind, "uniform", 0.5)],
            **dict.fromkeys(("adam", "adamw", "adamax"), [x, x, x, Input(x.shape, kind, "uniform"), number, number]),
            "lion": [x, x, x, number],
            "rmsprop": [x, x, Input(x.shape, kind, "uniform"), number], "adagrad": [x, x, Input(x.shape, kind, "uniform"), number, number],
            "nadam": [x, x, x, Input(x.shape, kind, "uniform"), number, number, number],
            "amsgrad": [x, x, x, *[Input(x.shape, kind, "uniform")] * 2, number, number],
            **dict.fromkeys(("full", "arange", "eye", *WINDOWS), [])}.get(name)


def arguments_of(name: str, kind: str, defaults: dict, x: Input) -> dict:
    found = dict(ARGUMENTS.get(name, {}))
    if defaults.get("axes") == "all":
        found["axes"] = [-1]
    if name in (*RANDOM, "full"):
        found["shape"] = list(x.shape)
    if "type" in defaults and name in (*RANDOM, *WINDOWS, "full") and name != "integers":
        found["type"] = "f32" if kind == "i32" else kind
    if name.startswith("segment_") and "num_segments" in defaults:
        found["num_segments"] = 4
    if name == "bincount":
        found["length"] = x.shape[1]
    if name == "confusion_matrix":
        found["classes"] = 64
    if name in WINDOWS:
        found["size"] = x.count
    if name in ("convolution_back", "conv_transposed"):
        found |= {"shape": [max(1, x.count >> 16), 64, 32, 32], "low": [1, 1]}
    elif name.startswith("conv"):
        found |= {"low": [1, 1]} | ({"shape": [64, 64, 3, 3]} if name == "convolution_weights" else {"high": [1, 1]})
    if name == "arange":
        found |= {"stop": float(x.count), "type": kind}
    if name == "eye":
        found |= {"rows": x.shape[0], "columns": x.shape[1], "type": kind}
    return found


def kinds_of(name: str, kind: str, types: str) -> tuple:
    first = types.split(";")[0].split()
    if name in ("random_bits", "integers", "one_hot", "bincount", "confusion_matrix", "cast", "bitcast"):
        return ("f32",) if name in ("cast", "bitcast") else ("i64",)
    if kind == "random" or name.startswith("secular"):
        return ("f32", "f64")
    if kind == "create" or {"float", "number", "any"} & set(first) or name == "where":
        return FLOATS
    return ("i32",) if "integer" in first else ("bool",)


def inputs_of(name: str, kind: str, row: dict, x: Input) -> list[Input]:
    given = special(name, kind, x)
    if given is not None:
        return given
    if name in LISTS:
        return [x] * LISTS[name]
    required = [i for i in row["inputs"].split(", ") if i and not i.endswith("?")]
    types = [t.strip() for t in row["types"].split(";")]
    types += types[-1:] * len(required)
    return [Input(x.shape, "bool" if t == "bool" else kind, x.fill, x.scale) for _, t in zip(required, types)]


def operations(table: dict, total: int) -> list[Operation]:
    """table: name -> {"kind", "inputs", "types", "defaults"}. The work is what inputs and results hold, unless given: it is known when
    the computation is."""
    found = []
    for name, row in table.items():
        if row["kind"] == "view":
            continue
        for kind in kinds_of(name, row["kind"], row["types"]):
            count = total * 4 // max(SIZES[kind], 4)
            fill, scale = ("uniform", 1.0) if name in POSITIVE else ("below", 2) if kind == "bool" else \
                ("below", 100) if kind == "i32" else ("normal", 1.0)
            x = Input((count // COLUMNS, COLUMNS), kind, fill, scale)
            work = 2.0 * side(x) ** 3 if name in ("matmul", "gemm", "linear") else 0
            found.append(Operation(f"every {name}.{kind}", f"every.{kind}", inputs_of(name, kind, row, x),
                                   op(name, **arguments_of(name, kind, row["defaults"], x)), None, work or math.nan,
                                   "TFLOP/s" if work else "TB/s", peers=()))
    return found
