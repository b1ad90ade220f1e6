"""What operations mean, in NumPy: written from the table's words, the array API and the papers, in f64 for floats (in NumPy's
longdouble for results of f64, where the machine has a wider one).

REFERENCE[name](*arrays, **arguments) takes float arrays of that type (or the integers and bools themselves) and gives the result
in it, or exact. An input that may be absent is None. SCALE[name], of the same arrays: what the roundings are small beside, where
that is neither the result's element nor its largest."""

import math
import warnings

import mpmath
import numpy as np


def _special(name):
    """erf and erfc: of f64 with 30 digits, of what comes from narrower types with math's."""
    def precise(x):
        with mpmath.workdps(30):
            return np.longdouble(mpmath.nstr(getattr(mpmath, name)(mpmath.mpf(str(x))), 25))
    of_f64 = np.vectorize(precise, otypes=[np.longdouble])
    narrow = np.vectorize(getattr(math, name), otypes=[float])
    return lambda x: (of_f64 if x.dtype == np.longdouble else narrow)(x) if x.size else x


_erf, _erfc = _special("erf"), _special("erfc")
PI = np.longdouble("3.14159265358979323846264338327950288")


def _axes(x, axes):
    return None if axes is None else tuple(np.atleast_1d(axes))


def _keep(function):
    return lambda x, axes=None, keep=0: function(x, axis=_axes(x, axes), keepdims=bool(keep))


def _place(function):
    """argmin and argmax over several axes: counted in C order of the reduced ones."""
    def place(x, axes=None, keep=0):
        reduced = tuple(range(x.ndim)) if axes is None else tuple(sorted(a % x.ndim for a in np.atleast_1d(axes)))
        kept = [a for a in range(x.ndim) if a not in reduced]
        flat = np.transpose(x, kept + list(reduced)).reshape([x.shape[a] for a in kept] + [math.prod(x.shape[a] for a in reduced)])
        result = function(flat, axis=-1)
        return result.reshape([1 if a in reduced else n for a, n in enumerate(x.shape)]) if keep else result
    return place


def _nan_place(function):
    """nanargmin and nanargmax, which NumPy refuses where nothing but NaN is, and mistakes a NaN in for an infinity."""
    def place(line):
        numbers = np.flatnonzero(line == line)
        return numbers[function(line[numbers])] if len(numbers) else -1
    return _place(lambda x, axis: np.apply_along_axis(place, axis, x) if x.size else np.zeros(x.shape[:-1], np.int64))


def _quietly(function):
    """NumPy warns where nothing but NaN is."""
    def call(*arrays, **more):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return function(*arrays, **more)
    return _keep(call)


def nan_to_num(x, nan=None, posinf=None, neginf=None):
    for place, number in ((np.isnan(x), nan), (x == np.inf, posinf), (x == -np.inf, neginf)):
        x = np.where(place, number, x)
    return x


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
    return _by_element(lambda p, q: 0 if q == 0 else (abs(p) // abs(q)) * (1 if (p < 0) == (q < 0) else -1))(a, b)


def _c_remainder(a, b):
    """What that leaves: x rem 0 = x of integers."""
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    return _by_element(lambda p, q: (abs(p) % abs(q)) * (-1 if p < 0 else 1) if q else p)(a, b)


def _by_element(function):
    """Of Python's integers, one after another; whoever compares takes them modulo the type's size."""
    def apply(*arrays):
        whole = [v.ravel().tolist() for v in np.broadcast_arrays(*arrays)]
        result = np.empty(len(whole[0]), object)
        result[:] = [function(*numbers) for numbers in zip(*whole)]
        return result.reshape(np.broadcast_shapes(*(a.shape for a in arrays)))
    return apply


def _of_bits(function):
    """Of an integer's bits, from the lowest, as a list of 0 and 1."""
    def apply(x):
        bits = x.dtype.itemsize * 8
        return _by_element(lambda v: function([(v >> i) & 1 for i in range(bits)]))(x)
    return apply


def _floor_quotient(a, b):
    """Rounded down; integers: x // 0 = 0."""
    if a.dtype.kind == "f":
        return np.floor(a / b)
    return _by_element(lambda p, q: p // q if q else 0)(a, b)


def _remainder(a, b):
    if a.dtype.kind == "f":
        with np.errstate(all="ignore"):
            r = np.fmod(a, b)
            r = r + np.where((r != 0) & ((r < 0) != (b < 0)), b, 0)
            return np.where(r == 0, np.copysign(0, b), r)
    return _by_element(lambda p, q: p % q if q else p)(a, b)


def _shift(left):
    def apply(x, count):
        bits = x.dtype.itemsize * 8
        return _by_element(lambda v, n: v << (n % 2 ** 32 % bits) if left else v >> (n % 2 ** 32 % bits))(x, count)
    return apply


def _dot4(first, second):
    def apply(a, b, c):
        words = [np.ascontiguousarray(v).view(kind).reshape(v.shape + (4,)).astype(np.int64) for v, kind in ((a, first), (b, second))]
        return np.sum(words[0] * words[1], axis=-1) + c.astype(np.int64)
    return apply


def _total(values, reduction):
    return values if reduction == "none" else np.sum(values) if reduction == "sum" else np.mean(values)


def nll(x, target, weight=None, axis=-1, reduction="mean", ignore_index=-100):
    x = np.moveaxis(x, axis, -1)
    valid = target != ignore_index
    at = np.where(valid, target, 0).astype(np.int64)
    w = np.where(valid, 1.0 if weight is None else weight[at], 0.0)
    values = np.where(valid, -np.take_along_axis(x, at[..., None], -1)[..., 0] * w, 0)
    return values if reduction == "none" else np.sum(values) if reduction == "sum" else np.sum(values) / np.sum(w)


def cross_entropy_of_classes(x, target, weight=None, axis=-1, reduction="mean", smoothing=0.0, ignore_index=-100):
    """With smoothing: (1 - s) times the loss of the class, and s / classes times the weighted sum over all of them."""
    p = np.moveaxis(log_softmax(x, axis), axis, -1)
    valid = target != ignore_index
    w = np.ones(p.shape[-1]) if weight is None else weight
    at = np.where(valid, target, 0).astype(np.int64)
    values = (1 - smoothing) * -np.take_along_axis(p, at[..., None], -1)[..., 0] * w[at] - smoothing / p.shape[-1] * np.sum(p * w, axis=-1)
    values = np.where(valid, values, 0)
    return values if reduction == "none" else np.sum(values) if reduction == "sum" else np.sum(values) / np.sum(np.where(valid, w[at], 0))


def cross_entropy_of_shares(x, target, weight=None, axis=-1, reduction="mean", smoothing=0.0):
    p, q = np.moveaxis(log_softmax(x, axis), axis, -1), np.moveaxis(target, axis, -1)
    q = q * (1 - smoothing) + smoothing / q.shape[-1]
    return _total(-np.sum(q * p * (1 if weight is None else weight), axis=-1), reduction)


def bce_of(x, t):
    with np.errstate(all="ignore"):
        return -(t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(np.log1p(-x), -100))


def bce_logit_of(x, t, positive=None):
    return (1 - t) * x + (1 + (0 if positive is None else positive - 1) * t) * softplus(-x)


def bce_with_logits(x, t, weight=None, positive=None, reduction="mean"):
    values = bce_logit_of(x, t, positive)
    return _total(values * (1 if weight is None else weight), reduction)


def kl_div(x, t, log_target=0, reduction="mean"):
    with np.errstate(all="ignore"):
        values = np.exp(t) * (t - x) if log_target else np.where(t > 0, t * (np.log(np.where(t > 0, t, 1)) - x), 0)
    return np.sum(values) / len(x) if reduction == "batchmean" else _total(values, reduction)


def group_norm(x, weight=None, bias=None, groups=1, eps=1e-5):
    parts = x.reshape(len(x), groups, x[0, 0].size * x.shape[1] // groups if len(x) else 1)
    n = layer_norm(parts, eps=eps).reshape(x.shape)
    along = [1, -1] + [1] * (x.ndim - 2)
    return n * (1 if weight is None else weight.reshape(along)) + (0 if bias is None else bias.reshape(along))


def normalize(x, axes=(1,), p=2.0, eps=1e-12):
    return x / np.maximum(_norm(x, axes, p), eps)


def _norm(x, axes, p=2.0):
    size = np.abs(x)
    of_largest = (lambda **k: np.max(size, **k)) if p == np.inf else lambda **k: np.sum(size ** p, **k) ** (1 / p)
    return of_largest(axis=_axes(x, axes), keepdims=True)


def distance(a, b, p=2.0, eps=1e-6):
    return _norm(a - b + eps, -1, p)[..., 0]


def celu(x, alpha=1.0):
    return np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0) / alpha)


def tanhshrink(x):
    return x - np.tanh(x)


def selu(x):
    alpha, scale = (np.asarray(v, x.dtype) for v in ("1.6732632423543772848170429916717", "1.0507009873554804934193349852946"))
    return scale * (np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0)))


def smooth_l1(x, t, beta=1.0, reduction="mean"):
    d = np.abs(x - t)
    return _total(np.where(d < beta, 0.5 * d * d / (beta or 1), d - 0.5 * beta), reduction)


def poisson_nll(x, t, log_input=1, full=0, eps=1e-8, reduction="mean"):
    values = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    above = np.where(t > 1, t, 1)
    stirling = above * np.log(above) - above + 0.5 * np.log(2 * PI.astype(x.dtype) * above)
    return _total(values + np.where(t > 1, stirling, 0) if full else values, reduction)


def gaussian_nll(x, t, var, full=0, eps=1e-6, reduction="mean"):
    v = np.maximum(var[..., None] if var.ndim < x.ndim else var, eps)
    return _total(0.5 * (np.log(v) + (x - t) ** 2 / v) + (0.5 * np.log(2 * PI.astype(x.dtype)) if full else 0), reduction)


def multi_margin(x, target, weight=None, axis=-1, p=1, margin=1.0, reduction="mean"):
    x = np.moveaxis(x, axis, -1)
    hinge = np.maximum(margin - np.take_along_axis(x, target[..., None], -1) + x, 0) ** p
    np.put_along_axis(hinge, target[..., None], 0, -1)
    return _total(np.mean(hinge, axis=-1) * (1 if weight is None else weight[target]), reduction)


def cosine_similarity(a, b, axis=1, eps=1e-8):
    return np.sum(a / np.maximum(_norm(a, axis), eps) * (b / np.maximum(_norm(b, axis), eps)), axis=axis)


def cosine_embedding(a, b, target, margin=0.0, reduction="mean"):
    c = np.sum(a * b, axis=-1) / np.sqrt((np.sum(a * a, axis=-1) + 1e-12) * (np.sum(b * b, axis=-1) + 1e-12))
    return _total(np.where(target == 1, 1 - c, np.maximum(c - margin, 0)), reduction)


def triplet_margin(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=0, reduction="mean"):
    far = distance(anchor, negative, p, eps)
    far = np.minimum(far, distance(positive, negative, p, eps)) if swap else far
    return _total(np.maximum(distance(anchor, positive, p, eps) - far + margin, 0), reduction)


def batch_norm(x, weight=None, bias=None, mean=None, var=None, axis=1, training=1, momentum=0.1, eps=1e-5):
    """Normalised with the biased variance; the running one takes the unbiased."""
    def along(v):
        return v.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    others = tuple(i for i in range(x.ndim) if i != axis)
    m, v = (np.mean(x, axis=others), np.var(x, axis=others)) if training else (mean, var)
    y = (x - along(m)) / np.sqrt(along(v) + eps) * (1 if weight is None else along(weight)) + (0 if bias is None else along(bias))
    if not training:
        return y, mean, var
    count = x.size // x.shape[axis]
    with np.errstate(all="ignore"):
        unbiased = v * (count / (count - 1)) if count > 1 else v * np.nan
    return (y, m if mean is None else mean + momentum * (m - mean), unbiased if var is None else var + momentum * (unbiased - var))


def sgd(param, gradient, lr, buffer=None, step=None, momentum=0.0, dampening=0.0, nesterov=0, decay=0.0):
    d = gradient + decay * param
    dampening = 0 if step is not None and step == 1 else dampening
    b = d if buffer is None or momentum == 0 else momentum * buffer + (1 - dampening) * d
    return param - lr * (d + momentum * b if nesterov else b), b


def adam(param, gradient, m, v, lr, step, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0):
    d = gradient + decay * param
    m, v = beta1 * m + (1 - beta1) * d, beta2 * v + (1 - beta2) * d * d
    return param - lr * (m / (1 - beta1 ** step)) / (np.sqrt(v / (1 - beta2 ** step)) + eps), m, v


def adamw(param, gradient, m, v, lr, step, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01):
    return adam(param * (1 - lr * decay), gradient, m, v, lr, step, beta1, beta2, eps)


def amsgrad(param, gradient, m, v, largest, lr, step, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0, decoupled=0):
    d, p = (gradient, param * (1 - lr * decay)) if decoupled else (gradient + decay * param, param)
    m, v = beta1 * m + (1 - beta1) * d, beta2 * v + (1 - beta2) * d * d
    h = np.maximum(largest, v)
    return p - lr * (m / (1 - beta1 ** step)) / (np.sqrt(h / (1 - beta2 ** step)) + eps), m, v, h


def nadam(param, gradient, m, v, product, lr, step, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0, momentum_decay=0.004, decoupled=0):
    d, p = (gradient, param * (1 - lr * decay)) if decoupled else (gradient + decay * param, param)
    m, v = beta1 * m + (1 - beta1) * d, beta2 * v + (1 - beta2) * d * d
    own, after = (beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (step, step + 1))
    product, w = product * own, np.sqrt(v / (1 - beta2 ** step)) + eps
    return p - lr * (1 - own) / (1 - product) * d / w - lr * after / (1 - product * after) * m / w, m, v, product


def adamax(param, gradient, m, v, lr, step, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0):
    d = gradient + decay * param
    m, v = beta1 * m + (1 - beta1) * d, np.maximum(beta2 * v, np.abs(d) + eps)
    return param - lr / (1 - beta1 ** step) * m / v, m, v


def rmsprop(param, gradient, v, lr, m=None, buffer=None, alpha=0.99, eps=1e-8, momentum=0.0, decay=0.0):
    d = gradient + decay * param
    v, mean = alpha * v + (1 - alpha) * d * d, d if m is None else alpha * m + (1 - alpha) * d
    q = d / (np.sqrt(v if m is None else np.maximum(v - mean * mean, 0)) + eps)
    q = q if buffer is None else momentum * buffer + q
    return param - lr * q, v, mean, q


def adagrad(param, gradient, v, lr, step, rate_decay=0.0, eps=1e-10, decay=0.0):
    d = gradient + decay * param
    return param - lr / (1 + (step - 1) * rate_decay) * d / (np.sqrt(v + d * d) + eps), v + d * d


def lion(param, gradient, m, lr, beta1=0.9, beta2=0.99, decay=0.0):
    return param * (1 - lr * decay) - lr * np.sign(beta1 * m + (1 - beta1) * gradient), beta2 * m + (1 - beta2) * gradient


def gemm(a, b, c=None, alpha=1.0, beta=1.0, transpose_a=0, transpose_b=0):
    a, b = np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b
    return alpha * (a @ b) + (0 if c is None else beta * c)


REFERENCE = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _c_quotient,
    "minimum": np.minimum, "maximum": np.maximum, "abs": np.abs, "neg": np.negative, "sign": np.sign, "copysign": np.copysign,
    "reciprocal": lambda x: 1 / x, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "floor": np.floor,
    "stop_gradient": lambda x: x,
    "ceil": np.ceil, "trunc": np.trunc, "round": np.round, "fmod": _c_remainder, "fma": lambda a, b, c: a * b + c,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "pow": np.power, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": _erf, "erfc": _erfc, "relu": lambda x: np.maximum(x, 0), "gelu": lambda x: x * 0.5 * _erfc(-x / np.sqrt(np.asarray(2, x.dtype))),
    "gelu_tanh": lambda x: x / (1 + np.exp(-2 * np.sqrt(2 / PI.astype(x.dtype)) * (x + np.asarray("0.044715", x.dtype) * x ** 3))),
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
    "relu6": lambda x: np.clip(x, 0, 6), "hardtanh": lambda x, low=-1.0, high=1.0: np.clip(x, low, high),
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6, "selu": selu, "celu": celu, "softsign": lambda x: x / (1 + np.abs(x)),
    "logsigmoid": lambda x: -softplus(-x), "tanhshrink": tanhshrink,
    "softshrink": lambda x, threshold=0.5: np.sign(x) * np.maximum(np.abs(x) - threshold, 0),
    "hardshrink": lambda x, threshold=0.5: np.where(np.abs(x) > threshold, x, 0),
    "threshold": lambda x, threshold=0.0, value=0.0: np.where(x > threshold, x, value), "at_least": lambda x, low=0.0: np.maximum(x, low),
    "prelu": lambda x, w: np.where(x > 0, x, x * w.reshape([-1 if i == 1 and w.size > 1 else 1 for i in range(x.ndim)])),
    "glu": lambda x, axis=-1: np.split(x, 2, axis)[0] / (1 + np.exp(-np.split(x, 2, axis)[1])),
    "softmin": lambda x, axis=-1: softmax(-x, axis), "group_norm": group_norm, "normalize": normalize,
    "instance_norm": lambda x, w=None, b=None, eps=1e-5: group_norm(x, w, b, x.shape[1], eps),
    "clip": lambda x, low=None, high=None: x if low is high is None else np.clip(x, low, high),
    "matmul": np.matmul, "linear": lambda x, weight, bias=None: x @ np.swapaxes(weight, -1, -2) + (0 if bias is None else bias),
    "rem": _c_remainder,
    "mulhi": lambda a, b: _by_element(lambda p, q: p * q >> a.dtype.itemsize * 8)(a, b),
    "mad": lambda a, b, c: a * b + c if a.dtype.kind == "f" else _by_element(lambda p, q, r: p * q + r)(a, b, c),
    "shift_left": _shift(True), "shift_right": _shift(False), "popcount": _of_bits(sum),
    "leading_zeros": _of_bits(lambda bits: (bits[::-1] + [1]).index(1)), "trailing_zeros": _of_bits(lambda bits: (bits + [1]).index(1)),
    "reverse_bits": _of_bits(lambda bits: sum(bit << i for i, bit in enumerate(bits[::-1]))),
    "dot4_ss": _dot4(np.int8, np.int8), "dot4_uu": _dot4(np.uint8, np.uint8), "dot4_us": _dot4(np.uint8, np.int8),
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "floor_divide": _floor_quotient, "remainder": _remainder,
    "floor_of_quotient": _floor_quotient, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "hypot": np.hypot,
    "clamp": lambda x, low=None, high=None: np.minimum(np.maximum(x, -np.inf if low is None else low), np.inf if high is None else high),
    "logaddexp": np.logaddexp, "dot": np.dot, "matvec": lambda a, b: (a @ b[..., None])[..., 0],
    "total": lambda x, reduction="mean": _total(x, reduction),
    "mse": lambda a, b, reduction="mean": _total((a - b) ** 2, reduction),
    "l1": lambda a, b, reduction="mean": _total(np.abs(a - b), reduction),
    "huber": lambda a, b, delta=1.0, reduction="mean": _total(
        np.where(np.abs(a - b) <= delta, 0.5 * (a - b) ** 2, delta * (np.abs(a - b) - 0.5 * delta)), reduction),
    "smooth_l1": smooth_l1, "poisson_nll": poisson_nll, "gaussian_nll": gaussian_nll, "multi_margin": multi_margin,
    "margin_ranking": lambda a, b, t, margin=0.0, reduction="mean": _total(np.maximum(margin - t * (a - b), 0), reduction),
    "hinge_embedding": lambda x, t, margin=1.0, reduction="mean": _total(np.where(t == 1, x, np.maximum(margin - x, 0)), reduction),
    "cosine_similarity": cosine_similarity, "cosine_embedding": cosine_embedding, "pairwise_distance": distance,
    "triplet_margin": triplet_margin, "cdist": lambda a, b, p=2.0: distance(a[..., :, None, :], b[..., None, :, :], p, 0),
    "nll": nll, "logit_nll": lambda x, at, axis=-1: -np.take_along_axis(log_softmax(x, axis), at, axis),
    "cross_entropy_of_classes": cross_entropy_of_classes, "cross_entropy_of_shares": cross_entropy_of_shares,
    "cross_entropy": lambda x, target, *rest, **more: (
        cross_entropy_of_shares if target.dtype.kind == "f" else cross_entropy_of_classes)(x, target, *rest, **more),
    "bce_of": bce_of, "bce_logit_of": bce_logit_of,
    "bce": lambda x, t, weight=None, reduction="mean": _total(bce_of(x, t) * (1 if weight is None else weight), reduction),
    "bce_with_logits": bce_with_logits, "kl_div": kl_div, "batch_norm": batch_norm, "gemm": gemm, "sgd": sgd, "adam": adam, "adamw": adamw,
    "amsgrad": amsgrad, "nadam": nadam, "adamax": adamax, "rmsprop": rmsprop, "adagrad": adagrad, "lion": lion,
    "clip_norm": lambda x, norm, max_norm=1.0: x * np.minimum(max_norm / (norm + 1e-6), 1),
    "isclose": lambda a, b: np.isclose(a, b) if a.dtype.kind == "f" else np.isclose(a.astype(np.float64), b.astype(np.float64)),
    "nan_to_num": nan_to_num, "isposinf": np.isposinf, "isneginf": np.isneginf, "fmin": np.fmin, "fmax": np.fmax,
    "degrees": lambda x: x * (180 / PI.astype(x.dtype)), "radians": lambda x: x * (PI.astype(x.dtype) / 180),
    "gcd": _by_element(math.gcd), "lcm": _by_element(math.lcm), "round_to": np.round,
    "nansum": _keep(np.nansum), "nanmean": _quietly(np.nanmean), "nanmin": _quietly(np.nanmin), "nanmax": _quietly(np.nanmax),
    "nanvar": _quietly(np.nanvar), "nanstd": _quietly(np.nanstd),
    "nanargmin": _nan_place(np.argmin), "nanargmax": _nan_place(np.argmax),
    "global_norm": lambda *x: np.sqrt(sum(np.sum(np.square(v)) for v in x)),
}

def _nll_terms(x, target, weight=None, **more):
    return -nll(np.abs(x), target, weight, **more)


def _bce_terms(x, t, weight=None, positive=None, reduction="mean"):
    values = softplus(x) + np.abs(x * t) if positive is None else np.abs((1 - t) * x) + np.abs((1 + (positive - 1) * t) * softplus(-x))
    return _total(values * (1 if weight is None else np.abs(weight)), reduction)


def _kl_terms(x, t, log_target=0, reduction="mean"):
    with np.errstate(all="ignore"):
        logs = np.abs(t) if log_target else np.abs(np.log(np.where(t > 0, t, 1)))
        values = (np.exp(t) if log_target else np.where(t > 0, t, 0)) * (logs + np.abs(x))
    return np.sum(values) / len(x) if reduction == "batchmean" else _total(values, reduction)


def _of_magnitudes(step, rate):
    """A step of an optimiser whose terms all have one sign: what its results are small beside. `rate`: the place of lr."""
    def terms(*arrays, **more):
        return step(*[None if a is None else -a if i == rate else np.abs(a) for i, a in enumerate(arrays)], **more)
    return terms


def _adamax_terms(param, gradient, m, v, lr, step, **more):
    """The divisor is a largest one: of magnitudes it would be larger than it is."""
    largest, mean = adamax(param, gradient, m, v, lr, step, **more)[2], adamax(*map(np.abs, (param, gradient, m, v)), lr, step, **more)[1]
    return np.abs(param) + lr / (1 - more.get("beta1", 0.9) ** step) * mean / largest, mean, largest


def _group_terms(x, weight=None, bias=None, groups=1):
    """A mean that is rounded moves all of its group."""
    if not x.size:
        return x
    parts = x.reshape(len(x), groups, -1)
    size = np.abs(parts) + np.max(np.abs(parts), axis=-1, keepdims=True)
    terms = (size / np.sqrt(np.var(parts, axis=-1, keepdims=True) + 1e-5)).reshape(x.shape)
    along = [1, -1] + [1] * (x.ndim - 2)
    return terms * (1 if weight is None else np.abs(weight).reshape(along)) + (0 if bias is None else np.abs(bias).reshape(along))


def _poisson_terms(x, t, log_input=1, full=0, reduction="mean"):
    logs = np.abs(x) if log_input else np.abs(np.log(x)) + 1
    return _total((np.exp(x) if log_input else x) + np.abs(t) * (logs + 2) + 2, reduction)


def _gaussian_terms(x, t, var):
    v = var[..., None] if var.ndim < x.ndim else var
    return np.abs(np.log(v)) + (np.abs(x) + np.abs(t)) ** 2 / v + 1


def _margin_terms(x, target, weight=None, axis=-1, p=1, margin=1.0, reduction="mean"):
    return _total((margin + 2 * np.max(np.abs(x), axis=axis)) ** p * (1 if weight is None else np.max(weight)), reduction)


def _cosine_terms(a, b, target, margin=0.0, reduction="mean"):
    return _total(np.abs(margin) + 1 + np.sum(np.abs(a * b), axis=-1) / np.sqrt(np.sum(a * a, axis=-1) * np.sum(b * b, axis=-1)), reduction)


SCALE = {
    "lerp": lambda a, b, t: np.abs(a) + np.abs(t * (b - a)), "logaddexp": lambda a, b: np.abs(np.maximum(a, b)) + 1,
    "sum": lambda x, axes=None, keep=0: np.sum(np.abs(x), axis=_axes(x, axes), keepdims=bool(keep)),
    "mean": lambda x, axes=None, keep=0: np.mean(np.abs(x), axis=_axes(x, axes), keepdims=bool(keep)),
    "nansum": lambda x, axes=None, keep=0: np.nansum(np.abs(x), axis=_axes(x, axes), keepdims=bool(keep)),
    "nanmean": lambda x, axes=None, keep=0: REFERENCE["nanmean"](np.abs(x), axes, keep),
    "total": lambda x, reduction="mean": _total(np.abs(x), reduction),
    "dot": lambda a, b: np.dot(np.abs(a), np.abs(b)), "matvec": lambda a, b: (np.abs(a) @ np.abs(b)[..., None])[..., 0],
    "matmul": lambda a, b, **k: np.matmul(np.abs(a), np.abs(b)),
    "linear": lambda x, w, b=None: np.abs(x) @ np.swapaxes(np.abs(w), -1, -2) + (0 if b is None else np.abs(b)),
    "gemm": lambda a, b, c=None, alpha=1.0, beta=1.0, **k: gemm(
        np.abs(a), np.abs(b), None if c is None else np.abs(c), abs(alpha), abs(beta), **k),
    "nll": _nll_terms, "bce_with_logits": _bce_terms, "kl_div": _kl_terms,
    "tanhshrink": np.abs, "group_norm": _group_terms, "instance_norm": lambda x, w=None, b=None: _group_terms(x, w, b, x.shape[1]),
    "softshrink": lambda x, threshold=0.5: np.abs(x) + threshold,
    "poisson_nll": _poisson_terms, "multi_margin": _margin_terms, "cosine_embedding": _cosine_terms,
    "gaussian_nll": lambda x, t, var, full=0, reduction="mean": _total(_gaussian_terms(x, t, var), reduction),
    "margin_ranking": lambda a, b, t, margin=0.0, reduction="mean": _total(abs(margin) + np.abs(t) * (np.abs(a) + np.abs(b)), reduction),
    "hinge_embedding": lambda x, t, margin=1.0, reduction="mean": _total(np.abs(x) + np.where(t == 1, 0, margin), reduction),
    "cosine_similarity": lambda a, b, axis=1: cosine_similarity(np.abs(a), np.abs(b), axis),
    "pairwise_distance": lambda a, b, p=2.0: distance(np.abs(a), -np.abs(b), p),
    "triplet_margin": lambda a, b, c, p, reduction, **k: triplet_margin(np.abs(a), -np.abs(b), np.abs(c), 1.0, p, reduction=reduction),
    "bce_logit_of": lambda x, t, positive=None: _bce_terms(x, t, None, positive, "none"),
    "sgd": _of_magnitudes(sgd, 2), "adam": _of_magnitudes(adam, 4), "adamw": _of_magnitudes(adamw, 4),
    "amsgrad": _of_magnitudes(amsgrad, 5), "nadam": _of_magnitudes(nadam, 5), "adamax": _adamax_terms,
    "rmsprop": _of_magnitudes(rmsprop, 3), "adagrad": _of_magnitudes(adagrad, 3), "lion": _of_magnitudes(lion, 3),
}
