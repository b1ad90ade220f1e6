"""What operations mean, in NumPy: written from the table's words, the array API and the papers, in f64 for floats.

REFERENCE[name](*arrays, **arguments) takes float64 arrays (or the integers and bools themselves) and gives the result in
float64, or exact."""

import math

import numpy as np

_erf = np.vectorize(math.erf, otypes=[float])
_erfc = np.vectorize(math.erfc, otypes=[float])


def _axes(x, axes):
    return None if axes is None else tuple(np.atleast_1d(axes))


def _keep(function):
    return lambda x, axes=None, keep=0: function(x, axis=_axes(x, axes), keepdims=bool(keep))


def _place(function):
    """argmin and argmax over several axes: counted in C order of the reduced ones."""
    def place(x, axes=None, keep=0):
        reduced = tuple(range(x.ndim)) if axes is None else tuple(sorted(a % x.ndim for a in np.atleast_1d(axes)))
        kept = [a for a in range(x.ndim) if a not in reduced]
        flat = np.transpose(x, kept + list(reduced)).reshape([x.shape[a] for a in kept] + [-1])
        result = function(flat, axis=-1)
        return result.reshape([1 if a in reduced else n for a, n in enumerate(x.shape)]) if keep else result
    return place


def logsumexp(x, axes=None, keep=0):
    m = np.max(x, axis=_axes(x, axes), keepdims=True)
    with np.errstate(all="ignore"):
        result = np.where(np.isinf(m), m, m + np.log(np.sum(np.exp(x - m), axis=_axes(x, axes), keepdims=True)))
    return result if keep else np.squeeze(result, axis=_axes(x, axes) or tuple(range(x.ndim)))


def log_softmax(x, axis=-1):
    d = x - np.max(x, axis=axis, keepdims=True)
    return d - np.log(np.sum(np.exp(d), axis=axis, keepdims=True))


def softmax(x, axis=-1):
    return np.exp(log_softmax(x, axis))


def layer_norm(x, weight=None, bias=None, axes=(-1,), eps=1e-5):
    d = x - np.mean(x, axis=tuple(axes), keepdims=True)
    n = d / np.sqrt(np.mean(d * d, axis=tuple(axes), keepdims=True) + eps)
    return n * (1 if weight is None else weight) + (0 if bias is None else bias)


def rms_norm(x, weight=None, axes=(-1,), eps=1e-5):
    return x / np.sqrt(np.mean(x * x, axis=tuple(axes), keepdims=True) + eps) * (1 if weight is None else weight)


def softplus(x, beta=1.0):
    return np.logaddexp(x * beta, 0) / beta


def _c_quotient(a, b):
    """Integers: towards zero, x / 0 = 0."""
    if a.dtype.kind == "f":
        return a / b
    quotient = np.array([[0 if q == 0 else (abs(int(p)) // abs(int(q))) * (1 if (p < 0) == (q < 0) else -1)]
                         for p, q in zip(*(v.ravel() for v in np.broadcast_arrays(a, b)))], dtype=object)
    return quotient.reshape(np.broadcast_shapes(a.shape, b.shape))


REFERENCE = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _c_quotient,
    "minimum": np.minimum, "maximum": np.maximum, "abs": np.abs, "neg": np.negative, "sign": np.sign, "copysign": np.copysign,
    "reciprocal": lambda x: 1 / x, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "round": np.round, "fmod": np.fmod, "fma": lambda a, b, c: a * b + c,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "pow": np.power, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": _erf, "erfc": _erfc, "relu": lambda x: np.maximum(x, 0), "gelu": lambda x: x * 0.5 * _erfc(-x / math.sqrt(2)),
    "gelu_tanh": lambda x: x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor, "logical_not": np.logical_not, "where": np.where,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "bitwise_not": np.invert,
    "sum": _keep(np.sum), "prod": _keep(np.prod), "min": _keep(np.min), "max": _keep(np.max), "any": _keep(np.any),
    "all": _keep(np.all), "argmin": _place(np.argmin), "argmax": _place(np.argmax),
    "mean": _keep(np.mean), "count_nonzero": _keep(lambda x, **k: np.sum(x != 0, **k)), "logsumexp": logsumexp,
    "var": lambda x, axes=None, ddof=0.0, keep=0: np.var(x, axis=_axes(x, axes), ddof=ddof, keepdims=bool(keep)),
    "std": lambda x, axes=None, ddof=0.0, keep=0: np.std(x, axis=_axes(x, axes), ddof=ddof, keepdims=bool(keep)),
    "norm": lambda x, axes=None, ord=2.0, keep=0: np.sum(np.abs(x) ** ord, axis=_axes(x, axes), keepdims=bool(keep)) ** (1 / ord),
    "softmax": softmax, "log_softmax": log_softmax, "layer_norm": layer_norm, "rms_norm": rms_norm,
    "square": np.square, "lerp": lambda a, b, t: a + t * (b - a),
    "leaky_relu": lambda x, slope=0.01: np.where(x > 0, x, x * slope),
    "elu": lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "silu": lambda x: x / (1 + np.exp(-x)), "softplus": softplus,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6, "mish": lambda x: x * np.tanh(softplus(x)),
    "clip": lambda x, low=-np.inf, high=np.inf: np.clip(x, low, high),
    "matmul": np.matmul, "linear": lambda x, weight, bias=None: x @ np.swapaxes(weight, -1, -2) + (0 if bias is None else bias),
    "mse": lambda a, b: np.mean((a - b) ** 2), "l1": lambda a, b: np.mean(np.abs(a - b)),
    "huber": lambda a, b, delta=1.0: np.mean(np.where(np.abs(a - b) <= delta, 0.5 * (a - b) ** 2, delta * (np.abs(a - b) - 0.5 * delta))),
    "bce_with_logits": lambda x, t: np.mean(np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x)))),
}
