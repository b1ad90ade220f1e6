"""How often values occur: counts of numbers, histograms. Counts are int64, exact and the same in any order; with weights they are sums
of the weights' type, each in the order of the elements (F of scatter_add)."""

from __future__ import annotations

from hologram import _core
from hologram._create import _count, asarray, beside, integers_of, owned, plain
from hologram._create import zeros as _zeros

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


def bincount(x: Any, /, weights: Any = None, minlength: Any = 0, *, length: Any = None) -> Any:
    """How often each number from 0 on occurs in x, integers or bools of any shape: a vector of int64, of weights (of x's shape) that of
    their type. It is as long as the greatest number asks for, which is read, and at least minlength; with `length` so long, and nothing
    is read. IndexError of a number below 0 or beyond length. numpy.bincount.

    hg.bincount([1, 3, 1])                              # [0, 2, 0, 1]
    hg.bincount([1, 0, 1], weights=[0.5, 1.0, 2.0])     # [1., 2.5]"""
    x = owned(x)
    if x.dtype.kind not in ("integer", "bool"):
        raise TypeError(f"bincount counts integers, not {x.dtype}; hg.histogram counts numbers of any type")
    x = x.astype("uint8") if x.dtype.kind == "bool" else x
    weights = None if weights is None else _weights(weights, x)
    if length is None:
        (length,) = integers_of(minlength)
        if length < 0:
            raise ValueError(f"bincount: minlength is 0 or more, not {length}")
        length = max(length, int(_core.max(x)) + 1 if x.size else 0)
    return _core.bincount(x, weights, length)


def _weights(weights: Any, x: Any) -> Any:
    weights = beside(weights, x)
    if not isinstance(weights, _core.Array) or weights.shape != x.shape:
        raise ValueError(f"weights have the shape of what is counted, {x.shape}, not {getattr(weights, 'shape', ())}")
    return weights.astype("int64") if weights.dtype.kind == "bool" else weights


# ---- bins -------------------------------------------------------------------------------------------------------------

def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    """Between which of the bounds `bins`, which only grow or only fall, each element of x lies: int64 i with
    bins[i - 1] <= x < bins[i], or bins[i - 1] < x <= bins[i] with right=True; of bounds that fall with the comparisons exchanged. 0 and
    len(bins) are outside; NaN is the greatest. numpy.digitize.

    hg.digitize([0.2, 6.4, 3.0], [0.0, 1.0, 2.5, 4.0])  # [1, 4, 3]"""
    x = owned(x)
    bins = _bounds("digitize", bins, x)
    falls = bins[0] > bins[-1] if bins.size else _core._scalar(False, "bool")
    place = _core.searchsorted(_core.where(falls, _core.flip(bins), bins), x, None, "left" if right else "right")
    return _core.where(falls, bins.size - place, place)


def _bounds(name: str, bounds: Any, x: Any) -> Any:
    """Bounds as a vector; lists as NumPy has them: int64, or float64."""
    if isinstance(bounds, (list, tuple, range)):
        made = asarray(bounds, device=x.device)
        bounds = made if made.dtype == "int64" else asarray(bounds, "float64", device=x.device)
    bounds = beside(bounds, x)
    if isinstance(bounds, _core.Array) and x.dtype == "uint64" and bounds.dtype.kind == "integer" and bounds.dtype.name[0] != "u":
        bounds = bounds.astype("float64")  # which NumPy takes for both, too
    if not isinstance(bounds, _core.Array) or bounds.ndim != 1:
        raise ValueError(f"{name}: bounds are a vector, not of shape {getattr(bounds, 'shape', ())}")
    return bounds


def _span(name: str, span: Any) -> tuple[float, float]:
    """A range as two numbers; infinite ones: none is given."""
    if span is None:
        return -float("inf"), float("inf")
    low, high = (float(plain(end)) for end in span)
    if not -float("inf") < low <= high < float("inf"):
        raise ValueError(f"{name}: range is two finite numbers, the lower one first, not ({low}, {high})")
    return low, high


def _bins(name: str, x: Any, bins: Any, span: Any) -> tuple[Any, Any]:
    """The edges of bins, and the number of the bin of each element; that of how many bins there are for what is in none."""
    if isinstance(bins, str):
        raise ValueError(f"{name}: bins is a number of bins or their edges, not {bins!r}: write how many, as in bins=64")
    bins = plain(bins) if getattr(bins, "ndim", None) == 0 else bins
    if not hasattr(bins, "__len__"):
        (count,) = integers_of(bins)
        if count < 1:
            raise ValueError(f"{name}: there is at least 1 bin, not {count}")
        edges = _core.even_edges(x, count, *_span(name, span))
        is_narrow = x.dtype.kind == "float" and x.dtype.itemsize == 2  # edges of few bits are not at equal distances
        return edges, (_core.uneven_bins if is_narrow else _core.even_bins)(x, edges)
    edges = _bounds(name, bins, x)
    count = edges.size - 1
    if count < 1:
        raise ValueError(f"{name}: of bins there are at least two edges, not {edges.size}")
    if isinstance(bins, (list, tuple)) and any(a > b for a, b in zip(bins, bins[1:], strict=False)):
        raise ValueError(f"{name}: the edges of bins stand in ascending order")
    return edges, _core.uneven_bins(x, edges)


def histogram_bin_edges(x: Any, bins: Any = 10, range: Any = None) -> Any:
    """The edges that histogram(x, bins, range) has. numpy.histogram_bin_edges.

    hg.histogram_bin_edges([0.0, 1.0, 4.0], 4)          # [0., 1., 2., 3., 4.]"""
    return _bins("histogram_bin_edges", owned(x), bins, range)[0]


def _shares(counts: Any, edges: list[Any]) -> Any:
    """Counts over their sum and the bins' sizes, in float64, rounded once."""
    type_ = counts.dtype if counts.dtype.kind == "float" else "float64" if edges[0].dtype.kind != "float" else edges[0].dtype
    made = counts.astype("float64")
    total = _core.sum(made)
    for axis, edge in enumerate(edges):
        wide = edge.astype("float64")
        made = made / (wide[1:] - wide[:-1]).reshape((-1, *(1,) * (len(edges) - 1 - axis)))
    return (made / total).astype(type_)


def histogram(x: Any, bins: Any = 10, range: Any = None, density: Any = False, weights: Any = None) -> Any:
    """How many of x's elements, of any shape and number type, lie in each bin, and the bins' edges. bins: how many, between the ends of
    `range` or, of None, the least and the greatest element; or the edges themselves, ascending. A bin has its left edge, the last one its
    right edge, too; what lies in none, and NaN, is not counted. Counts are int64; with weights (of x's shape) sums of their type; with
    density over their total and the bins' widths. Nothing is read: of an x that holds NaN, without a range, edges are NaN and counts 0.
    numpy.histogram; torch.histc is its first result.

    counts, edges = hg.histogram([1.0, 2.0, 1.0], bins=2)   # [2, 1], [1., 1.5, 2.]"""
    x = owned(x)
    edges, place = _bins("histogram", x, bins, range)
    counts = _core.bincount(place, None if weights is None else _weights(weights, x), edges.size)[:-1]
    return (_shares(counts, [edges]) if density else counts), edges


def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = False, weights: Any = None) -> Any:
    """Histogram of points: sample is of shape (points, axes), or a list of vectors, one an axis. bins and range are those of histogram:
    a number of bins for all axes, or a list of numbers and edges; a list of ranges, each of which may be None. The counts, of as many axes,
    int64 (NumPy's are floats), and a list of edges. numpy.histogramdd.

    counts, edges = hg.histogramdd(hg.random.normal(hg.random.key(0), (100, 3)), bins=4)    # counts.shape (4, 4, 4)"""
    if isinstance(sample, (list, tuple)):
        columns = [owned(x) for x in sample]
    else:
        sample = owned(sample)
        if sample.ndim != 2:
            raise ValueError(f"histogramdd: points are of shape (points, axes), not {sample.shape}; of one axis write hg.histogram")
        columns = [sample[:, i] for i in _range(sample.shape[1])]
    if len({x.shape for x in columns}) != 1:
        raise ValueError(f"histogramdd: the axes' vectors have one shape, not {[x.shape for x in columns]}")
    each = list(bins) if hasattr(bins, "__len__") and not isinstance(bins, str) else [bins] * len(columns)
    spans = [None] * len(columns) if range is None else list(range)
    if len(each) != len(columns) or len(spans) != len(columns):
        raise ValueError(f"histogramdd: bins and range have one for each of {len(columns)} axes, not {len(each)} and {len(spans)}")
    found = [_bins("histogramdd", x, b, span) for x, b, span in zip(columns, each, spans, strict=True)]
    shape = tuple(edges.size - 1 for edges, _ in found)
    total, place, is_in = _count(shape), _zeros(columns[0].shape, "int64", device=columns[0].device), _core._scalar(True, "bool")
    for (_, own), size in zip(found, shape, strict=True):
        place, is_in = place * size + own, _core.logical_and(is_in, own < size)
    of_weights = None if weights is None else _weights(weights, columns[0])
    counts = _core.bincount(_core.where(is_in, place, total), of_weights, total + 1)[:-1].reshape(shape)
    edges = [edges for edges, _ in found]
    return (_shares(counts, edges) if density else counts), edges


_range = range


def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = False, weights: Any = None) -> Any:
    """Histogram of points in a plane, as histogramdd has it: the counts (x along axis 0) and the edges of both axes. bins: one number
    for both, a vector of edges for both, or one of either for each. numpy.histogram2d.

    counts, x_edges, y_edges = hg.histogram2d([0.0, 1.0, 1.0], [0.0, 0.0, 1.0], bins=2)     # [[1, 0], [1, 1]]"""
    if hasattr(bins, "__len__") and not isinstance(bins, str) and len(bins) != 2:
        bins = [bins, bins]
    counts, (x_edges, y_edges) = histogramdd([x, y], bins, range, density, weights)
    return counts, x_edges, y_edges
